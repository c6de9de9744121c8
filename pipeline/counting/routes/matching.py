"""Matching of types of requests in logs with routes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar


class RoutePattern(Protocol):
    """The methods and pattern of a route; see ``NamedRoute``."""

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods in capitals; empty if the route answers any."""

    @property
    def pattern(self) -> str:
        """Path with parameters in braces."""


R = TypeVar("R", bound=RoutePattern)

_NAME = ":name"
"""Segment in logs for too many names: it may stand for a name that is literal in a route."""

_CUT = "…"
"""Stands for the rest of a path that is too deep."""

_EXACT, _FOLDED, _ONE_OF_FEW, _REST, _NAMED = range(5)
"""Kinds of fit of a segment, best first: the same text; a parameter that logs folded; a parameter whose
values logs list; a part of a parameter over several segments; a name that logs folded."""


def match_type(request_type: str, routes: Iterable[R]) -> R | None:
    """Return the route that answers a type such as ``GET /orders/:id``; None without one.

    Of several routes, the most specific from the left wins, as in routers: text before parameters, and these
    before parameters of several segments. Trailing slashes are ignored, and GET answers HEAD.

    Args:
        request_type: Method and path, as ``smidgen agent logs`` names types.
        routes: Routes in the order of the source; the first wins if two fit equally well.
    """
    method, _, path = request_type.partition(" ")
    if not path.startswith("/"):
        return None
    segments = _segments(path)
    best: tuple[tuple[int, ...], R] | None = None
    for route in routes:
        if (
            route.methods
            and method not in route.methods
            and not (method == "HEAD" and "GET" in route.methods)
        ):
            continue
        fit = _fit(segments, _segments(route.pattern))
        if fit is not None and (best is None or fit < best[0]):
            best = fit, route
    return best[1] if best else None


def _segments(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _fit(segments: Sequence[str], pattern: Sequence[str]) -> tuple[int, ...] | None:
    """Return the kind of fit of each segment; None if one does not fit."""
    fits: list[int] = []
    for index, segment in enumerate(segments):
        if segment == _CUT:
            return tuple(fits) if index <= len(pattern) or _takes_rest(pattern[-1:]) else None
        if index < len(pattern) and not _takes_rest(pattern[index : index + 1]):
            kind = _how(segment, pattern[index])
            if kind is None:
                return None
            fits.append(kind)
            continue
        return _fit_rest(segments[index:], pattern[index:], fits)
    return tuple(fits) if len(pattern) == len(segments) else None


def _fit_rest(segments: Sequence[str], pattern: Sequence[str], fits: Sequence[int]) -> tuple[int, ...] | None:
    """Fit a pattern that begins with a parameter of several segments; its rest must match the path's end."""
    if not pattern:
        return None
    after = len(pattern) - 1
    taken = len(segments) - after
    if taken < 1:
        return None
    ends = _fit(segments[taken:], pattern[1:]) if after else ()
    return None if ends is None else (*fits, *[_REST] * taken, *ends)


def _how(segment: str, pattern: str) -> int | None:
    if segment == pattern:
        return _EXACT
    if "{" in pattern:
        if segment.startswith(":"):
            return _FOLDED
        return _ONE_OF_FEW if _could_be(segment, pattern) else None
    return _NAMED if segment == _NAME else None


def _could_be(segment: str, pattern: str) -> bool:
    """Return whether a text has the prefix and suffix of a pattern such as ``{name}.json``."""
    before, _, rest = pattern.partition("{")
    after = rest.rpartition("}")[2]
    return len(segment) > len(before) + len(after) and segment.startswith(before) and segment.endswith(after)


def _takes_rest(segment: Sequence[str]) -> bool:
    return bool(segment) and segment[0].endswith("...}")
