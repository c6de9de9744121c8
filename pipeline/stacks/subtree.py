"""What stands at or below series in their stacks, and how much of their rise comes through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from pipeline.model import BoolArray, FloatArray, IntArray
from pipeline.stacks.index import Series, StackIndex, rows_of


@dataclass(frozen=True, slots=True)
class Below:
    """Sums over the stacks that hold a series and, at or below it, an element: (series, names) each.

    All three have the same entries, zeros among them.
    """

    rise: csr_array
    weight: csr_array
    depth: csr_array  # how far below, times the weight


@dataclass(frozen=True, slots=True)
class Rises:
    """By how much series rose, and through what at or below them."""

    size: FloatArray  # (series,) signed; 0 where the stacks show no rise
    rows: IntArray  # (series,) number of each name in the index, -1 without stacks
    below: Below

    def through(self, series: int) -> tuple[IntArray, FloatArray]:
        """Return what stands at or below one series, by number, and how much of its rise comes through."""
        span = slice(self.below.rise.indptr[series], self.below.rise.indptr[series + 1])
        return self.below.rise.indices[span], self.below.rise.data[span]

    def in_step(self, series: int) -> FloatArray:
        """Return the rise that what stands at or below a series would have if all of it rose alike.

        Parallel to ``through``. What is called more often raises all below it in one proportion.
        """
        names, rise = self.through(series)
        span = slice(self.below.weight.indptr[series], self.below.weight.indptr[series + 1])
        former = self.below.weight.data[span] - rise
        own = names == self.rows[series]
        before = float(former[own].sum())
        alike: FloatArray = former * (float(rise[own].sum()) / before if before > 0 else 0.0)
        return alike


def stands_below(index: StackIndex, one: Series, others: Sequence[Series]) -> BoolArray:
    """Tell below which of some series another one stands in any stack; no series stands below itself.

    Args:
        index: Of the stacks.
        one: What may stand below.
        others: What may stand above.

    Returns:
        (others,)
    """
    (row,), rows = rows_of(index, [one]), rows_of(index, others)
    below = sum_below(index, rows).rise
    entries = np.repeat(np.arange(len(rows)), np.diff(below.indptr))
    found = np.zeros(len(rows), dtype=np.bool_)
    found[entries[below.indices == row]] = True
    return np.asarray(found & (rows != row))


def sum_below(index: StackIndex, rows: IntArray) -> Below:
    """Sum the stacks of each series by what stands at or below it.

    Args:
        index: Of the stacks.
        rows: (series,) from ``rows_of``.
    """
    series, back = np.unique(rows, return_inverse=True)
    start, there = _pairs(index, series)
    above = np.searchsorted(series, index.label[start])
    stack = index.stack[start]

    def summed(values: FloatArray) -> csr_array:
        shape = (len(series), len(index.names))
        return _with_rows(coo_array((values, (above, index.label[there])), shape=shape).tocsr(), back)

    weight = index.weight[stack]
    return Below(summed(index.rise[stack]), summed(weight), summed(weight * (there - start)))


def sum_sets_below(index: StackIndex, rows: IntArray, sets: Sequence[Sequence[str]]) -> csr_array:
    """Sum the rise of each series by sets of names: by what comes through any of a set, at or below it.

    Args:
        index: Of the stacks.
        rows: (series,) from ``rows_of``.
        sets: Names; one may be in several sets.

    Returns:
        (series, sets).
    """
    number = index.labels
    pairs = [(number[name], place) for place, names in enumerate(sets) for name in names if name in number]
    names, places = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2).T
    series, back = np.unique(rows, return_inverse=True)
    start, there = _pairs(index, series, wanted=names)
    # Each name stands for all sets that it is in; a stack counts once for a set.
    first = np.searchsorted(names, index.label[there])
    several = np.searchsorted(names, index.label[there], side="right") - first
    start, first = np.repeat(start, several), np.repeat(first, several)
    nth = np.arange(len(start)) - np.repeat(np.cumsum(several) - several, several)
    above = np.searchsorted(series, index.label[start])
    key = (above * len(sets) + places[first + nth]) * max(len(index.rise), 1) + index.stack[start]
    entry, stack = np.divmod(np.unique(key), max(len(index.rise), 1))
    entries = np.divmod(entry, max(len(sets), 1))
    found = coo_array((index.rise[stack], entries), shape=(len(series), len(sets)))
    return _with_rows(found.tocsr(), back)


def measure_rises(index: StackIndex, series: Sequence[Series], delta: FloatArray | None = None) -> Rises:
    """Return by how much each series rose, and through what.

    Args:
        index: Of the stacks.
        series: (series,)
        delta: (series,) their changes at their change points; without, the stacks alone say.
    """
    rows = rows_of(index, series)
    below = sum_below(index, rows)
    own = np.zeros(len(series))
    for place, row in enumerate(rows.tolist()):
        span = slice(below.rise.indptr[place], below.rise.indptr[place + 1])
        own[place] = below.rise.data[span][below.rise.indices[span] == row].sum()
    return Rises(own if delta is None else _sizes(own, delta), rows, below)


def _sizes(own: FloatArray, delta: FloatArray) -> FloatArray:
    """Return rises as the stacks show them.

    Stacks are of two spans of time, whose mix of load differs; the change point is free of that, but it is
    an estimate as well. Where they agree the smaller counts, and else the change point's.
    """
    agreed = np.where(np.abs(own) >= np.abs(delta) / 2, np.minimum(np.abs(own), np.abs(delta)), np.abs(delta))
    sizes: FloatArray = np.where(own * delta <= 0, own, np.sign(delta) * agreed)
    return sizes


def _pairs(index: StackIndex, series: IntArray, wanted: IntArray | None = None) -> tuple[IntArray, IntArray]:
    """Return the places of series, the first in each stack, with each place at or below in the same stack.

    Args:
        index: Of the stacks.
        series: Names, ascending; below 0 for none.
        wanted: Names that are asked for at or below; without, all.
    """
    asked, of_interest = np.zeros(len(index.names), dtype=np.bool_), index.last
    asked[series[series >= 0]] = True
    if wanted is not None:
        kept = np.zeros(len(index.names), dtype=np.bool_)
        kept[wanted] = True
        of_interest = index.last & kept[index.label]
    start = np.flatnonzero(index.first & asked[index.label])
    above, below = [start[:0]], [start[:0]]
    for step in range(index.deepest):
        there = start + step
        fits = there < len(index.label)
        fits[fits] = index.stack[there[fits]] == index.stack[start[fits]]
        start = start[fits]  # what has come to its stack's end has nothing further below
        found = start[of_interest[start + step]]
        above.append(found)
        below.append(found + step)
    return np.concatenate(above), np.concatenate(below)


def _with_rows(found: csr_array, rows: IntArray) -> csr_array:
    """Return rows of a matrix by number, with all entries, zeros among them."""
    lengths = np.diff(found.indptr)
    sizes = lengths[rows]
    ends = np.cumsum(sizes)
    taken = np.arange(int(sizes.sum())) + np.repeat(found.indptr[rows] - (ends - sizes), sizes)
    pointers = np.concatenate([[0], ends])
    return csr_array((found.data[taken], found.indices[taken], pointers), shape=(len(rows), found.shape[1]))
