"""Routes of Flask and Quart, with blueprints, class-based views, Flask-RESTful and Flask-RESTX."""

from __future__ import annotations

from collections.abc import Iterator

from agents.source.routes.python_tree import (
    VERBS,
    CallSite,
    Decorated,
    PythonTree,
    argument,
    decorated_handler,
)
from agents.source.routes.route import Route
from agents.source.routes.routing import Dialect, Routing, or_get
from pipeline.counting.routes.patterns import of_flask

_DIALECT = Dialect(
    "flask",
    of_flask,
    makers={
        **dict.fromkeys(("Flask", "Quart", "APIFlask", "OpenAPI"), ""),
        **dict.fromkeys(("Blueprint", "APIBlueprint"), "url_prefix"),
        "Api": "prefix",
        "Namespace": "path",
    },
    mounting={
        **dict.fromkeys(("register_blueprint", "register_api"), ((0, ""), (-1, "url_prefix"))),
        "add_namespace": ((0, ""), (1, "path")),
    },
    replaces=True,
)


def find_flask(tree: PythonTree) -> Iterator[Route]:
    """Yield the routes of applications and blueprints that are in the tree."""
    routing = Routing(tree, _DIALECT)
    for site in tree.calls:
        key = tree.bound_key(site)
        if key and site.name == "Namespace" and argument(site.node, (-1, "path")) is None:
            routing.mounts.add(key, of_flask(tree.text_at(site, (0, "name")) or ""))
        elif key and site.name == "Api" and (application := tree.key_at(site, (0, "app"))):
            routing.mounts.mount(application, key)
    for sites in tree.sites:
        for decorated in sites.decorated:
            yield from _decorated(routing, decorated)
        for site in sites.calls:
            yield from _added(routing, site)


def _decorated(routing: Routing, decorated: Decorated) -> Iterator[Route]:
    tree, site = routing.tree, decorated.site
    if site is None:
        return
    key = routing.parent(site)
    if site.name != "route" and not (site.name.upper() in VERBS and key in routing.mounts):
        return
    handler = decorated_handler(decorated)
    # Flask-RESTX takes several patterns.
    patterns = [tree.text_at(site, (index, "rule")) for index in range(len(site.node.args) or 1)]
    if len(patterns) > 1 and (patterns[0] or "").upper() in (*VERBS, "*"):
        return  # aiohttp's: @routes.route("GET", "/orders")
    methods = or_get(tree.texts_at(site, (-1, "methods")), handler)
    for pattern in patterns:
        yield from routing.routes(key, pattern, handler, methods if site.name == "route" else [site.name])


def _added(routing: Routing, site: CallSite) -> Iterator[Route]:
    """Yield what ``add_url_rule`` and ``add_resource`` add."""
    tree = routing.tree
    if site.name == "add_url_rule":
        handler, patterns = tree.handler_at(site, (2, "view_func")), [tree.text_at(site, (0, "rule"))]
    elif site.name == "add_resource":
        handler = tree.handler_at(site, (0, "resource"))
        patterns = [tree.text(node, site.scope) for node in site.node.args[1:]]
    else:
        return
    methods = or_get(tree.texts_at(site, (-1, "methods")), handler)
    for pattern in patterns:
        yield from routing.routes(routing.parent(site), pattern, handler, methods)
