"""The stacks around change points, which deduplication and root-cause analysis reason about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pipeline.model import Candidate, Scan, StackMatrix
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import StackQuery, Store

Stack = tuple[str, ...]

_EARLIER_DAYS = 7


def stacks_around(
    store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload
) -> StackMatrix:
    """Return the service's stacks just before the first and just after the last of the change points.

    Before is as long as after, and an analysis window at least: against a longer past, the mix of a
    service's load, which changes by the hour, would pass for what the change did. The windows next to the
    change point are left out: they may hold both regimes.
    """
    return _stacks_of(store, scan, *_spans(scan, candidates, workload))


def stacks_near(store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload) -> StackMatrix:
    """Return the same as ``stacks_around`` as if the scan had ended half-way after the last change point."""
    last = max(candidate.change_time for candidate in candidates)
    return stacks_around(store, replace(scan, end=(last + scan.end) / 2), candidates, workload)


def stacks_on_earlier_days(
    store: Store,
    scan: Scan,
    candidates: Sequence[Candidate],
    workload: Workload,
    *,
    known: Sequence[Stack] = (),
) -> list[StackMatrix]:
    """Return the same as ``stacks_around`` at the same hours of each day of the week before.

    Of a workload whose history is shorter than that, none: there the hour of the day plays no part.

    Args:
        store: Of the stacks.
        scan: Whose history is asked.
        candidates: Whose change points.
        workload: How long its spans are.
        known: Stacks held already: for equal ones, a day holds the same object.
    """
    found: list[StackMatrix] = []
    held = {stack: stack for stack in known}
    (_, first), (_, end) = _spans(scan, candidates, workload)
    # A day on which the same hours reach beyond the change would take it for usual.
    for day in range(max(1, math.ceil((end - first) / DAY_S)), _EARLIER_DAYS + 1):
        spans = [
            (first - day * DAY_S, last - day * DAY_S) for first, last in _spans(scan, candidates, workload)
        ]
        if spans[0][0] < scan.start:
            break
        matrix = _stacks_of(store, scan, *spans)
        if matrix.total_before and matrix.total_after:
            stacks = tuple(held.setdefault(stack, stack) for stack in matrix.stacks)
            found.append(replace(matrix, stacks=stacks))
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
        matrix = store.counts(
            StackQuery(scan.service, (first - 2 * span_s, first - span_s), (first - span_s, first))
        )
        if matrix.total_before and matrix.total_after:
            found.append(matrix)
        first -= 2 * span_s
    return found


def _stacks_of(
    store: Store, scan: Scan, before: tuple[float, float], after: tuple[float, float]
) -> StackMatrix:
    """Return the stacks of two spans, of which the first reaches as far back as it must to hold samples.

    A service that runs in office hours has none just before what changed in the morning.
    """
    first, last = before
    matrix = store.counts(StackQuery(scan.service, before, after))
    while matrix.total_after and not matrix.total_before and first > scan.start:
        first = max(last - 2 * (last - first), scan.start)
        matrix = store.counts(StackQuery(scan.service, (first, last), after))
    return matrix


def _spans(
    scan: Scan, candidates: Sequence[Candidate], workload: Workload
) -> tuple[tuple[float, float], tuple[float, float]]:
    first = min(candidate.change_time for candidate in candidates) - workload.resolution_s
    last = max(candidate.change_time for candidate in candidates) + workload.resolution_s
    span_s = max(scan.end - last, workload.analysis_s)
    # What began with the scan's windows still has to be held against an analysis window before it.
    earliest = min(scan.start, first - workload.analysis_s)
    return (max(first - span_s, earliest), first), (last, scan.end)
