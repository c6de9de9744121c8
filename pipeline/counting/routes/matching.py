"""The route that a type of request found in logs belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar


class Route(Protocol):
    """What of a route says which requests it answers; see ``NamedRoute``."""

    @property
    def methods(self) -> tuple[str, ...]:
        """In capitals; empty where any is answered."""

    @property
    def pattern(self) -> str:
        """Path with parameters in braces."""


R = TypeVar("R", bound=Route)

_NAME = ":name"
"""How logs spell a segment where names were too many: it may stand for a name that a route has in full."""

_CUT = "…"
"""Stands for the rest of a path that is too deep."""

_EXACT, _FOLDED, _ONE_OF_FEW, _REST, _NAMED = range(5)
"""How a segment fits, best first: the same text; a parameter that logs folded; a parameter of which logs have
each value; a part of a parameter over several segments; a name that logs folded."""


def match_type(request_type: str, routes: Iterable[R]) -> R | None:
    """Return the route that answers a type such as ``GET /orders/:id``; None where there is none.

    Of several the one that says most from the left on, as routers decide: its own text before parameters,
    those before parameters of several segments. Trailing slashes do not count, and HEAD is answered by GET.

    Args:
        request_type: Method and path, as ``smidgen agent logs`` names types.
        routes: In the order of the source, of which the first wins where two fit as well.
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
    """Return how each segment fits, None if one does not."""
    found: list[int] = []
    for index, segment in enumerate(segments):
        if segment == _CUT:
            return tuple(found) if index <= len(pattern) or _takes_rest(pattern[-1:]) else None
        if index < len(pattern) and not _takes_rest(pattern[index : index + 1]):
            how = _how(segment, pattern[index])
            if how is None:
                return None
            found.append(how)
            continue
        return _fit_rest(segments[index:], pattern[index:], found)
    return tuple(found) if len(pattern) == len(segments) else None


def _fit_rest(
    segments: Sequence[str], pattern: Sequence[str], found: Sequence[int]
) -> tuple[int, ...] | None:
    """Fit what begins with a parameter of several segments; what follows it has to end the path."""
    if not pattern:
        return None
    after = len(pattern) - 1
    taken = len(segments) - after
    if taken < 1:
        return None
    ends = _fit(segments[taken:], pattern[1:]) if after else ()
    return None if ends is None else (*found, *[_REST] * taken, *ends)


def _how(segment: str, pattern: str) -> int | None:
    if segment == pattern:
        return _EXACT
    if "{" in pattern:
        if segment.startswith(":"):
            return _FOLDED
        return _ONE_OF_FEW if _could_be(segment, pattern) else None
    return _NAMED if segment == _NAME else None


def _could_be(segment: str, pattern: str) -> bool:
    """Return whether a text begins and ends as a pattern does around its parameter: ``{name}.json``."""
    before, _, rest = pattern.partition("{")
    after = rest.rpartition("}")[2]
    return len(segment) > len(before) + len(after) and segment.startswith(before) and segment.endswith(after)


def _takes_rest(segment: Sequence[str]) -> bool:
    return bool(segment) and segment[0].endswith("...}")
