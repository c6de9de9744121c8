"""Short-term detector: candidates among the series of a scan (FBDetect §5.4.1, short-term path).

First a screen of all series at once: is the level from some split in the analysis window on another than that
of the baseline before? Then, of the few that it leaves, whether the change belongs to this scan at all: a
series may have changed more in the baseline, which an earlier scan has seen, or in the extended window, which
a later one will see; then only what is left between those counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.best_split import BestSplit
from pipeline.analysis.detect.count_histories import CountHistories, UnmeasuredCounts
from pipeline.analysis.detect.expected import normalise, normalise_values
from pipeline.analysis.detect.isolation import Isolated, isolate
from pipeline.analysis.detect.matrix import first_windows, slice_rows
from pipeline.analysis.detect.normalised import ComparedLengths, Normalised, join_rows, some_rows
from pipeline.analysis.detect.scan_config import ScanConfig, WindowIndexes, baseline_start
from pipeline.analysis.detect.split_search import SplitSearch, SplitSpan
from pipeline.analysis.detect.unjudged import Steps, are_judged, find_unjudged, grounds_of, merge_unjudged
from pipeline.model import BoolArray, Candidate, Direction, FloatArray, IntArray, SeriesMatrix, Unjudged
from pipeline.model.metric_kind import is_gcpu

__all__ = [
    "CHUNK_ROWS",
    "ScanConfig",
    "WindowIndexes",
    "baseline_start",
    "count_histories",
    "find_candidates",
    "find_steps",
    "normalised",
]

CHUNK_ROWS = 256
"""Series screened together at least: few enough that what is computed of them stays in the cache."""

_CHUNK_CELLS = 1500 * CHUNK_ROWS
"""Windows of all of them: of shorter series there may be more."""

ISOLATED_ROWS = 1024
"""Series that the screen leaves and that are isolated together: bounds the memory for copies of them."""


def find_candidates(
    matrix: SeriesMatrix,
    windows: WindowIndexes,
    *,
    direction: Direction = "up",
    config: ScanConfig | None = None,
) -> tuple[Candidate, ...]:
    """Return the candidates of ``find_steps`` alone."""
    return tuple(find_steps(matrix, windows, direction=direction, config=config)[0])


def find_steps(
    matrix: SeriesMatrix,
    windows: WindowIndexes,
    *,
    direction: Direction = "up",
    config: ScanConfig | None = None,
    histories: CountHistories | None = None,
) -> Steps:
    """Find the series whose level changed for the worse in the analysis window.

    The level after the change is that of all windows up to the end, the extended ones included; the one
    before is that of the last part of the history. Levels are compared after the daily cycle has been taken
    out, and after what happened at the same time a week before, where that was significant.

    Args:
        matrix: All series of a service.
        windows: Where the analysis and the extended window begin.
        direction: Which way is worse.
        config: Settings.
        histories: What is known of gCPU series already.

    Returns:
        One candidate for each series that rejects "one level throughout", in the matrix's order. Its
        statistic is the likelihood ratio. It lies in the analysis window, or where it is likelier before.
    """
    config = config or ScanConfig()
    sign = 1.0 if direction == "up" else -1.0
    candidates: list[Candidate] = []
    unjudged: list[Unjudged] = []
    counted = histories or count_histories(matrix, windows, config)
    for screened in _screened(first_windows(matrix, windows.end), windows, sign, config, counted):
        unjudged += screened.unjudged
        if len(screened.rows):
            candidates += _candidates(matrix, screened.rows, isolate(screened.search, sign))
    return tuple(candidates), merge_unjudged(unjudged)


def normalised(matrix: SeriesMatrix, windows: WindowIndexes, config: ScanConfig) -> Normalised:
    """Return a matrix's series in the form in which a scan compares them."""
    compared = _compared(matrix, windows, config)
    return normalise(
        matrix,
        history=compared.history,
        longest=compared.longest,
        apart=compared.apart,
        config=config.normalise,
    )


def count_histories(
    matrix: SeriesMatrix, windows: WindowIndexes, config: ScanConfig | None = None
) -> CountHistories | None:
    """Return the histories of gCPU series, estimated once for a scan; None for service-level metrics."""
    if matrix.kinds and not is_gcpu(matrix.kinds[0]):
        return None
    config = config or ScanConfig()
    compared = _compared(matrix, windows, config)
    return CountHistories(first_windows(matrix, windows.end), compared, config.normalise)


