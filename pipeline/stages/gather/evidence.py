"""Fetches what dedup and rootcause reason about: stacks around a change point, changes just before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pipeline.codec.inputs import change_from_json
from pipeline.dedup.evidence import TOLERANCE_WINDOWS
from pipeline.model import Candidate, Change, Scan, SeriesMatrix, StackMatrix
from pipeline.rootcause.ranking import candidate_changes
from pipeline.stacks import Series
from pipeline.storage.interface import Store
from pipeline.units import DAY_S
from pipeline.workloads import Workload

_EARLIER_DAYS = 7


def stacks_around(
    store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload
) -> StackMatrix:
    """Return the service's stacks just before the first and just after the last of the change points.

    Before is as long as after, and an analysis window at least: against a longer past, the mix of a
    service's load, which changes by the hour, would pass for what the change did. The windows next to the
    change point are left out: they may hold both regimes.
    """
    return store.stacks(scan.service, *_spans(scan, candidates, workload))


def stacks_near(store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload) -> StackMatrix:
    """Return the same as ``stacks_around`` as if the scan had ended half-way after the last change point."""
    last = max(candidate.change_time for candidate in candidates)
    return stacks_around(store, replace(scan, end=(last + scan.end) / 2), candidates, workload)


def stacks_on_earlier_days(
    store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload
) -> list[StackMatrix]:
    """Return the same as ``stacks_around`` at the same hours of each day of the week before.

    Of a workload whose history is shorter than that, none: there the hour of the day plays no part.
    """
    found = []
    (_, first), (_, end) = _spans(scan, candidates, workload)
    # A day on which the same hours reach beyond the change would take it for usual.
    for day in range(max(1, math.ceil((end - first) / DAY_S)), _EARLIER_DAYS + 1):
        spans = [
            (first - day * DAY_S, last - day * DAY_S) for first, last in _spans(scan, candidates, workload)
        ]
        if spans[0][0] < scan.start:
            break
        matrix = store.stacks(scan.service, *spans)
        if matrix.total_before and matrix.total_after:
            found.append(matrix)
    return found


def stacks_just_before(
    store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload
) -> list[StackMatrix]:
    """Return the same as ``stacks_around`` as if the change had been earlier, by one span after the other.

    Spans follow each other without overlap, the nearest first, as far back as the scan sees. Nothing is left
    out between before and after, where nothing is known to have changed.
    """
    (_, first), (last, end) = _spans(scan, candidates, workload)
    span_s = max(end - last, workload.resolution_s)
    found = []
    while first - 2 * span_s >= scan.start - 1e-6:
        matrix = store.stacks(scan.service, (first - 2 * span_s, first - span_s), (first - span_s, first))
        if matrix.total_before and matrix.total_after:
            found.append(matrix)
        first -= 2 * span_s
    return found


def _spans(
    scan: Scan, candidates: Sequence[Candidate], workload: Workload
) -> tuple[tuple[float, float], tuple[float, float]]:
    first = min(candidate.change_time for candidate in candidates) - workload.resolution_s
    last = max(candidate.change_time for candidate in candidates) + workload.resolution_s
    span_s = max(scan.end - last, workload.analysis_s)
    # What began with the scan's windows still has to be held against an analysis window before it.
    earliest = min(scan.start, first - workload.analysis_s)
    return (max(first - span_s, earliest), first), (last, scan.end)


def changes_before_each(
    store: Store,
    scan: Scan,
    candidates: Sequence[Candidate],
    workload: Workload,
    *,
    tolerance: int = TOLERANCE_WINDOWS,
) -> list[tuple[Change, ...]]:
    """Return the changes deployed just before each candidate's change point, read once for all of them.

    ``tolerance`` is by how many windows a change point may be early.
    """
    if not candidates:
        return []
    tolerance_s, lookback_s = tolerance * workload.resolution_s, workload.lookback_s
    times = [candidate.change_time for candidate in candidates]
    rows = store.rows("changes", scan.service, min(times) - lookback_s, max(times) + tolerance_s + 1e-3)
    # Diffs are for their words; only the ranking of suspects reads those.
    changes = [change_from_json({**row, "content": ""}) for row in rows]
    return [
        candidate_changes(changes, time, lookback_s=lookback_s, tolerance_s=tolerance_s) for time in times
    ]


def changes_before(store: Store, scan: Scan, candidate: Candidate, workload: Workload) -> tuple[Change, ...]:
    """Return the changes deployed just before a candidate's change point."""
    return changes_before_each(store, scan, [candidate], workload)[0]


def rows_of_series(matrix: SeriesMatrix) -> dict[Series, int]:
    """Return the row of each series of a matrix."""
    return {series: row for row, series in enumerate(zip(matrix.kinds, matrix.names, strict=True))}
