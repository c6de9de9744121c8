"""A change point that may be a regression, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pipeline.model.decision import CostlierRequests, Decision, DomainDecision
from pipeline.model.metric_kind import MetricKind, RegressionKind
from pipeline.model.series import SeriesKey


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change point that may be a regression, with its levels on both sides.

    Levels are gCPU ratios for gCPU series and the metric's own unit for service-level metrics.
    ``change_time`` is the start of the first window of the new regime.
    """

    metric_kind: MetricKind
    metric: str
    kind: RegressionKind
    change_time: float
    before: float
    after: float
    p_value: float
    statistic: float  # the test's value: likelihood-ratio chi-squared
    group: tuple[Candidate, ...] = ()  # merged members, the representative left out
    passed: tuple[Decision, ...] = ()  # what steps decided that let it through, in order
    domains: tuple[DomainDecision, ...] = ()  # what its cost domains said
    change_time_interval: tuple[float, float] | None = None  # of 95 %; None from versions without it

    @property
    def series(self) -> SeriesKey:
        """The series that it is a change point of."""
        return SeriesKey(self.metric_kind, self.metric)

    @property
    def costlier_requests(self) -> tuple[CostlierRequests, ...]:
        """The changes of cost that a comparison of releases found it to consist of."""
        return tuple(decision.requests for decision in self.passed if decision.requests is not None)

    @property
    def change_time_span(self) -> tuple[float, float]:
        """The interval of change times, or the change point alone where none is known."""
        return self.change_time_interval or (self.change_time, self.change_time)

    @property
    def delta(self) -> float:
        """The change of level, in the series' own unit."""
        return self.after - self.before

    @property
    def relative(self) -> float:
        """The change as a share of the level before; infinite for what did not exist before."""
        return self.delta / self.before if self.before else float("inf")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that a step dropped: the ledger's line."""

    candidate: Candidate
    decision: Decision


@dataclass(frozen=True, slots=True)
class Joined:
    """A candidate that turned out to be part of a regression which an earlier scan passed on."""

    regression: str  # the id of its event
    candidate: Candidate


def divide(
    decided: Iterable[tuple[Candidate, Decision]],
) -> tuple[tuple[Candidate, ...], tuple[Dropped, ...]]:
    """Split candidates by one step's decisions; those that passed carry theirs along."""
    decided = list(decided)
    passed = tuple(
        replace(candidate, passed=(*candidate.passed, decision))
        for candidate, decision in decided
        if decision.passed
    )
    dropped = tuple(Dropped(candidate, decision) for candidate, decision in decided if not decision.passed)
    return passed, dropped
