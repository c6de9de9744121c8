"""The search for change points at a constant mix of senders, with releases side by side."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pipeline.analysis.detect.matrix import select_series
from pipeline.analysis.detect.search import SearchConfig, SearchResult, find_change_points
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.analysis.mix import releases, request_decision, standardise
from pipeline.analysis.mix.mix import Mix
from pipeline.analysis.mix.releases import Effects, ReleaseCosts, ReleaseEffect
from pipeline.model import Candidate, Dropped, SeriesKey, SeriesMatrix, StrataMatrix
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import Workload
from pipeline.stages.ablation import Without
from pipeline.stages.gather.constant_mix import ConstantMixStore
from pipeline.stages.gather.release_effects import release_decision
from pipeline.stages.gather.request_mix import RequestSpan, find_request_mix
from pipeline.storage.interface import Store

ROLLOUT_S = DAY_S
"""Seconds before the analysis window within which a rollout must begin to be compared."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The input of a search: all series of a service, as they were counted."""

    service: str
    workload: Workload
    matrix: SeriesMatrix
    windows: WindowIndexes

    def moment(self, window: int) -> float:
        """Return the start of a window, epoch seconds."""
        return self.matrix.start + window * self.matrix.resolution_s

    @property
    def span(self) -> tuple[float, float]:
        """The time from the history's begin to the end of the scan."""
        return self.moment(self.windows.history), self.moment(len(self.matrix.totals))

    @property
    def requests(self) -> RequestSpan:
        """The span and resolution from which the shares of types of requests are learnt."""
        start, end = self.span
        # At the scan's resolution: windows that span gaps last longer by the clock.
        analysis = start + (self.windows.analysis - self.windows.history) * self.matrix.resolution_s
        least = self.workload.threshold.absolute or 0.0
        return RequestSpan(self.service, start, analysis, end, self.matrix.resolution_s, least)


def find_at_constant_mix(
    store: Store, searched: Searched, config: SearchConfig, without: Without
) -> SearchResult:
    """Return the change points of a scan; those that only a mix shift makes are among the dropped ones."""
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
    compared: list[ReleaseCosts] = []
    if len(strata.strata) > 1 and releases.KEY not in without:
        since = searched.moment(windows.analysis) - ROLLOUT_S
        effects, compared = view.find_effects(mix, matrix.series, since)
    counted = view.projected(constant, mix, strata, effects)
    search_result = _find_at_request_mix(store, searched, counted, config, without)
    candidates = (
        _with_effects(candidate, effects.get(candidate.series, ()), compared, matrix.resolution_s)
        for candidate in search_result.candidates
    )
    search_result = replace(search_result, candidates=tuple(candidates))
    if mix is None or factors is None:
        return search_result
    moved = standardise.moved_series(mix, factors, matrix, windows.analysis, config.absolute or 0.0)
    return (
        _with_mix_shifts(search_result, searched, moved, constant, mix, strata, config)
        if moved
        else search_result
    )


def _find_at_request_mix(
    store: Store, searched: Searched, counted: SeriesMatrix, config: SearchConfig, without: Without
) -> SearchResult:
    """Return the change points at the usual mix of requests; those that only the mix makes are dropped.

    Args:
        store: Holds the requests.
        searched: The input of the search.
        counted: Series of the input, at a constant mix of senders.
        config: Configuration of the search.
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
    search_result = find_change_points(constant, windows, config)
    found_series = {candidate.series for candidate in search_result.candidates}
    steps = replace(config, detectors=("short_term",))
    raw = find_change_points(select_series(counted, mix.series), windows, steps).candidates
    unknown = [candidate for candidate in raw if candidate.series not in found_series]
    moving = set(mix.series)
    at_usual_mix = [candidate for candidate in search_result.candidates if candidate.series in moving]
    decided = [
        decision
        for candidates, at_usual in ((at_usual_mix, True), (unknown, False))
        for decision in request_decision.decide(
            candidates, counted, constant, mix, moved.traffic.rates, found=at_usual
        )
    ]
    passing = tuple(
        replace(candidate, passed=(*candidate.passed, decision))
        for candidate, decision in decided
        if decision.passed
    )
    dropped = [Dropped(candidate, decision) for candidate, decision in decided if not decision.passed]
    unmoved = tuple(candidate for candidate in search_result.candidates if candidate.series not in moving)
    return replace(search_result, candidates=(*unmoved, *passing), dropped=(*search_result.dropped, *dropped))


def _with_mix_shifts(
    search_result: SearchResult,
    searched: Searched,
    moved: Collection[SeriesKey],
    constant: SeriesMatrix,
    mix: Mix,
    strata: StrataMatrix,
    config: SearchConfig,
) -> SearchResult:
    """Add to a search result, as dropped, the change points that moved series have only as counted."""
    matrix = select_series(searched.matrix, moved)
    found_series = {candidate.series for candidate in search_result.candidates}
    steps = replace(config, detectors=("short_term",))
    raw = find_change_points(matrix, searched.windows, steps).candidates
    unknown = [candidate for candidate in raw if candidate.series not in found_series]
    dropped = standardise.decide(unknown, matrix, select_series(constant, moved), mix, strata)
    return replace(search_result, dropped=(*search_result.dropped, *dropped))


def _with_effects(
    candidate: Candidate, effects: Sequence[ReleaseEffect], compared: Sequence[ReleaseCosts], margin_s: float
) -> Candidate:
    """Return a candidate with the effects of releases on its series, or with the release that brought it."""
    decisions = [release_decision(effect) for effect in effects]
    sudden = candidate.kind == "short_term"
    if not decisions and sudden and (brought := releases.brought_by(candidate, compared, margin_s)):
        decisions = [release_decision(brought[0], since=brought[1].start)]
    return replace(candidate, passed=(*candidate.passed, *decisions)) if decisions else candidate
