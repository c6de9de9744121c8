"""A program that imports a web application and prints its routes as JSON, one a line.

It runs in the application's own interpreter, so it needs the standard library alone. What the application
holds shows its framework: rules of Werkzeug (Flask, Quart), routes of Starlette (FastAPI), resources of
aiohttp, patterns of Django.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

MARK = "smidgen-route:"
"""How a line with a route begins: importing may print, too."""

_VERBS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
_BY_ITSELF = ("HEAD", "OPTIONS")
"""Methods that frameworks answer by themselves beside GET."""

_DEEPEST = 20

Found = tuple[list[str], str, str, Any]
"""Methods, the form of the pattern, the pattern, and the handler."""


def routes_of(application: Any, depth: int = 0) -> Iterator[Found]:
    """Yield the routes of an application of any framework that is known; none of others."""
    if depth > _DEEPEST:
        return
    if hasattr(application, "url_map") and hasattr(application, "view_functions"):
        for rule in application.url_map.iter_rules():
            yield sorted(rule.methods or ()), "flask", str(rule), application.view_functions[rule.endpoint]
    elif hasattr(getattr(application, "router", None), "resources"):
        for route in application.router.routes():
            path = route.resource.canonical if route.resource is not None else ""
            if route.method not in _BY_ITSELF:
                yield [] if route.method == "*" else [route.method], "braces", path, route.handler
    elif isinstance(getattr(application, "routes", None), list):
        yield from _starlette(application.routes, "", depth)
    elif type(application).__module__.startswith("django."):
        resolver = importlib.import_module("django.urls").get_resolver()
        yield from _django(resolver.url_patterns, "", depth)


def _starlette(routes: list[Any], prefix: str, depth: int) -> Iterator[Found]:
    for route in routes:
        path = prefix + getattr(route, "path", "")
        inner = getattr(route, "routes", None) or getattr(getattr(route, "app", None), "routes", None)
        if hasattr(route, "endpoint"):
            yield sorted(getattr(route, "methods", None) or ()), "braces", path, route.endpoint
        elif isinstance(inner, list) and depth <= _DEEPEST:
            yield from _starlette(inner, path, depth + 1)


def _django(patterns: Any, prefix: str, depth: int) -> Iterator[Found]:
    for pattern in patterns:
        regex = hasattr(pattern.pattern, "_regex")
        text = str(pattern.pattern).lstrip("^") if regex else str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            if depth <= _DEEPEST:
                yield from _django(pattern.url_patterns, prefix + text, depth + 1)
        else:
            yield [], "regex" if regex else "flask", prefix + text, pattern.callback


def described(found: Found) -> Iterator[dict[str, Any]]:
    """Yield a route with where its handler is defined; of a class one for each method that answers."""
    methods, form, pattern, handler = found
    for _ in range(_DEEPEST):
        inner = getattr(handler, "func", None) or getattr(handler, "__wrapped__", None)
        if inner is None:
            break
        handler = inner
    handler = getattr(handler, "view_class", None) or getattr(handler, "cls", None) or handler
    answers = (
        {verb: getattr(handler, verb.lower(), None) for verb in _VERBS} if isinstance(handler, type) else {}
    )
    answers = {verb: method for verb, method in answers.items() if inspect.isfunction(method)}
    shown = [method for method in methods if method not in _BY_ITSELF] or methods
    for verbs, answer in [([verb], method) for verb, method in answers.items()] or [(shown, handler)]:
        yield {"methods": verbs, "form": form, "pattern": pattern, **_defined(answer)}


def _defined(handler: Any) -> dict[str, Any]:
    handler = inspect.unwrap(handler) if callable(handler) else handler
    try:
        path = inspect.getsourcefile(handler) or ""
        line = inspect.getsourcelines(handler)[1]
    except (OSError, TypeError):
        path, line = "", 0
    name = getattr(handler, "__qualname__", type(handler).__qualname__)
    module = getattr(handler, "__module__", "") or ""
    return {"module": module, "name": name, "path": os.path.abspath(path) if path else "", "line": line}


def main(target: str) -> None:
    """Import ``module:name`` and print its routes."""
    sys.path[0] = os.getcwd()  # instead of this program's folder, whose modules are not the application's
    module, _, name = target.partition(":")
    application: Any = importlib.import_module(module)
    for part in (name or "app").split("."):
        application = getattr(application, part)
    for route in routes_of(application):
        for row in described(route):
            sys.stdout.write(f"\n{MARK}{json.dumps(row)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
