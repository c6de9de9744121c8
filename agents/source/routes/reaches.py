"""Reaches of an application's handlers, and the distances of commits from its routes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import orjson

from agents.source.changes import Described
from agents.source.routes.application import Application
from agents.source.routes.call_graph import Reach
from agents.source.routes.route import Route
from pipeline.analysis.rootcause import RequestReach, attribute_reach
from pipeline.model import Change, RouteCall, RouteReach

ROUTES_BYTES = 150_000
MOST_ROUTES = 2000
MOST_CALLS = 50
"""Most bytes of a change's routes in its message, and most calls of a way, of which the last are kept."""


class Reaches:
    """The reach of each handler of an application, computed on request."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self._subroutines = frozenset(application.graph.defined)
        self._reaches: dict[str, Reach] = {}
        self._requests: Counter[str] = Counter()
        for handler in {route.handler for route in application.routes}:
            self._requests.update(self.of(handler).depths.keys())

    def of(self, handler: str) -> Reach:
        """Return what a handler reaches."""
        if handler not in self._reaches:
            self._reaches[handler] = self.application.graph.reach(handler)
        return self._reaches[handler]

    def request(self, type_: str, route: Route) -> RequestReach:
        """Return the reach of the route that answers a type of request."""
        return RequestReach(type_, self.of(route.handler).depths, self._requests, self._subroutines)

    def describe(self, described: Sequence[Described]) -> list[Described]:
        """Return commits, in the same order, each with its distance to every route of the application.

        Commits whose modified subroutines are not known are returned as they are.
        """
        changes = [change_described.change for change_described in described]
        reaches: list[list[RouteReach]] = [[] for _ in changes]
        unknown: set[int] = set()
        for route in {route.name: route for route in self.application.routes}.values():
            parts = attribute_reach(self.request(route.name, route), changes)
            for index, (change, part) in enumerate(zip(changes, parts, strict=True)):
                if part is None:
                    unknown.add(index)
                elif part.chance >= 1.0:
                    reaches[index].append(RouteReach(route.name))
                else:
                    calls = self._calls(route, change)
                    reach = RouteReach(route.name, part.counted, part.nearness, part.rank, part.chance, calls)
                    reaches[index].append(reach)
        return [
            change_described if index in unknown else _with_routes(change_described, reaches[index])
            for index, change_described in enumerate(described)
        ]

    def _calls(self, route: Route, change: Change) -> tuple[RouteCall, ...]:
        reach, nearness = self.of(route.handler), self.request(route.name, route).nearness
        modified = [name for name in change.subroutines if name in reach.depths]
        nearest = max(modified, key=lambda name: (nearness[name], name))
        defined = self.application.graph.defined
        return tuple(
            RouteCall(name, *defined.get(name, ("", 0))) for name in reach.way(nearest)[-MOST_CALLS:]
        )


def _with_routes(described: Described, routes: Sequence[RouteReach]) -> Described:
    """Return a commit with as many routes as fit, the nearest first."""
    size, nearest = 0, []
    for route in sorted(routes, key=lambda route: -route.nearness)[:MOST_ROUTES]:
        size += len(orjson.dumps(route)) + 1
        if size > ROUTES_BYTES:
            break
        nearest.append(route)
    lost = len(routes) - len(nearest)
    left_out = (f"{lost} of {len(routes)} routes",) if lost else ()
    change = replace(described.change, routes=tuple(nearest))
    return replace(described, change=change, left_out=(*described.left_out, *left_out))
