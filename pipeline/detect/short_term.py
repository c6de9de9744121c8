"""One scan: a matrix of series in, the candidates among them out (FBDetect §5.4.1, short-term path).

First a screen of all series at once: is the level from some split in the analysis window on another than that
of the baseline before? Then, of the few that it leaves, whether the change belongs to this scan at all: a
series may have changed more in the baseline, which an earlier scan has seen, or in the extended window, which
a later one will see; then only what is left between those counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.detect.best_split import BestSplit
from pipeline.detect.expected import Normalised, join_rows, normalise, some_rows
from pipeline.detect.isolation import Isolated, isolate
from pipeline.detect.matrix import first_windows, slice_rows
from pipeline.detect.scan_config import ScanConfig, Windows, baseline_start
from pipeline.detect.split_search import Span, SplitSearch
from pipeline.detect.unjudged import Steps, find_unjudged, grounds_of, merge_unjudged
from pipeline.model import BoolArray, Candidate, Direction, FloatArray, IntArray, SeriesMatrix, Unjudged

__all__ = [
    "CHUNK_ROWS",
    "ScanConfig",
    "Windows",
    "baseline_start",
    "find_candidates",
    "find_steps",
    "normalised",
]

CHUNK_ROWS = 256
"""Series screened together: few enough that what is computed of them stays in the processor's cache."""

ISOLATED_ROWS = 1024
"""Series that the screen leaves and that are isolated together: bounds the memory for copies of them."""


def find_candidates(
    matrix: SeriesMatrix,
    windows: Windows,
    *,
    direction: Direction = "up",
    config: ScanConfig | None = None,
) -> tuple[Candidate, ...]:
    """Return the candidates of ``find_steps`` alone."""
    return tuple(find_steps(matrix, windows, direction=direction, config=config)[0])


def find_steps(
    matrix: SeriesMatrix,
    windows: Windows,
    *,
    direction: Direction = "up",
    config: ScanConfig | None = None,
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

    Returns:
        One candidate for each series that rejects "one level throughout", in the matrix's order. Its
        statistic is the likelihood ratio. It lies in the analysis window, or where it is likelier before.
    """
    config = config or ScanConfig()
    sign = 1.0 if direction == "up" else -1.0
    found: list[Candidate] = []
    unjudged: list[Unjudged] = []
    for screened in _screened(first_windows(matrix, windows.end), windows, sign, config):
        unjudged += screened.unjudged
        if len(screened.rows):
            found += _candidates(matrix, screened.rows, isolate(screened.search, sign))
    return tuple(found), merge_unjudged(unjudged)


def normalised(matrix: SeriesMatrix, windows: Windows, config: ScanConfig) -> Normalised:
    """Return a matrix's series in the form in which a scan compares them."""
    start = baseline_start(windows, matrix.resolution_s, config)
    return normalise(
        matrix,
        history=windows.analysis,
        longest=windows.end - windows.analysis,
        apart=(windows.end - start) // 2,
        config=config.normalise,
    )


@dataclass(frozen=True, slots=True)
class _Screened:
    """What the screen leaves of some of the series."""

    rows: IntArray
    search: SplitSearch  # in those
    unjudged: list[Unjudged]


def _screened(matrix: SeriesMatrix, windows: Windows, sign: float, config: ScanConfig) -> Iterator[_Screened]:
    """Yield what the screen leaves, a number of series at a time."""
    rows: list[IntArray] = []
    parts: list[Normalised] = []
    unjudged: list[Unjudged] = []

    def search_of(series: Normalised) -> SplitSearch:
        return SplitSearch(series, matrix.noise, matrix.resolution_s, windows, config)

    for first in range(0, len(matrix.names), CHUNK_ROWS):
        series = normalised(slice_rows(matrix, first, first + CHUNK_ROWS), windows, config)
        chosen, lacking = _screen(search_of(series), matrix.totals, sign)
        rows.append(chosen + first)
        parts.append(some_rows(series, chosen))
        unjudged += lacking
        if sum(map(len, rows)) >= ISOLATED_ROWS or first + CHUNK_ROWS >= len(matrix.names):
            yield _Screened(np.concatenate(rows), search_of(join_rows(parts)), unjudged)
            rows, parts, unjudged = [], [], []


def _screen(search: SplitSearch, totals: FloatArray, sign: float) -> tuple[IntArray, tuple[Unjudged, ...]]:
    """Return the series that may have changed for the worse in the analysis window, and those not judged."""
    windows, config = search.windows, search.config
    analysis = Span(search.start, windows.end, windows.analysis, windows.extended - 1)
    screened = search.best(None, analysis)
    spans = slice(windows.history, windows.analysis), slice(windows.analysis, windows.end)
    grounds = grounds_of(search.series, totals, screened.splits, *spans, config.min_history)
    unjudged = find_unjudged(grounds, min_points=config.min_points, significance=config.significance)
    promising = (screened.p_value < config.significance) & (sign * screened.root > 0)
    promising = grounds.has_history & (promising | _is_disturbed(search, screened))
    return np.flatnonzero(promising), unjudged


def _is_disturbed(search: SplitSearch, found: BestSplit) -> BoolArray:
    """Return which series changed more outside the analysis window, which may hide a change inside.

    A spike in the baseline lifts the level that what follows is compared with.
    """
    windows, config = search.windows, search.config
    other = search.best(None, Span.whole(search.start, windows.end), weekly=False)
    outside = (other.split < windows.analysis) | (other.split >= windows.extended)
    better = other.likelihood - found.likelihood > config.placement
    return np.asarray(outside & better & (other.p_value < config.significance))


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
