"""The search for change points in all series of a scan, by the detectors of its workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from pipeline.analysis.detect import exchanged_names
from pipeline.analysis.detect.count_histories import CountHistories
from pipeline.analysis.detect.exchanged_names import Exchanges, find_exchanges
from pipeline.analysis.detect.long_term import find_long_term
from pipeline.analysis.detect.matrix import drop_windows, rows_by_series
from pipeline.analysis.detect.renames import find_renames
from pipeline.analysis.detect.schedule import is_slow
from pipeline.analysis.detect.service_noise import with_shared_prior
from pipeline.analysis.detect.share_normalisation import share_factor, with_share_factor
from pipeline.analysis.detect.short_term import ScanConfig, WindowIndexes, count_histories, find_steps
from pipeline.analysis.detect.unjudged import NO_DATA, Steps
from pipeline.counting.names import PresentNames
from pipeline.counting.names.merging import merged_series
from pipeline.model import (
    Candidate,
    Decision,
    Detector,
    Direction,
    Dropped,
    FloatArray,
    Rename,
    SeriesMatrix,
    Unjudged,
)
from pipeline.model.metric_kind import is_gcpu


class StepDetector(Protocol):
    """A detector of steps besides our own, such as a published one."""

    def __call__(
        self, matrix: SeriesMatrix, windows: WindowIndexes, *, direction: Direction
    ) -> tuple[Candidate, ...]:
        """Return candidates of kind "short_term" in the matrix's order.

        Args:
            matrix: All series of a service, from the start of the history.
            windows: Where the analysis and the extended window begin.
            direction: Which way is worse.
        """
        ...


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """Detectors of change points and their settings; exactly one threshold is given."""

    detectors: tuple[Detector, ...]
    direction: Direction = "up"
    absolute: float | None = None  # detection threshold, in the series' unit
    relative: float | None = None  # or as a share of the level before
    published: Mapping[Detector, StepDetector] = field(default_factory=dict)  # by name, if not our own
    short_term: ScanConfig = field(default_factory=ScanConfig)
    share_normalisation: bool = True  # whether to take out what moved all shares
    shared_prior: bool = True  # whether series learn from each other's noise
    exchanged_names: bool = True  # whether series need a history if names were made anew
    renames: bool = True  # whether series have the history of their former names


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The candidates of a scan, and facts of the search that later stages need."""

    candidates: tuple[Candidate, ...]
    unusable: int = 0  # candidates besides, with numbers that are not finite
    share_factor: FloatArray | None = None  # (windows of the scan,) by these alone; only with candidates
    dropped: tuple[Dropped, ...] = ()
    one_life: int = 0  # series that were seen for one process's life only, as names were made anew
    unjudged: tuple[Unjudged, ...] = ()  # series whose data do not suffice
    renames: tuple[Rename, ...] = ()


def due_detectors(detectors: tuple[Detector, ...], end: float, *, interval_s: float) -> tuple[Detector, ...]:
    """Return the detectors that a scan runs: slow rises are searched for less often than steps.

    Args:
        detectors: The workload's.
        end: Of the scan, epoch seconds.
        interval_s: Since the scan before.
    """
    slow = is_slow(end, interval_s=interval_s)
    return tuple(detector for detector in detectors if slow or detector != "long_term")


def find_change_points(matrix: SeriesMatrix, windows: WindowIndexes, config: SearchConfig) -> SearchResult:
    """Run detectors; if two find the same kind of change in a series, the first counts.

    Args:
        matrix: All series of a service, with what lies before the history where ``windows`` says so.
        windows: Where the windows of the scan lie.
        config: Of the workload.
    """
    named = _with_former_names(matrix, config)
    matrix = named.matrix
    if config.share_normalisation:
        matrix = with_share_factor(matrix, share_factor(matrix, history=windows.analysis))
    histories = count_histories(matrix, windows, config.short_term)
    if config.shared_prior:
        matrix = with_shared_prior(matrix, windows, config=config.short_term, histories=histories)
    candidates: dict[tuple[str, str, str], Candidate] = {}
    unjudged: tuple[Unjudged, ...] = () if matrix.names else (NO_DATA,)
    for detector in config.detectors:
        steps, lacking = _search(detector, _Searched(matrix, windows, config, histories))
        unjudged = unjudged or tuple(lacking)
        for candidate in steps:
            candidates.setdefault((candidate.metric_kind, candidate.metric, candidate.kind), candidate)
    usable = tuple(_as_share(candidate) for candidate in candidates.values() if _is_finite(candidate))
    unusable = len(candidates) - len(usable)
    dropped: tuple[Dropped, ...] = ()
    if config.exchanged_names and named.exchanges:
        usable, dropped = _with_history(usable, matrix, named.exchanges)
    usable = tuple(named.noted(candidate) for candidate in usable)
    factor = matrix.share_factor if usable else None
    if usable and config.share_normalisation and windows.history:
        scanned = drop_windows(matrix, windows.history)
        factor = share_factor(scanned, history=windows.analysis - windows.history)
    renames = tuple(Rename(former, name) for former, name in named.names.became.items())
    return SearchResult(usable, unusable, factor, dropped, named.one_life, unjudged, renames)


