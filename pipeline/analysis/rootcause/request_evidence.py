"""Relation of changes to a type of request that costs more, by call graphs of two kinds.

The source's is computed where the repository is, and comes with the change (``RouteReach``). The other one is
what production shows: the stacks under the endpoint that answers the request. Where both are known, the
larger attribution counts: source does not resolve every call, and stacks miss code that rarely runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipeline.analysis.rootcause.attribution import NO_PART, Attribution
from pipeline.analysis.rootcause.request_changes import RequestReach, attribute_reach
from pipeline.counting.routes import NamedRoute, match_type, read_route, route_named
from pipeline.model import Candidate, Change, RouteReach
from pipeline.model.frames import series_of


def request_types(candidate: Candidate) -> dict[str, float]:
    """Return the types of requests that may cost more, each with its probability; empty of other candidates.

    Each change of cost counts by its share, and each type that it may be by its probability; where that is
    not known, one is as likely as another.
    """
    changes = candidate.costlier_requests
    whole = sum(change.share for change in changes)
    probabilities: dict[str, float] = defaultdict(float)
    for change in changes:
        part = change.share / whole if whole > 0 else 1.0 / len(changes)
        likely = change.likely or dict.fromkeys(change.types, 1.0)
        for type_, chance in likely.items():
            probabilities[type_] += part * chance / sum(likely.values())
    return dict(probabilities)


def route_reached(change: Change, type_: str) -> RouteReach | None:
    """Return the route of a change's application that answers a type, None if no route does."""
    name = _route_of(type_, tuple(route.route for route in change.routes))
    return next((route for route in change.routes if route.route == name), None)


@lru_cache(maxsize=1024)
def _route_of(type_: str, names: tuple[str, ...]) -> str | None:
    """Return the route that answers a type: changes of one release name the same routes."""
    route = match_type(type_, map(route_named, names))
    return route.name if route else None


def attribute_by_source(changes: Sequence[Change], type_: str) -> tuple[Attribution | None, ...]:
    """Attribute a request to changes by their source's routes; None for a change without the route."""
    routes = (route_reached(change, type_) for change in changes)
    return tuple(_attribution(route) if route else None for route in routes)


def _attribution(reach: RouteReach) -> Attribution:
    if not reach.nearness:
        return NO_PART
    return Attribution(reach.share, 0.0, reach.nearness, max(reach.rank, 1), reach.chance)


@dataclass(frozen=True, slots=True)
class ObservedCalls:
    """The call graph that stacks show under each endpoint.

    Args:
        routes: Of the endpoints that are paths.
        depths: Endpoint → subroutine → fewest calls from the endpoint, without those that all endpoints have
            in common: they are the framework's.
        requests: Subroutine → under how many endpoints it runs.
        subroutines: All that run.
    """

    routes: tuple[NamedRoute, ...]
    depths: dict[str, dict[str, int]]
    requests: Counter[str]
    subroutines: frozenset[str]

    def reach(self, type_: str) -> RequestReach | None:
        """Return the reach of a type of request, None if no endpoint answers it."""
        route = match_type(type_, self.routes)
        if route is None:
            return None
        return RequestReach(type_, self.depths[route.name], self.requests, self.subroutines)


def observed_calls(stacks: Iterable[Sequence[str]]) -> ObservedCalls:
    """Read the call graph under endpoints.

    Args:
        stacks: Root first, of elements as ``pipeline.model.frames`` spells them.
    """
    ways: dict[str, set[tuple[str, ...]]] = {}
    every: set[str] = set()
    for stack in stacks:
        keys = [series_of(label) for label in stack]
        every.update(key.name for key in keys if key.kind == "subroutine")
        for index, key in enumerate(keys):
            if key.kind == "endpoint":
                way = tuple(each.name for each in keys[index + 1 :] if each.kind == "subroutine")
                ways.setdefault(key.name, set()).add(way)
    routes = tuple(route for name in sorted(ways) if (route := read_route(name)))
    run = {route.name: frozenset().union(*ways[route.name]) for route in routes}
    requests = Counter(name for names in run.values() for name in names)
    common = {name for name, many in requests.items() if many == len(routes)} if len(routes) > 1 else set()
    depths = {route.name: _depths(ways[route.name], common) for route in routes}
    return ObservedCalls(routes, depths, requests, frozenset(every))


def _depths(ways: Iterable[Sequence[str]], common: set[str]) -> dict[str, int]:
    depths: dict[str, int] = {}
    for way in ways:
        depth = 0
        for name in way:
            depths[name] = min(depth, depths.get(name, depth))
            depth += name not in common
    return depths


def attribute_request(
    changes: Sequence[Change], type_: str, observed: RequestReach | None
) -> tuple[Attribution | None, ...]:
    """Attribute a request to changes by source and by stacks, the larger value of both; None: not known."""
    by_source = attribute_by_source(changes, type_)
    by_stacks = attribute_reach(observed, changes) if observed else (None,) * len(changes)
    return tuple(
        min(
            (attribution for attribution in both if attribution),
            key=lambda attribution: attribution.chance,
            default=None,
        )
        for both in zip(by_source, by_stacks, strict=True)
    )
