"""Routes of aiohttp: routers, tables of routes, class-based views and nested applications."""

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
from agents.source.routes.resolve import Scope
from agents.source.routes.route import Route
from pipeline.counting.routes.patterns import of_braces

FRAMEWORK = "aiohttp"

_OBJECTS = ("Application", "RouteTableDef")
_ADDING = {f"add_{verb.lower()}": (verb,) for verb in VERBS} | {"add_view": ()}
_WEB = {verb.lower(): (verb,) for verb in VERBS} | {"view": ()}


def find_aiohttp(tree: PythonTree) -> Iterator[Route]:
    """Yield the routes of applications and tables of routes that are in the tree."""
    mounts, owners = _mounts(tree)
    for sites in tree.sites:
        imports = sites.file.unit.imports.values()
        if not (any(name.split(".")[0] == "aiohttp" for name in imports) or any(map(_adds, sites.calls))):
            continue
        for decorated in sites.decorated:
            yield from _decorated(tree, mounts, decorated)
        for site in sites.calls:
            yield from _added(tree, mounts, owners, site)


def _adds(site: CallSite) -> bool:
    return chain_of(site.node.func)[-2:-1] == ("router",)


def _mounts(tree: PythonTree) -> tuple[Mounts, dict[ast.Call, Key]]:
    """Return what is mounted where, and of ``web.get`` in a list the application that takes the list."""
    mounts = Mounts()
    owners: dict[ast.Call, Key] = {}
    sites = [site for part in tree.sites for site in part.calls]
    for site in sites:
        name, key = chain_of(site.node.func)[-1:], tree.bound_key(site)
        if name and name[0] in _OBJECTS and key:
            mounts.add(key)
    for site in sites:
        node, name = site.node, chain_of(site.node.func)[-1:]
        parent = tree.key(_application(node), site.scope)
        if parent is None:
            continue
        if name == ("add_subapp",):
            child = tree.key(argument(node, 1, "subapp"), site.scope)
            if child:
                mounts.mount(parent, child, tree.text(argument(node, 0, "prefix"), site.scope) or "")
        elif name == ("add_routes",):
            routes = argument(node, 0, "routes")
            if isinstance(routes, ast.List | ast.Tuple):
                owners.update({part: parent for part in routes.elts if isinstance(part, ast.Call)})
            elif child := tree.key(routes, site.scope):
                mounts.mount(parent, child)
    return mounts, owners


def _decorated(tree: PythonTree, mounts: Mounts, decorated: Decorated) -> Iterator[Route]:
    called = tree.method_called(decorated)
    if called is None:
        return
    decorator, verb, key = called
    handler = decorated_handler(decorated)
    if key not in mounts or handler is None:
        return
    verbs = _methods(tree, decorator, verb, decorated.scope)
    if not verbs:
        return
    methods, index = verbs
    text = tree.text(argument(decorator, index, "path"), decorated.scope)
    if text is not None:
        for whole in mounts.paths(key, of_braces(text)):
            yield from tree.routes_of(handler, whole, methods, FRAMEWORK)


def _added(tree: PythonTree, mounts: Mounts, owners: dict[ast.Call, Key], site: CallSite) -> Iterator[Route]:
    node, chain = site.node, chain_of(site.node.func)
    key: Key | None
    if chain[-2:-1] == ("router",) and (chain[-1] in _ADDING or chain[-1] == "add_route"):
        name, key = chain[-1].removeprefix("add_"), tree.key(_application(node), site.scope)
    elif chain[:1] == ("web",) and len(chain) == 2 and (chain[1] in _WEB or chain[1] == "route"):
        name, key = chain[1], owners.get(node)
    else:
        return
    verbs = _methods(tree, node, name, site.scope)
    if not verbs:
        return
    methods, index = verbs
    handler = tree.handler(argument(node, index + 1, "handler"), site.scope)
    text = tree.text(argument(node, index, "path"), site.scope)
    if handler and text is not None:
        for whole in mounts.paths(key, of_braces(text)):
            yield from tree.routes_of(handler, whole, methods, FRAMEWORK)


def _methods(tree: PythonTree, node: ast.Call, name: str, scope: Scope) -> tuple[Sequence[str], int] | None:
    """Return the methods of a call by its name, and the index of its path."""
    if name in _WEB:
        return _WEB[name], 0
    if name != "route":
        return None
    method = tree.text(argument(node, 0, "method"), scope)
    return ([] if method in (None, "*") else [method or ""]), 1


def _application(node: ast.Call) -> ast.expr | None:
    """Return what a router belongs to: ``app`` of ``app.router.add_get`` and of ``app.add_routes``."""
    owner = owner_of(node)
    return owner.value if isinstance(owner, ast.Attribute) and owner.attr == "router" else owner
