"""Stacks around change points, as evidence for deduplication and root-cause analysis."""

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

    The span before is as long as the span after, and at least an analysis window. A longer span before would
    attribute hourly changes of the load's mix to the change. The windows next to a change point are left
    out: they may hold samples of both regimes.
    """
    return _stacks_of(store, scan, *_spans(scan, candidates, workload))


def stacks_near(store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload) -> StackMatrix:
    """Return ``stacks_around`` for a scan that ends halfway between the last change point and its end."""
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
    """Return ``stacks_around`` at the same hours of each day of the week before.

    Days before the scan's start are left out: a workload with a short history has none, and does not depend
    on the hour of the day.

    Args:
        store: Holds the stacks.
        scan: The scan.
        candidates: The candidates with the change points.
        workload: Determines the length of the spans.
        known: Stacks in memory: days share these objects instead of holding equal ones.
    """
    days: list[StackMatrix] = []
    shared = {stack: stack for stack in known}
    (_, first), (_, end) = _spans(scan, candidates, workload)
    # On a day whose same hours reach beyond the change, the change would look usual.
    for day in range(max(1, math.ceil((end - first) / DAY_S)), _EARLIER_DAYS + 1):
        spans = [
            (first - day * DAY_S, last - day * DAY_S) for first, last in _spans(scan, candidates, workload)
        ]
        if spans[0][0] < scan.start:
            break
        matrix = _stacks_of(store, scan, *spans)
        if matrix.total_before and matrix.total_after:
            stacks = tuple(shared.setdefault(stack, stack) for stack in matrix.stacks)
            days.append(replace(matrix, stacks=stacks))
    return days


def stacks_just_before(
    store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload
) -> list[StackMatrix]:
    """Return ``stacks_around`` as if the change had been earlier, at successive earlier times.

    Spans do not overlap, the nearest comes first, and they reach back to the scan's start. No window is left
    out between before and after, as no change is known there.
    """
    (_, first), (last, end) = _spans(scan, candidates, workload)
    span_s = max(end - last, workload.resolution_s)
    earlier = []
    while first - 2 * span_s >= scan.start - 1e-6:
        matrix = store.counts(
            StackQuery(scan.service, (first - 2 * span_s, first - span_s), (first - span_s, first))
        )
        if matrix.total_before and matrix.total_after:
            earlier.append(matrix)
        first -= 2 * span_s
    return earlier


def _stacks_of(
    store: Store, scan: Scan, before: tuple[float, float], after: tuple[float, float]
) -> StackMatrix:
    """Return the stacks of two spans; the first is extended into the past until it holds samples.

    A service that runs in office hours has no samples just before a change in the morning.
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
    # A change at the start of the scan's windows still needs an analysis window before it.
    earliest = min(scan.start, first - workload.analysis_s)
    return (max(first - span_s, earliest), first), (last, scan.end)
