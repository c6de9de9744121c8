"""Routes of FastAPI and Starlette, with routers, mounts and lists of routes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agents.source.routes.mounts import Key
from agents.source.routes.python_tree import (
    VERBS,
    CallSite,
    Decorated,
    PythonTree,
    argument,
    decorated_handler,
)
from agents.source.routes.route import Route, join_paths
from agents.source.routes.routing import Dialect, Routing, or_get
from pipeline.counting.routes.patterns import of_braces

_DIALECT = Dialect(
    "fastapi",
    of_braces,
    makers=dict.fromkeys(("FastAPI", "APIRouter", "Starlette", "Router"), "prefix"),
    mounting={"include_router": ((0, "router"), (-1, "prefix")), "mount": ((1, "app"), (0, "path"))},
)
_SOCKETS = ("websocket", "websocket_route")


def find_fastapi(tree: PythonTree) -> Iterator[Route]:
    """Yield the routes of applications and routers that are in the tree."""
    routing = Routing(tree, _DIALECT)
    for sites in tree.sites:
        for decorated in sites.decorated:
            yield from _decorated(routing, decorated)
        for site in sites.calls:
            yield from _added(routing, site)
        yield from _listed(routing, sites.calls)


def _decorated(routing: Routing, decorated: Decorated) -> Iterator[Route]:
    tree, site = routing.tree, decorated.site
    if site is None or (key := routing.parent(site)) not in routing.mounts:
        return
    if site.name.upper() in VERBS:
        methods: Sequence[str] = [site.name]
    elif site.name in ("api_route", "route"):
        methods = tree.texts_at(site, (-1, "methods")) or ["GET"]
    elif site.name in _SOCKETS:
        methods = ["GET"]
    else:
        return
    yield from routing.routes(key, tree.text_at(site, (0, "path")), decorated_handler(decorated), methods)


def _added(routing: Routing, site: CallSite) -> Iterator[Route]:
    """Yield what ``add_api_route`` and ``add_route`` add."""
    tree = routing.tree
    if site.name in ("add_api_route", "add_route") and (key := routing.parent(site)) in routing.mounts:
        handler = tree.handler_at(site, (1, "endpoint"))
        methods = or_get(tree.texts_at(site, (2, "methods")), handler)
        yield from routing.routes(key, tree.text_at(site, (0, "path")), handler, methods)


def _listed(routing: Routing, sites: Sequence[CallSite]) -> Iterator[Route]:
    """Yield what ``Route`` and ``Mount`` in lists of routes say."""
    tree = routing.tree
    prefixes: dict[ast.Call, str] = {}
    owners: dict[ast.Call, Key | None] = {}
    for site in sites:  # outer ones come first
        node = site.node
        prefix = prefixes.get(node, "")
        if site.name == "Mount":
            prefix = join_paths(prefix, of_braces(tree.text_at(site, (0, "path")) or ""))
            child, parent = tree.key_at(site, (1, "app")), owners.get(node)
            if child and parent and child in routing.mounts:
                routing.mounts.mount(parent, child, prefix)
        elif site.name in _DIALECT.makers:
            owners[node] = tree.bound_key(site)
        elif site.name in ("Route", "WebSocketRoute"):
            yield from _one_listed(routing, site, prefix, owners.get(node))
            continue
        else:
            continue
        routes = argument(node, (-1, "routes"))
        for call in routes.elts if isinstance(routes, ast.List) else ():
            if isinstance(call, ast.Call):
                prefixes[call], owners[call] = prefix, owners.get(node)


def _one_listed(routing: Routing, site: CallSite, inside: str, key: Key | None) -> Iterator[Route]:
    tree = routing.tree
    handler, path = tree.handler_at(site, (1, "endpoint")), tree.text_at(site, (0, "path"))
    if path is not None and path.startswith("/"):
        methods = or_get(tree.texts_at(site, (-1, "methods")), handler)
        for route in routing.routes(key, path, handler, methods, inside):
            yield replace(route, framework="starlette")
