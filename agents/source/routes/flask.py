"""Routes of Flask and Quart, with blueprints, class-based views, Flask-RESTful and Flask-RESTX."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from agents.source.routes.mounts import Mounts
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
from pipeline.counting.routes.patterns import of_flask

FRAMEWORK = "flask"

_PREFIX = {
    **dict.fromkeys(("Flask", "Quart", "APIFlask", "OpenAPI"), ""),
    **dict.fromkeys(("Blueprint", "APIBlueprint"), "url_prefix"),
    "Api": "prefix",
    "Namespace": "path",
}
"""Constructor → the argument that is its prefix."""

_MOUNTING = {
    "register_blueprint": "url_prefix",
    "register_api": "url_prefix",
    "add_namespace": "path",
}


def find_flask(tree: PythonTree) -> Iterator[Route]:
    """Yield the routes of applications and blueprints that are in the tree."""
    mounts = _mounts(tree)
    for sites in tree.sites:
        for decorated in sites.decorated:
            yield from _decorated(tree, mounts, decorated)
        for site in sites.calls:
            yield from _added(tree, mounts, site)


def _mounts(tree: PythonTree) -> Mounts:
    mounts = Mounts()
    sites = [site for file_sites in tree.sites for site in file_sites.calls]
    for site in sites:
        name, key = chain_of(site.node.func)[-1:], tree.bound_key(site)
        if name and name[0] in _PREFIX and key:
            prefix = argument(site.node, -1, _PREFIX[name[0]]) if _PREFIX[name[0]] else None
            text = tree.text(prefix, site.scope) or ""
            if name[0] == "Namespace" and prefix is None:
                text = tree.text(argument(site.node, 0, "name"), site.scope) or ""
            mounts.add(key, of_flask(text))
            if name[0] == "Api":
                on = tree.key(argument(site.node, 0, "app"), site.scope)
                if on:
                    mounts.mount(on, key)
    for site in sites:
        chain = chain_of(site.node.func)
        if len(chain) < 2 or chain[-1] not in _MOUNTING:
            continue
        parent = tree.key(owner_of(site.node), site.scope)
        child = tree.key(site.node.args[0] if site.node.args else None, site.scope)
        if parent and child:
            prefix_argument = argument(
                site.node, 1 if chain[-1] == "add_namespace" else -1, _MOUNTING[chain[-1]]
            )
            before = tree.text(prefix_argument, site.scope)
            mounts.mount(parent, child, of_flask(before or ""), replaces=before is not None)
    return mounts


def _decorated(tree: PythonTree, mounts: Mounts, decorated: Decorated) -> Iterator[Route]:
    called = tree.method_called(decorated)
    if called is None:
        return
    decorator, verb, key = called
    if verb != "route" and not (verb.upper() in VERBS and key in mounts):
        return
    handler = decorated_handler(decorated)
    patterns = [
        tree.text(argument(decorator, index, "rule"), decorated.scope) for index in range(_given(decorator))
    ]
    if handler is None or _is_aiohttp(patterns, decorator):
        return
    default: Sequence[str] = [] if handler.entity.type else ["GET"]
    methods = tree.texts(argument(decorator, -1, "methods"), decorated.scope) or default
    for pattern in [text for text in patterns if text is not None]:
        for whole in mounts.paths(key, of_flask(pattern)):
            yield from tree.routes_of(handler, whole, methods if verb == "route" else [verb], FRAMEWORK)


def _given(decorator: ast.Call) -> int:
    """Return how many arguments may be patterns: Flask-RESTX takes several."""
    return len(decorator.args) or 1


def _is_aiohttp(patterns: Sequence[str | None], decorator: ast.Call) -> bool:
    """Return whether the first text is a method: ``@routes.route("GET", "/orders")`` of aiohttp."""
    return len(decorator.args) > 1 and (patterns[0] or "").upper() in (*VERBS, "*")


def _added(tree: PythonTree, mounts: Mounts, site: CallSite) -> Iterator[Route]:
    """Yield what ``add_url_rule`` and ``add_resource`` add."""
    node, scope = site.node, site.scope
    name = chain_of(node.func)[-1:]
    if name == ("add_url_rule",):
        target = argument(node, 2, "view_func")
        patterns: list[ast.expr | None] = [argument(node, 0, "rule")]
    elif name == ("add_resource",):
        target, patterns = argument(node, 0, "resource"), [*node.args[1:]]
    else:
        return
    handler = tree.handler(target, scope)
    if handler is None:
        return
    default: Sequence[str] = [] if handler.entity.type else ["GET"]
    methods = tree.texts(argument(node, -1, "methods"), scope) or default
    key = tree.key(owner_of(node), scope)
    for pattern in _texts(tree, patterns, scope):
        for whole in mounts.paths(key, of_flask(pattern)):
            yield from tree.routes_of(handler, whole, methods, FRAMEWORK)


def _texts(tree: PythonTree, nodes: Sequence[ast.expr | None], scope: Scope) -> Iterator[str]:
    yield from (text for node in nodes if (text := tree.text(node, scope)) is not None)
