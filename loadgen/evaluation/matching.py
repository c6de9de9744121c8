"""Assignment of events to truth rows, one to one if possible, by service, time and series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from loadgen.evaluation.model import Outcome, ScoredEvent, TruthRow
from pipeline.model import FloatArray
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.workloads import Workload

TOLERANCE_WINDOWS = 2
"""By how many windows an estimate may lie outside the analysis window's length (as in the stages)."""

DEFAULT_TOLERANCE_S = 4 * 3600.0 + 2 * 600.0
"""For a workload whose windows are not known: that of ``frontfaas-small``."""

NEAR_S = 86_400.0
"""A false positive within a day of a regression of its series is a near miss: right but for the time."""

_IMPOSSIBLE = 1e6  # dwarfs any sum of real costs, which are below 4 each

_BY_GROUP = 2.0
"""Costs from here on are of rows that match an event only by its group, or only by time."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Largest distance of an event's change time from the truth, by workload, in seconds."""

    by_workload: Mapping[str, float] = field(default_factory=dict)
    otherwise: float = DEFAULT_TOLERANCE_S

    def of(self, workload: str) -> float:
        """Return the tolerance for a workload's events."""
        return self.by_workload.get(workload, self.otherwise)


@dataclass(frozen=True, slots=True)
class MatchedEvent:
    """An event with its outcome, and the row that explains it.

    The row of a false positive is one that should not be reported, or None. ``near`` is then an expected row
    of the same series at another time, at most NEAR_S away, if there is one.
    """

    event: ScoredEvent
    outcome: Outcome
    truth: TruthRow | None
    near: TruthRow | None = None


@dataclass(frozen=True, slots=True)
class Matching:
    """All events with their outcomes, and the expected rows without event; both in a canonical order."""

    judged: tuple[MatchedEvent, ...]
    missed: tuple[TruthRow, ...]

    def having(self, outcome: Outcome) -> tuple[MatchedEvent, ...]:
        """Return the events of one outcome."""
        return tuple(judged for judged in self.judged if judged.outcome == outcome)


def tolerance_s(workload: Workload) -> float:
    """Return the largest distance of an event's change time from the truth, in seconds.

    A scan may date a change anywhere in its analysis window, so at most the window's length away. Two more
    windows of the series allow for a start inside a window and for rounding of the estimate.
    """
    return workload.analysis_s + TOLERANCE_WINDOWS * workload.resolution_s


def in_reach(truth: Sequence[TruthRow], workloads: Sequence[Workload]) -> tuple[TruthRow, ...]:
    """Return the rows with series that any of the workloads scans: gCPU or service-level metrics.

    A row with service-level metrics needs one that passes a workload's ``metrics``, if the row names any.
    """
    return tuple(row for row in truth if any(_reaches(workload, row) for workload in workloads))


def _reaches(workload: Workload, row: TruthRow) -> bool:
    if row.gcpu or workload.series == "gcpu":
        return row.gcpu and workload.series == "gcpu"
    return not row.series or any(workload.looks_at(name) for name in row.series)


def match(truth: Sequence[TruthRow], events: Sequence[ScoredEvent], tolerances: Tolerances) -> Matching:
    """Assign each event to the row that explains it.

    Expected rows and events are paired so that as many rows as possible have an event; of all such pairings
    the one of least cost is taken. Each remaining event goes to the expected row that explains it best, if
    any. Of a row's events the first detected is the true positive, the others are repeated. An event without
    expected row goes to the best other row, if any: it is allowed if that row may be reported, otherwise a
    false positive. The same holds if the event's own metric is a series of another row, while expected rows
    match the event only by its group.

    The order of rows and events does not matter.
    """
    expected = sorted((row for row in truth if row.expected), key=_row_key)
    unexpected = sorted((row for row in truth if not row.expected), key=_row_key)
    ordered = sorted(events, key=_event_key)  # the earliest detected comes first
    costs = _cost_matrix(ordered, expected, tolerances)
    false = _cost_matrix(ordered, unexpected, tolerances)
    own = false.min(axis=1, initial=np.inf) < _BY_GROUP
    costs[own[:, None] & (costs >= _BY_GROUP)] = np.inf
    assigned = _assign(costs)
    reported: set[int] = set()
    judged = []
    for index, event in enumerate(ordered):
        row = assigned.get(index)
        if row is None:
            false_row = _closest(false[index], unexpected)
            near = None if false_row else _nearest(event, expected)
            outcome: Outcome = "allowed" if false_row and false_row.allowed else "false_positive"
            judged.append(MatchedEvent(event, outcome, false_row, near))
        else:
            judged.append(
                MatchedEvent(event, "repeated" if row in reported else "true_positive", expected[row])
            )
            reported.add(row)
    missed = tuple(row for index, row in enumerate(expected) if index not in reported)
    return Matching(tuple(judged), missed)