def _compared(matrix: SeriesMatrix, windows: WindowIndexes, config: ScanConfig) -> ComparedLengths:
    start = baseline_start(windows, matrix.resolution_s, config)
    return ComparedLengths(windows.analysis, windows.end - windows.analysis, (windows.end - start) // 2)


@dataclass(frozen=True, slots=True)
class _Screened:
    """The series that the screen leaves."""

    rows: IntArray
    search: SplitSearch  # in those
    unjudged: list[Unjudged]


def _screened(
    matrix: SeriesMatrix,
    windows: WindowIndexes,
    sign: float,
    config: ScanConfig,
    histories: CountHistories | None,
) -> Iterator[_Screened]:
    """Yield what the screen leaves, a number of series at a time."""
    rows: list[IntArray] = []
    parts: list[Normalised] = []
    unjudged: list[Unjudged] = []

    def search_of(series: Normalised) -> SplitSearch:
        return SplitSearch(series, matrix.noise, matrix.resolution_s, windows, config)

    chunk = max(CHUNK_ROWS, _CHUNK_CELLS // max(windows.end, 1))
    for first in range(0, len(matrix.names), chunk):
        end = min(first + chunk, len(matrix.names))
        if histories is None:
            part = slice_rows(matrix, first, end)
            series = normalise_values(part, _compared(matrix, windows, config), config.normalise)
            asked = np.arange(first, end)
        else:
            counts = histories.part(first, end, matrix.noise)
            suspects = _suspects(counts, search_of, matrix.totals, sign)
            series, asked = counts.measured(suspects), first + suspects
        chosen, lacking = _screen(search_of(series), matrix.totals, sign)
        rows.append(asked[chosen])
        parts.append(some_rows(series, chosen))
        unjudged += lacking
        if sum(map(len, rows)) >= ISOLATED_ROWS or end == len(matrix.names):
            yield _Screened(np.concatenate(rows), search_of(join_rows(parts)), unjudged)
            rows, parts, unjudged = [], [], []


def _suspects(
    counts: UnmeasuredCounts,
    search_of: Callable[[Normalised], SplitSearch],
    totals: FloatArray,
    sign: float,
) -> IntArray:
    """Return the series to examine: possible candidates, and those that may lack data.

    The others change by too little for the least noise that they may have; and there are grounds to judge
    them even with the most.

    Args:
        counts: Of the series.
        search_of: Searches in series.
        totals: (windows,) of the service.
        sign: 1 for rises, -1 for falls.
    """
    rows = np.arange(len(counts))
    limits = counts.limits
    if limits is None:
        return rows
    search = search_of(counts.bare)
    windows, config = search.windows, search.config
    changes = search.largest_changes(sign)
    grounds = grounds_of(
        counts.noisiest(limits), totals, changes.splits[1], *_spans(windows), config.min_history
    )
    judged = are_judged(grounds, min_points=config.min_points, significance=config.significance)
    changed = rows
    for by_blocks in (False, True):
        least = counts.least_noise(changed, limits, by_blocks=by_blocks)
        changed = changed[changes.may_count(changed, *least, config.significance)]
    return np.union1d(changed, rows[~judged])


def _spans(windows: WindowIndexes) -> tuple[slice, slice]:
    """Return the windows of the history, and those after it."""
    return slice(windows.history, windows.analysis), slice(windows.analysis, windows.end)


def _screen(search: SplitSearch, totals: FloatArray, sign: float) -> tuple[IntArray, tuple[Unjudged, ...]]:
    """Return the series that may have changed for the worse in the analysis window, and those not judged."""
    windows, config = search.windows, search.config
    analysis = SplitSpan(search.start, windows.end, windows.analysis, windows.extended - 1)
    screened = search.best(None, analysis)
    grounds = grounds_of(search.series, totals, screened.splits, *_spans(windows), config.min_history)
    unjudged = find_unjudged(grounds, min_points=config.min_points, significance=config.significance)
    promising = (screened.p_value < config.significance) & (sign * screened.root > 0)
    promising = grounds.has_history & (promising | _is_disturbed(search, screened))
    return np.flatnonzero(promising), unjudged


def _is_disturbed(search: SplitSearch, splits: BestSplit) -> BoolArray:
    """Return which series changed more outside the analysis window, which may hide a change inside.

    A spike in the baseline lifts the level that what follows is compared with.
    """
    windows, config = search.windows, search.config
    opposite = search.best(None, SplitSpan.whole(search.start, windows.end), weekly=False)
    outside = (opposite.split < windows.analysis) | (opposite.split >= windows.extended)
    better = opposite.likelihood - splits.likelihood > config.placement
    return np.asarray(outside & better & (opposite.p_value < config.significance))


def _candidates(matrix: SeriesMatrix, rows: IntArray, isolated: Isolated) -> list[Candidate]:
    """Return candidates, by the rows of the matrix that were searched."""
    change = isolated.change
    return [
        Candidate(
            metric_kind=matrix.kinds[row],
            metric=matrix.names[row],
            kind="short_term",
            change_time=matrix.start + float(change.split[i]) * matrix.resolution_s,
            before=float(change.before[i]),
            after=float(change.after[i]),
            p_value=float(change.p_value[i]),
            statistic=float(change.root[i] ** 2),
            change_time_interval=matrix.moments((float(begin), float(end))),
        )
        for i, (row, (begin, end)) in enumerate(
            zip(rows[isolated.rows].tolist(), isolated.interval.tolist(), strict=True)
        )
    ]
