"""Rises of candidates within strata, from the counts by stratum around each change point."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pipeline.analysis.mix.releases import KEY as RELEASE_EFFECT
from pipeline.analysis.mix.within import RiseWithin, rise_of_all, rises_within
from pipeline.model import Candidate, Scan
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.units import DAY_S, HOUR_S
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import SeriesQuery, Store, StrataQuery

Span = tuple[float, float]


def read_rises(store: Store, scan: Scan, workload: Workload) -> dict[Candidate, RiseWithin]:
    """Return the rises of a scan's candidates for which counts by stratum determine them.

    Candidates with an effect of a release are left out: the releases beside it are the better evidence. Slow
    rises are left out too, as they have no change point.

    Args:
        store: The view of the store that the scan reads.
        scan: The scan with its candidates.
        workload: Workload of the scan.
    """
    sudden_rises = [candidate for candidate in scan.candidates if _is_asked(candidate, workload)]
    if not sudden_rises:
        return {}
    resolution_s = scan.resolution_s or workload.resolution_s
    usual = store.counts(StrataQuery(scan.service, scan.start, scan.end, resolution_s, []))
    if len(usual.strata) < 2:
        return {}
    names = sorted({candidate.series for candidate in sudden_rises})
    levels = store.series(SeriesQuery("gcpu", scan.service, scan.start, scan.end, resolution_s, names))
    # Counts by stratum cover about whole hours: candidates of one hour share them.
    by_hour: dict[float, list[Candidate]] = {}
    for candidate in sudden_rises:
        by_hour.setdefault(candidate.change_time // HOUR_S, []).append(candidate)
    by_candidate: dict[Candidate, RiseWithin] = {}
    for candidates in by_hour.values():
        spans = _spans(scan, candidates, workload)
        series = sorted({candidate.series for candidate in candidates})
        after, *before = (
            store.counts(StrataQuery(scan.service, *span, resolution_s, series)) for span in spans
        )
        rises = rises_within(usual, before, after)
        for candidate in candidates:
            if candidate.series in rises:
                whole = rise_of_all(levels, candidate.series, before[0].counted, after.counted)
                if math.isfinite(whole):
                    by_candidate[candidate] = RiseWithin(*rises[candidate.series], whole)
    return by_candidate


def _is_asked(candidate: Candidate, workload: Workload) -> bool:
    by_release = any(decision.step == RELEASE_EFFECT for decision in candidate.passed)
    sudden = candidate.kind == "short_term" and candidate.after != candidate.before
    return workload.series == "gcpu" and is_gcpu(candidate.metric_kind) and sudden and not by_release


def _spans(scan: Scan, candidates: Sequence[Candidate], workload: Workload) -> list[Span]:
    """Return the span after the change points, and those before them, the nearest first.

    The windows next to the change points are left out: they may hold both levels.
    """
    first = min(candidate.change_time for candidate in candidates) - workload.resolution_s
    last = max(candidate.change_time for candidate in candidates) + workload.resolution_s
    length_s = max(scan.end - last, workload.analysis_s)
    ends = [first, first - length_s, first - DAY_S, first - 2 * DAY_S, scan.start]
    before = [(max(begin, scan.start), end) for end, begin in zip(ends, ends[1:], strict=False)]
    return [(last, scan.end), *(span for span in before if span[1] - span[0] > 0)]