@dataclass(frozen=True, slots=True)
class _Named:
    """Series by their present names, and the exchanges of names."""

    matrix: SeriesMatrix
    names: PresentNames = PresentNames({})
    exchanges: Exchanges | None = None
    one_life: int = 0  # of the series as they were counted

    def noted(self, candidate: Candidate) -> Candidate:
        """Return a candidate with the last of the former names of its series."""
        former = self.names.former(candidate.metric) if candidate.metric_kind == "subroutine" else ()
        if not former:
            return candidate
        decision = Decision("renames", True, code="renamed", subjects=former[-1:])
        return replace(candidate, passed=(*candidate.passed, decision))


def _with_former_names(matrix: SeriesMatrix, config: SearchConfig) -> _Named:
    """Return gCPU series with the history of their former names, where names were exchanged."""
    asked = config.exchanged_names or config.renames
    if not asked or not matrix.kinds or not is_gcpu(matrix.kinds[0]):
        return _Named(matrix)
    exchanges = find_exchanges(matrix)
    names = PresentNames(find_renames(matrix, exchanges) if config.renames else {})
    one_life = exchanges.one_life if config.exchanged_names else 0
    if not names.became:
        return _Named(matrix, names, exchanges, one_life)
    merged = merged_series(matrix, names)
    # What has no former name began in the exchange still, though by itself it would be none.
    rows = rows_by_series(matrix)
    began = [
        bool(key in rows and exchanges.began[rows[key]] and not names.former(key.name))
        for key in merged.series
    ]
    renamed = replace(find_exchanges(merged), began=np.array(began, dtype=np.bool_))
    return _Named(merged, names, renamed, one_life)


def _with_history(
    candidates: Sequence[Candidate], matrix: SeriesMatrix, exchanges: Exchanges
) -> tuple[tuple[Candidate, ...], tuple[Dropped, ...]]:
    """Return candidates with a history, and those of names made anew."""
    decisions = exchanged_names.decide(candidates, matrix, exchanges)
    decided = list(zip(candidates, decisions, strict=True))
    passed = tuple(candidate for candidate, decision in decided if decision.passed)
    gone = tuple(Dropped(candidate, decision) for candidate, decision in decided if not decision.passed)
    return passed, gone


@dataclass(frozen=True, slots=True)
class _Searched:
    """What a detector looks at."""

    matrix: SeriesMatrix
    windows: WindowIndexes
    config: SearchConfig
    histories: CountHistories | None

    def without_lead(self) -> tuple[SeriesMatrix, WindowIndexes]:
        """Return the matrix and its windows from the history on."""
        lead, windows = self.windows.history, self.windows
        own = WindowIndexes(windows.analysis - lead, windows.extended - lead, windows.end - lead)
        return (drop_windows(self.matrix, lead) if lead else self.matrix), own


def _short_term(searched: _Searched) -> Steps:
    config = searched.config
    return find_steps(
        searched.matrix,
        searched.windows,
        direction=config.direction,
        config=config.short_term,
        histories=searched.histories,
    )


def _long_term(searched: _Searched) -> Steps:
    matrix, windows = searched.without_lead()
    config = searched.config
    found = find_long_term(
        matrix, windows, direction=config.direction, absolute=config.absolute, relative=config.relative
    )
    return found, ()


OWN_DETECTORS: Mapping[Detector, Callable[[_Searched], Steps]] = {
    "short_term": _short_term,
    "long_term": _long_term,
}
"""Our own detectors by name: each returns its candidates, and what it cannot judge."""


def _search(detector: Detector, searched: _Searched) -> Steps:
    if detector in OWN_DETECTORS:
        return OWN_DETECTORS[detector](searched)
    matrix, windows = searched.without_lead()
    config = searched.config
    return config.published[detector](matrix, windows, direction=config.direction), ()


def _as_share(candidate: Candidate) -> Candidate:
    """Return a gCPU candidate with levels clipped to [0, 1].

    A trend may dip below 0, and of what nearly every sample holds the whole is no measure.
    """
    if not is_gcpu(candidate.metric_kind):
        return candidate
    before, after = (min(max(level, 0.0), 1.0) for level in (candidate.before, candidate.after))
    return replace(candidate, before=before, after=after)


def _is_finite(candidate: Candidate) -> bool:
    """Say whether JSON can carry a candidate: one that it cannot would take its whole scan down."""
    numbers = (candidate.before, candidate.after, candidate.p_value, candidate.statistic)
    return all(math.isfinite(number) for number in numbers)
