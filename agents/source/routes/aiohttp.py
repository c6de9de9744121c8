"""Routes of aiohttp: routers, tables of routes, class-based views and nested applications."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from agents.source.routes.mounts import Key
from agents.source.routes.python_tree import (
    VERBS,
    CallSite,
    Decorated,
    PythonTree,
    argument,
    decorated_handler,
    owner_of,
)
from agents.source.routes.route import Route
from agents.source.routes.routing import Dialect, Routing
from pipeline.counting.routes.patterns import of_braces

_DIALECT = Dialect(
    "aiohttp",
    of_braces,
    makers={"Application": "", "RouteTableDef": ""},
    mounting={"add_subapp": ((1, "subapp"), (0, "prefix")), "add_routes": ((0, "routes"), (-1, ""))},
)
_VERBS = {verb.lower(): (verb,) for verb in VERBS} | {"view": ()}


def find_aiohttp(tree: PythonTree) -> Iterator[Route]:
    """Yield the routes of applications and tables of routes that are in the tree."""
    routing = _Routing(tree, _DIALECT)
    owners = _owners(routing)
    for sites in tree.sites:
        imports = sites.file.unit.imports.values()
        adds = (site.chain[-2:-1] == ("router",) for site in sites.calls)
        if not (any(name.split(".")[0] == "aiohttp" for name in imports) or any(adds)):
            continue
        for decorated in sites.decorated:
            if (site := decorated.site) and (key := routing.parent(site)) in routing.mounts:
                yield from _routes(routing, site, site.name, key, decorated)
        for site in sites.calls:
            name = site.name.removeprefix("add_")
            if site.chain[-2:-1] == ("router",) and name != site.name:
                yield from _routes(routing, site, name, routing.parent(site))
            elif site.chain[:1] == ("web",) and len(site.chain) == 2:
                yield from _routes(routing, site, site.name, owners.get(site.node))


class _Routing(Routing):
    def parent(self, site: CallSite) -> Key | None:
        """Return the application: ``app`` of ``app.router.add_get`` and of ``app.add_routes``."""
        owner = owner_of(site.node)
        if isinstance(owner, ast.Attribute) and owner.attr == "router":
            owner = owner.value
        return self.tree.key(owner, site.scope)


def _owners(routing: Routing) -> dict[ast.Call, Key]:
    """Return the application of each ``web.get`` in a list that an application takes."""
    owners: dict[ast.Call, Key] = {}
    for site in routing.tree.calls:
        routes = argument(site.node, (0, "routes")) if site.name == "add_routes" else None
        if isinstance(routes, ast.List | ast.Tuple) and (key := routing.parent(site)):
            owners.update({part: key for part in routes.elts if isinstance(part, ast.Call)})
    return owners


def _routes(
    routing: Routing, site: CallSite, name: str, key: Key | None, decorated: Decorated | None = None
) -> Iterator[Route]:
    """Yield the routes of a call by its name: a verb, ``view``, or ``route`` with the method first."""
    tree, first = routing.tree, int(name == "route")
    methods: Sequence[str] = _VERBS.get(name, ())
    if name == "route":
        method = tree.text_at(site, (0, "method"))
        methods = () if method in (None, "*") else (method or "",)
    elif name not in _VERBS:
        return
    handler = decorated_handler(decorated) if decorated else tree.handler_at(site, (first + 1, "handler"))
    yield from routing.routes(key, tree.text_at(site, (first, "path")), handler, methods)
