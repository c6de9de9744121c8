"""Suspects of requests that cost more: commits of a release along the call graph of their handlers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from agents.source.routes.application import Application
from agents.source.routes.call_graph import Reach
from agents.source.routes.reaches import Reaches
from agents.source.routes.route import Route
from pipeline.analysis.rootcause import over_cases, rank_request_changes
from pipeline.counting.routes import match_type
from pipeline.model import Change, Suspect

MOST_METHODS = 5
"""Methods of one commit that are named, the nearest first."""


@dataclass(frozen=True, slots=True)
class ChangedMethod:
    """A method that a commit modifies, and the calls that lead to it from the handler, both included."""

    name: str
    path: str
    line: int
    way: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestSuspect:
    """A commit that may have made a request cost more.

    Args:
        change: The commit: id, time, author, title, text, files, difference.
        score: Probability to be the root cause.
        factors: Of the nearest request, see ``pipeline.analysis.rootcause.request_changes``.
        methods: What it modifies of the request's reach, at most MOST_METHODS.
        churn: Lines that it adds and removes; None where that is not known.
    """

    change: Change
    score: float
    factors: Mapping[str, float]
    methods: tuple[ChangedMethod, ...]
    churn: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class RequestFinding:
    """The routes of the types that may cost more, and the suspects; types without a route have none."""

    routes: Mapping[str, Route]
    suspects: tuple[RequestSuspect, ...]


class RequestSuspects:
    """Ranks the commits of a release for types of requests.

    Args:
        application: Of the new release.
        changes: All its commits.
        churn: Id of a commit → lines that it adds and removes.
    """

    def __init__(
        self,
        application: Application,
        changes: Sequence[Change],
        churn: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        self.application = application
        self.changes = tuple(changes)
        self._churn = churn or {}
        self._reaches = Reaches(application)

    def find(self, types: Mapping[str, float]) -> RequestFinding:
        """Return the suspects of one change of cost, which may be that of any of some types.

        A commit's score is its probability over the types, each by its own: what none of their routes
        reaches takes no part.

        Args:
            types: Type of request → probability that it is the one.
        """
        routes = {entry: route for entry in types if (route := match_type(entry, self.application.routes))}
        if not routes:
            return RequestFinding({}, ())
        cases = [
            {
                ranked.change.id: ranked
                for ranked in rank_request_changes(self._reaches.request(*entry), self.changes)
            }
            for entry in routes.items()
        ]
        reaches = [self._reaches.of(route.handler) for route in routes.values()]
        reached = list(dict.fromkeys(chain.from_iterable(cases)))
        scores = [[case[id_].score if id_ in case else 0.0 for id_ in reached] for case in cases]
        score, best = over_cases([types[entry] for entry in routes], scores)
        suspects = (
            self._suspect(float(score[index]), cases[best[index]][reached[index]], reaches[best[index]])
            for index in sorted(range(len(reached)), key=lambda index: -score[index])
        )
        return RequestFinding(routes, tuple(suspects))

    def _suspect(self, score: float, suspect: Suspect, reach: Reach) -> RequestSuspect:
        modified = [name for name in suspect.change.subroutines if name in reach.depths]
        modified.sort(key=lambda name: (reach.depths[name], name))
        methods = (self._method(name, reach) for name in modified[:MOST_METHODS])
        churn = self._churn.get(suspect.change.id)
        return RequestSuspect(suspect.change, score, suspect.factors, tuple(methods), churn)

    def _method(self, name: str, reach: Reach) -> ChangedMethod:
        path, line = self.application.graph.defined.get(name, ("", 0))
        return ChangedMethod(name, path, line, reach.way(name))
