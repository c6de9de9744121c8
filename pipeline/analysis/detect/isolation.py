"""The change of the analysis window in series that changed elsewhere too, for many series at once.

The range is cut at any split outside of the analysis window that is clearly better than the best one
inside, until there is none: from a change in the baseline on, and up to one in the extended window; if that
goes the same way, likelier is enough, since a later scan sees more of it. What lies before a cut still counts
where the level was the same, as before a spike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.detect.best_split import BestSplit, no_split
from pipeline.analysis.detect.split_search import SplitSearch, SplitSpan
from pipeline.model import BoolArray, FloatArray, IntArray

_MOST_CUTS = 8
"""Changes besides the one that is looked for, until a series is too restless to judge."""


@dataclass(frozen=True, slots=True)
class Isolated:
    """The changes of the analysis window."""

    rows: IntArray  # of the search that have one
    change: BestSplit
    interval: FloatArray  # (rows, 2) of 95 %, in windows


def isolate(search: SplitSearch, sign: float) -> Isolated:
    """Return the changes of series in the analysis window, isolated from their changes elsewhere.

    Args:
        search: In the series that the screen leaves.
        sign: 1 for rises, -1 for falls.
    """
    windows, config = search.windows, search.config
    low, own, anywhere, high, settled = _cut(search)
    none = no_split(len(low))
    rows = np.flatnonzero(settled)
    hidden = _at_other_levels(search, rows, low)
    # Where there is something else to compare with before the cut, the range is the whole again.
    wider = (hidden.sum(axis=1) < low[rows] - search.start) & (low[rows] > search.start)
    splits = none.put(rows[~wider], own.rows(rows[~wider]))
    likely = none.put(rows[~wider], anywhere.rows(rows[~wider]))
    width = search.series.observed.shape[1]
    covered = np.zeros((len(low), width), dtype=np.bool_)
    if wider.any():
        again = rows[wider]
        part = search.hiding(again, hidden[wider])
        low[again], covered[again] = search.start, hidden[wider]
        first, last = windows.analysis, windows.extended - 1
        splits = splits.put(again, part.best(None, SplitSpan(search.start, high[again], first, last)))
        likely = likely.put(again, part.best(None, SplitSpan.whole(search.start, high[again]), weekly=False))
    # More noise makes no change more significant: those that are not already need no look at it.
    rows = np.flatnonzero(settled & (splits.p_value < config.significance) & (sign * splits.root > 0))
    shown = search.hiding(rows, covered[rows])
    likely, low, high = likely.rows(rows), low[rows], high[rows]
    judged = _judged(shown, splits.rows(rows), likely, low, high)
    significant = np.flatnonzero((judged.p_value < config.significance) & (sign * judged.root > 0))
    judged, low, high = judged.rows(significant), low[significant], high[significant]
    # The interval is of the search that the split is the best of.
    whole = judged.split == likely.split[significant]
    span = SplitSpan(
        low,
        high,
        np.where(whole, low + 1, windows.analysis),
        np.where(whole, high - 1, windows.extended - 1),
    )
    shown = shown.hiding(significant, np.zeros((len(significant), width), dtype=np.bool_))
    interval = shown.intervals(judged.split, low, high, span)
    return Isolated(rows[significant], judged, interval)


def _cut(search: SplitSearch) -> tuple[IntArray, BestSplit, BestSplit, IntArray, BoolArray]:
    """Return low, the best split of the analysis window and of all, high, and which rows came to rest."""
    series, windows, config = len(search.series.variance), search.windows, search.config
    first, last = windows.analysis, windows.extended - 1
    low, high = np.full(series, search.start), np.full(series, windows.end)
    own, anywhere, settled = no_split(series), no_split(series), np.zeros(series, dtype=np.bool_)
    active = np.arange(series)
    for _ in range(_MOST_CUTS):
        if not len(active):
            break
        here = search.best(active, SplitSpan(low[active], high[active], first, last))
        there = search.best(active, SplitSpan.whole(low[active], high[active]), weekly=False)
        own, anywhere = own.put(active, here), anywhere.put(active, there)
        gain = there.likelihood - here.likelihood
        clear = (gain > config.placement) & (there.p_value < config.significance)
        later = (there.split > last) & (gain > 0) & (there.root * here.root > 0)
        before, after = there.split < first, there.split > last
        cut = (before | after) & (clear | later)
        low[active[cut & before]] = there.split[cut & before]
        high[active[cut & after]] = there.split[cut & after] - 1  # the window before may hold some of it
        settled[active[~cut]] = True
        active = active[cut]
    return low, own, anywhere, high, settled


def _at_other_levels(search: SplitSearch, rows: IntArray, low: IntArray) -> BoolArray:
    """Return which windows before ``low`` had another level than those from there on: (rows, windows)."""
    hidden = np.zeros((len(rows), search.series.observed.shape[1]), dtype=np.bool_)
    index, pieces = _pieces(search, rows, low)
    if not len(index):
        return hidden
    of = rows[index]
    level = search.are_level(of, (pieces[:, 0], pieces[:, 1]), (low[of], search.windows.analysis))
    for row, (begin, end) in zip(index[~level].tolist(), pieces[~level].tolist(), strict=True):
        hidden[row, begin:end] = True
    return hidden


def _pieces(search: SplitSearch, rows: IntArray, low: IntArray) -> tuple[IntArray, IntArray]:
    """Divide each row's windows before ``low`` into pieces of one level: index into rows, (pieces, 2)."""
    whole = [[(search.start, end)] if end > search.start else [] for end in low[rows].tolist()]
    done: list[list[tuple[int, int]]] = [[] for _ in whole]
    while active := [index for index, pieces in enumerate(whole) if pieces]:
        taken = np.array([whole[index].pop() for index in active])
        splits = search.best(rows[active], SplitSpan.whole(taken[:, 0], taken[:, 1]), weekly=False)
        level = splits.p_value >= search.config.significance
        for index, (begin, end), split, steady in zip(
            active, taken.tolist(), splits.split.tolist(), level.tolist(), strict=True
        ):
            if steady or len(done[index]) + len(whole[index]) >= _MOST_CUTS:
                done[index].append((begin, end))
            else:
                whole[index] += [(begin, split), (split, end)]
    owners: IntArray = np.repeat(np.arange(len(done)), [len(pieces) for pieces in done])
    ends: IntArray = np.array([piece for pieces in done for piece in pieces], dtype=np.int64).reshape(-1, 2)
    return owners, ends


def _judged(
    search: SplitSearch, splits: BestSplit, likely: BestSplit, low: IntArray, high: IntArray
) -> BestSplit:
    """Return splits with p-values by the noise around them, at the place of the likeliest split of the range.

    An earlier scan may not have been sure of one; and last week says if it counts, not where it lies.
    """
    splits = search.with_noise_around(splits, low, high)
    first, split = likely.split, splits.split
    elsewhere = (first != split) & (first >= 0) & (first < search.windows.extended)
    gain = likely.root * splits.root + likely.prior - splits.likelihood
    rows = np.flatnonzero(elsewhere & (likely.root * splits.root > 0) & (gain > 0))
    # What lies between has to belong to the other side, else it is another change, before or after this.
    sooner = first[rows] < split[rows]
    between = np.minimum(first, split)[rows], np.maximum(first, split)[rows]
    beside = np.where(sooner, split[rows], low[rows]), np.where(sooner, high[rows], split[rows])
    rows = rows[search.are_level(rows, between, beside)]
    moved = splits.put(rows, likely.rows(rows))
    return replace(splits, split=moved.split, before=moved.before, after=moved.after)