def explain_cost(row: TruthRow, event: ScoredEvent, tolerance: float) -> float:
    """Return the cost of a row as explanation of an event: 0 best, below 4, infinite if it is none.

    A row that matches only the event's group costs more than one that matches its own metric; then time
    counts, then the distance of the series from the cause.
    """
    if row.service != event.service or event.detected_time <= row.start:
        return float("inf")
    if row.gcpu and is_gcpu(event.metric_kind) and row.delta * event.delta < 0:
        return float("inf")
    gap = max(row.start - event.change_time, event.change_time - row.until, 0.0)
    if gap > tolerance:
        return float("inf")
    return _series_cost(row, event) + (gap / tolerance if tolerance else 0.0)


def _series_cost(row: TruthRow, event: ScoredEvent) -> float:
    if not row.series:  # the whole service: any series, but a row that names the series is better
        return _BY_GROUP + 0.9
    positions = {name: position for position, name in reversed(list(enumerate(row.series)))}
    if event.metric in positions:
        return 0.5 * positions[event.metric] / len(positions)
    shared = [positions[name] for name in event.group if name in positions]
    return _BY_GROUP + 0.5 * min(shared) / len(positions) if shared else float("inf")


def _cost_matrix(
    events: Sequence[ScoredEvent], rows: Sequence[TruthRow], tolerances: Tolerances
) -> FloatArray:
    costs = np.full((len(events), len(rows)), np.inf)
    for i, event in enumerate(events):
        tolerance = tolerances.of(event.workload)
        for j, row in enumerate(rows):
            costs[i, j] = explain_cost(row, event, tolerance)
    return costs


def _assign(costs: FloatArray) -> dict[int, int]:
    """Return event → row for every event that some row explains."""
    assigned = dict(cheapest_pairs(costs))
    for event in range(len(costs)):
        if event not in assigned and np.isfinite(costs[event]).any():
            assigned[event] = int(costs[event].argmin())
    return assigned


def cheapest_pairs(costs: FloatArray) -> list[tuple[int, int]]:
    """Return as many disjoint (row, column) pairs as possible, and of all such sets the cheapest.

    Args:
        costs: (rows, columns) below 4 each, infinite where a pair is impossible.
    """
    rows, columns = linear_sum_assignment(np.where(np.isfinite(costs), costs, _IMPOSSIBLE))
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(row, column) for row, column in pairs if np.isfinite(costs[row, column])]


def _closest(costs: FloatArray, rows: Sequence[TruthRow]) -> TruthRow | None:
    """Return the row of least cost, the first of equals; None if all costs are infinite."""
    return rows[int(costs.argmin())] if np.isfinite(costs).any() else None


def _nearest(event: ScoredEvent, rows: Sequence[TruthRow]) -> TruthRow | None:
    costs = [explain_cost(row, event, NEAR_S) for row in rows]
    return _closest(np.array(costs), rows) if costs else None


def _row_key(row: TruthRow) -> tuple[str, float, str]:
    return (row.service, row.start, row.id)


def _event_key(event: ScoredEvent) -> tuple[float, float, str, str, str, str]:
    return (
        event.detected_time,
        event.change_time,
        event.service,
        event.workload,
        event.metric,
        event.id,
    )
