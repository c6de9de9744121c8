"""The search for change points at a constant mix of those who send samples, with releases side by side."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pipeline.analysis.detect.matrix import select_series
from pipeline.analysis.detect.search import Found, SearchConfig, find_change_points
from pipeline.analysis.detect.short_term import Windows
from pipeline.analysis.mix import releases, request_decision, standardise
from pipeline.analysis.mix.mix import Mix
from pipeline.analysis.mix.releases import Compared, Effects, ReleaseEffect
from pipeline.model import Candidate, Dropped, SeriesKey, SeriesMatrix, StrataMatrix
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import Workload
from pipeline.stages.ablation import Without
from pipeline.stages.gather.constant_mix import ConstantMixStore
from pipeline.stages.gather.release_effects import release_decision
from pipeline.stages.gather.request_mix import RequestSpan, find_request_mix
from pipeline.storage.interface import Store

ROLLOUT_S = DAY_S
"""How long before the analysis window a rollout may have begun that is looked at."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a scan looks at: all series of a service, as they were counted."""

    service: str
    workload: Workload
    matrix: SeriesMatrix
    windows: Windows

    def moment(self, window: int) -> float:
        """Return when a window begins."""
        return self.matrix.start + window * self.matrix.resolution_s

    @property
    def span(self) -> tuple[float, float]:
        """The time from the history's begin to the end of the scan."""
        return self.moment(self.windows.history), self.moment(len(self.matrix.totals))

    @property
    def requests(self) -> RequestSpan:
        """What the shares of types of requests are learnt from."""
        start, end = self.span
        # As the scan says it: windows over gaps are longer by the clock.
        analysis = start + (self.windows.analysis - self.windows.history) * self.matrix.resolution_s
        least = self.workload.threshold.absolute or 0.0
        return RequestSpan(self.service, start, analysis, end, self.matrix.resolution_s, least)


def find_at_constant_mix(store: Store, searched: Searched, config: SearchConfig, without: Without) -> Found:
    """Return the change points of a scan, and those that only a mix makes, as dropped."""
    matrix, windows = searched.matrix, searched.windows
    if searched.workload.series != "gcpu" or not matrix.names:
        return find_change_points(matrix, windows, config)
    view = ConstantMixStore(store, searched.service, searched.span, matrix.resolution_s)
    mix, strata = view.fit(matrix)
    if standardise.KEY in without:
        mix = None
    factors = None if mix is None else mix.factors(strata.strata, strata.totals)
    constant = matrix
    if mix is not None and factors is not None:
        constant = standardise.standardise(matrix, mix.series, factors)
    effects: Effects = {}
    compared: list[Compared] = []
    if len(strata.strata) > 1 and releases.KEY not in without:
        since = searched.moment(windows.analysis) - ROLLOUT_S
        effects, compared = view.find_effects(mix, matrix.series, since)
    counted = view.projected(constant, mix, strata, effects)
    found = _find_at_request_mix(store, searched, counted, config, without)
    candidates = (
        _with_effects(one, effects.get(one.series, ()), compared, matrix.resolution_s)
        for one in found.candidates
    )
    found = replace(found, candidates=tuple(candidates))
    if mix is None or factors is None:
        return found
    moved = standardise.moved_series(mix, factors, matrix, windows.analysis, config.absolute or 0.0)
    return _with_mix_shifts(found, searched, moved, constant, mix, strata, config) if moved else found


def _find_at_request_mix(
    store: Store, searched: Searched, counted: SeriesMatrix, config: SearchConfig, without: Without
) -> Found:
    """Return the change points at the usual mix of requests, and those that only their mix makes, as dropped.

    Args:
        store: Of the requests.
        searched: What the scan looks at.
        counted: Its series, at a constant mix of senders.
        config: Of the search.
        without: Steps that are left out.
    """
    windows = searched.windows
    moved = None
    if request_decision.KEY not in without:
        moved = find_request_mix(store, searched.requests, counted)
    if moved is None:
        return find_change_points(counted, windows, config)
    mix = moved.mix
    constant = standardise.standardise(counted, mix.series, mix.factors)
    found = find_change_points(constant, windows, config)
    known = {candidate.series for candidate in found.candidates}
    steps = replace(config, detectors=("short_term",))
    raw = find_change_points(select_series(counted, mix.series), windows, steps).candidates
    unknown = [candidate for candidate in raw if candidate.series not in known]
    moving = set(mix.series)
    asked = [candidate for candidate in found.candidates if candidate.series in moving]
    decided = [
        decision
        for candidates, at_usual in ((asked, True), (unknown, False))
        for decision in request_decision.decide(
            candidates, counted, constant, mix, moved.traffic.rates, found=at_usual
        )
    ]
    kept = tuple(
        replace(candidate, passed=(*candidate.passed, decision))
        for candidate, decision in decided
        if decision.passed
    )
    dropped = [Dropped(candidate, decision) for candidate, decision in decided if not decision.passed]
    others = tuple(candidate for candidate in found.candidates if candidate.series not in moving)
    return replace(found, candidates=(*others, *kept), dropped=(*found.dropped, *dropped))


def _with_mix_shifts(
    found: Found,
    searched: Searched,
    moved: Collection[SeriesKey],
    constant: SeriesMatrix,
    mix: Mix,
    strata: StrataMatrix,
    config: SearchConfig,
) -> Found:
    """Return what was found with the change points that moved series have only as they were counted."""
    matrix = select_series(searched.matrix, moved)
    known = {candidate.series for candidate in found.candidates}
    steps = replace(config, detectors=("short_term",))
    raw = find_change_points(matrix, searched.windows, steps).candidates
    unknown = [candidate for candidate in raw if candidate.series not in known]
    dropped = standardise.decide(unknown, matrix, select_series(constant, moved), mix, strata)
    return replace(found, dropped=(*found.dropped, *dropped))


def _with_effects(
    candidate: Candidate, effects: Sequence[ReleaseEffect], compared: Sequence[Compared], margin_s: float
) -> Candidate:
    """Return a candidate with what releases make of its series, or else with the one that brought it."""
    found = [release_decision(effect) for effect in effects]
    sudden = candidate.kind == "short_term"
    if not found and sudden and (brought := releases.brought_by(candidate, compared, margin_s)):
        found = [release_decision(brought[0], since=brought[1].start)]
    return replace(candidate, passed=(*candidate.passed, *found)) if found else candidate
