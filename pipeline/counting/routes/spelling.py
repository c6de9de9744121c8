"""A route by its name, as types of requests are spelt, and as profilers name endpoints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pipeline.counting.routes.patterns import of_braces, of_colons, of_flask, of_regex

_METHODS = re.compile(r"(?P<methods>[A-Z]{3,10}(?:,[A-Z]{3,10})*|\*|-) +(?P<path>/.*)", re.DOTALL)
_OF_REGEX = re.compile(r"^/?\^|\(\?P<|\(\?:|\\[dwDWsSAZ]|\$$")
_OF_FLASK = re.compile(r"<(?:[^:<>]+:)?[^<>]+>")


@dataclass(frozen=True, slots=True)
class NamedRoute:
    """A route that is known by its name alone.

    Args:
        name: As it was given.
        methods: In capitals; empty where any is answered.
        pattern: Path with parameters in braces, ``/orders/{id}``; ``{path...}`` takes one or more segments.
    """

    name: str
    methods: tuple[str, ...]
    pattern: str


def route_named(name: str) -> NamedRoute:
    """Read the name of a route whose pattern has the one form: ``GET,HEAD /orders/{id}``, ``* /files``."""
    methods, _, pattern = name.partition(" ")
    return NamedRoute(name, () if methods == "*" else tuple(methods.split(",")), pattern)


@lru_cache(maxsize=4096)
def read_route(name: str) -> NamedRoute | None:
    r"""Read the name of a route or of an endpoint, in the form of any framework; None where it is no path.

    Without a method it answers any.

    >>> read_route("GET /orders/<int:id>").pattern, read_route(r"POST /^orders/(?P<id>\d+)$").pattern
    ('/orders/{id}', '/orders/{id}')
    >>> read_route("/orders/:id").methods, read_route("GET,HEAD /orders/{id}").methods
    ((), ('GET', 'HEAD'))
    """
    named = _METHODS.fullmatch(name.strip())
    path = named["path"] if named else name.strip()
    if not path.startswith("/"):
        return None
    methods = named["methods"].split(",") if named and named["methods"] not in ("*", "-") else []
    return NamedRoute(name, tuple(methods), _pattern(path))


def _pattern(path: str) -> str:
    """Return a path's pattern: forms differ in their brackets, so that each says which one it is."""
    if _OF_REGEX.search(path):
        return "/" + of_regex(of_flask(path.lstrip("/"))).lstrip("/")
    if _OF_FLASK.search(path):
        return of_flask(path)
    if "/:" in path or path.endswith("/*"):
        return of_colons(path)
    return of_braces(path)
