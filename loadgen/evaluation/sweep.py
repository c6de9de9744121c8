"""ROC curve over the bound of one statistic: the power of this statistic alone against noise.

A ledger and the events hold every detected change point with its p-value and its size, whatever later steps
decided. So a curve of a bound on p-value or size, applied right after detection to each change point by
itself, is exact. Curves of the whole pipeline are different: change points that pass a looser bound affect
what later steps remember and merge, which is not in a ledger. Those curves take a run for each setting
(loadgen.evaluation.runs).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.evaluation.matching import Tolerances, explain_cost
from loadgen.evaluation.model import LedgerLine, ScoredEvent, TruthRow
from loadgen.evaluation.rates import Rate
from pipeline.model import FloatArray

MAX_POINTS = 200


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """Result of one bound: share of expected rows with a sign of them, false alarms per scanned series."""

    bound: float
    recall: Rate
    false: Rate


@dataclass(frozen=True, slots=True)
class SweepCurve:
    """Points from the strictest bound to the loosest."""

    setting: str
    points: tuple[SweepPoint, ...]


@dataclass(frozen=True, slots=True)
class _ChangePoints:
    """Every change point of a run: the expected row that it is a sign of (-1: none), p-value and size."""

    row: FloatArray
    p_value: FloatArray
    size: FloatArray


def ledger_curves(
    truth: Sequence[TruthRow],
    events: Sequence[ScoredEvent],
    ledger: Iterable[LedgerLine],
    *,
    scanned: int,
    tolerances: Tolerances,
) -> tuple[SweepCurve, ...]:
    """Return the curves of a bound on the p-value and of one on the size of a change.

    Args:
        truth: Truth of the run.
        events: Reported events.
        ledger: Dropped candidates.
        scanned: Number of series scanned, counted once per scan.
        tolerances: As for matching.
    """
    expected = [row for row in truth if row.expected]
    change_points = _label(expected, events, ledger, tolerances)
    return (
        SweepCurve(
            "p-value at most", _points(change_points, change_points.p_value, len(expected), scanned, sign=1.0)
        ),
        SweepCurve(
            "size at least", _points(change_points, -change_points.size, len(expected), scanned, sign=-1.0)
        ),
    )


def _label(
    rows: Sequence[TruthRow],
    events: Iterable[ScoredEvent],
    ledger: Iterable[LedgerLine],
    tolerances: Tolerances,
) -> _ChangePoints:
    holding: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(rows):
        for series in row.series:
            holding.setdefault((row.service, series), []).append(index)
    labels, p_values, sizes = [], [], []
    for event in (*events, *map(_as_event, ledger)):
        tolerance = tolerances.of(event.workload)
        costs = {
            index: explain_cost(rows[index], event, tolerance)
            for index in holding.get((event.service, event.metric), ())
        }
        best = min(costs, key=lambda index: costs[index], default=-1)
        labels.append(best if best >= 0 and np.isfinite(costs[best]) else -1)
        p_values.append(event.p_value)
        sizes.append(abs(event.delta))
    return _ChangePoints(np.array(labels, dtype=np.float64), np.array(p_values), np.array(sizes))


def _as_event(line: LedgerLine) -> ScoredEvent:
    return ScoredEvent(
        id="",
        service=line.service,
        workload=line.workload,
        metric_kind=line.metric_kind,
        metric=line.metric,
        kind="",
        change_time=line.change_time,
        detected_time=line.scan_end,
        before=0.0,
        after=line.delta,
        delta=line.delta,
        p_value=line.p_value,
    )


def _points(
    change_points: _ChangePoints, statistic: FloatArray, rows: int, scanned: int, *, sign: float
) -> tuple[SweepPoint, ...]:
    """Sweep a bound, below which change points pass, over at most MAX_POINTS of the statistic's values."""
    best = np.full(rows, np.inf)
    true = change_points.row >= 0
    np.minimum.at(best, change_points.row[true].astype(np.int64), statistic[true])
    best, false = np.sort(best), np.sort(statistic[~true])
    noise = max(scanned - int(true.sum()), len(false))
    bounds = np.unique(statistic)
    if len(bounds) > MAX_POINTS:
        bounds = bounds[np.unique(np.linspace(0, len(bounds) - 1, MAX_POINTS).round().astype(np.int64))]
    return tuple(
        SweepPoint(
            bound=sign * float(bound),
            recall=Rate(int(np.searchsorted(best, bound, side="right")), rows),
            false=Rate(int(np.searchsorted(false, bound, side="right")), noise),
        )
        for bound in bounds
    )
