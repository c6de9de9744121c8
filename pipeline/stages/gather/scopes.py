"""Scopes of candidates: the label or host with which alone they hold, by counts by stratum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.analysis.mix.scope import BAYES_FACTOR, KEY, find_scopes
from pipeline.model import Candidate, Decision, Scan
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import Store, StrataQuery


def with_scopes(
    store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload
) -> tuple[Candidate, ...]:
    """Return candidates; one that holds with a single label or host only gets a decision with it.

    The windows next to the change point are left out: they may hold both levels.
    """
    if workload.series != "gcpu" or not candidates:
        return tuple(candidates)
    resolution_s = scan.resolution_s or workload.resolution_s
    if len(store.counts(StrataQuery(scan.service, scan.start, scan.end, resolution_s, [])).strata) < 2:
        return tuple(candidates)
    return tuple(_with_scope(store, scan, candidate, resolution_s) for candidate in candidates)


def _with_scope(store: Store, scan: Scan, candidate: Candidate, resolution_s: float) -> Candidate:
    first, last = candidate.change_time - resolution_s, candidate.change_time + resolution_s
    if not is_gcpu(candidate.metric_kind) or not scan.start < first < last < scan.end:
        return candidate
    before, after = (
        store.counts(StrataQuery(scan.service, *span, resolution_s, [candidate.series]))
        for span in ((scan.start, first), (last, scan.end))
    )
    if (scope := find_scopes(before, after).get(candidate.series)) is None:
        return candidate
    decision = Decision(KEY, True, bound=BAYES_FACTOR, code="only", subjects=(scope,))
    return replace(candidate, passed=(*candidate.passed, decision))
