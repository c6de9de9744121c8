"""Routes of FastAPI and Starlette, with routers, mounts and lists of routes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from agents.source.routes.mounts import Key, Mounts
from agents.source.routes.python_source import chain_of
from agents.source.routes.python_tree import (
    VERBS,
    CallSite,
    Decorated,
    PythonTree,
    argument,
    decorated_handler,
    owner_of,
)
from agents.source.routes.route import Route, join_paths
from pipeline.counting.routes.patterns import of_braces

FRAMEWORK = "fastapi"

_OBJECTS = ("FastAPI", "APIRouter", "Starlette", "Router")
_SOCKETS = ("websocket", "websocket_route")


def find_fastapi(tree: PythonTree) -> Iterator[Route]:
    """Yield the routes of applications and routers that are in the tree."""
    mounts = _mounts(tree)
    for sites in tree.sites:
        for decorated in sites.decorated:
            yield from _decorated(tree, mounts, decorated)
        for site in sites.calls:
            yield from _added(tree, mounts, site)
        yield from _listed(tree, mounts, sites.calls)


def _mounts(tree: PythonTree) -> Mounts:
    mounts = Mounts()
    sites = [site for file_sites in tree.sites for site in file_sites.calls]
    for site in sites:
        name, key = chain_of(site.node.func)[-1:], tree.bound_key(site)
        if name and name[0] in _OBJECTS and key:
            own = tree.text(argument(site.node, -1, "prefix"), site.scope)
            mounts.add(key, of_braces(own or ""))
    for site in sites:
        chain = chain_of(site.node.func)
        if len(chain) < 2 or chain[-1] not in ("include_router", "mount"):
            continue
        mounting = chain[-1] == "mount"
        target = argument(site.node, 1, "app") if mounting else argument(site.node, 0, "router")
        prefix = argument(site.node, 0, "path") if mounting else argument(site.node, -1, "prefix")
        parent, child = tree.key(owner_of(site.node), site.scope), tree.key(target, site.scope)
        if parent and child:
            mounts.mount(parent, child, of_braces(tree.text(prefix, site.scope) or ""))
    return mounts


def _decorated(tree: PythonTree, mounts: Mounts, decorated: Decorated) -> Iterator[Route]:
    called = tree.method_called(decorated)
    if called is None:
        return
    decorator, verb, key = called
    if key not in mounts:
        return
    if verb.upper() in VERBS:
        methods: Sequence[str] = [verb]
    elif verb in ("api_route", "route"):
        methods = tree.texts(argument(decorator, -1, "methods"), decorated.scope) or ["GET"]
    elif verb in _SOCKETS:
        methods = ["GET"]
    else:
        return
    handler = decorated_handler(decorated)
    pattern = tree.text(argument(decorator, 0, "path"), decorated.scope)
    if handler and pattern is not None:
        for whole in mounts.paths(key, of_braces(pattern)):
            yield from tree.routes_of(handler, whole, methods, FRAMEWORK)


def _added(tree: PythonTree, mounts: Mounts, site: CallSite) -> Iterator[Route]:
    """Yield what ``add_api_route`` and ``add_route`` add."""
    name = chain_of(site.node.func)[-1:]
    key = tree.key(owner_of(site.node), site.scope)
    if name not in (("add_api_route",), ("add_route",)) or key not in mounts:
        return
    handler = tree.handler(argument(site.node, 1, "endpoint"), site.scope)
    pattern = tree.text(argument(site.node, 0, "path"), site.scope)
    methods = tree.texts(argument(site.node, 2, "methods"), site.scope)
    if handler and pattern is not None:
        default = [] if handler.entity.type else ["GET"]
        for whole in mounts.paths(key, of_braces(pattern)):
            yield from tree.routes_of(handler, whole, methods or default, FRAMEWORK)


def _listed(tree: PythonTree, mounts: Mounts, sites: Sequence[CallSite]) -> Iterator[Route]:
    """Yield what ``Route`` and ``Mount`` in lists of routes say."""
    prefixes: dict[ast.Call, str] = {}
    owners: dict[ast.Call, Key | None] = {}
    for site in sites:  # outer ones come first
        node, name = site.node, chain_of(site.node.func)[-1:]
        inner: list[ast.Call] = []
        if name == ("Mount",):
            own = of_braces(tree.text(argument(node, 0, "path"), site.scope) or "")
            prefixes[node] = join_paths(prefixes.get(node, ""), own)
            inner = _calls_of(argument(node, -1, "routes"))
            child, parent = tree.key(argument(node, 1, "app"), site.scope), owners.get(node)
            if child and parent and child in mounts:
                mounts.mount(parent, child, prefixes[node])
        elif name and name[0] in _OBJECTS:
            inner = _calls_of(argument(node, -1, "routes"))
            owners[node] = tree.bound_key(site)
        for call in inner:
            prefixes[call], owners[call] = prefixes.get(node, ""), owners.get(node)
        if name in (("Route",), ("WebSocketRoute",)):
            yield from _one_listed(tree, mounts, site, prefixes.get(node, ""), owners.get(node))


def _one_listed(
    tree: PythonTree, mounts: Mounts, site: CallSite, inside: str, key: Key | None
) -> Iterator[Route]:
    handler = tree.handler(argument(site.node, 1, "endpoint"), site.scope)
    pattern = tree.text(argument(site.node, 0, "path"), site.scope)
    if handler is None or pattern is None or not pattern.startswith("/"):
        return
    methods = tree.texts(argument(site.node, -1, "methods"), site.scope)
    default = [] if handler.entity.type else ["GET"]
    for whole in mounts.paths(key, inside, of_braces(pattern)):
        yield from tree.routes_of(handler, whole, methods or default, "starlette")


def _calls_of(node: ast.expr | None) -> list[ast.Call]:
    return (
        [element for element in node.elts if isinstance(element, ast.Call)]
        if isinstance(node, ast.List)
        else []
    )
