"""Descendants of series in their stacks, and the part of the series' rise that comes through each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from pipeline.analysis.stacks.index import CANCELLED, StackIndex, rows_of
from pipeline.model import FloatArray, Int32Array, IntArray, SeriesKey


@dataclass(frozen=True, slots=True)
class Rises:
    """Rises of series, and the names at or under them that the rises come through."""

    size: FloatArray  # (series,) signed; 0 where the stacks show no rise
    rows: IntArray  # (series,) number of each name in the index, -1 without stacks
    descendants: csr_array  # (series, names) from ``sum_descendants``

    def through(self, series: int) -> tuple[IntArray, FloatArray]:
        """Return the names at or under one series, by number, and the rise that comes through each."""
        span = slice(self.descendants.indptr[series], self.descendants.indptr[series + 1])
        return self.descendants.indices[span], self.descendants.data[span]


def sum_descendants(index: StackIndex, rows: IntArray) -> csr_array:
    """Sum the rise of each series by the names at or under it.

    Args:
        index: Of the stacks.
        rows: (series,) from ``rows_of``.

    Returns:
        (series, names), with an entry for each name there, zeros among them.
    """
    series, back = np.unique(rows, return_inverse=True)
    start, there = _pairs(index, series)
    row_of = np.zeros(len(index.names), dtype=np.int32)
    row_of[series[series >= 0]] = np.flatnonzero(series >= 0)
    entries = (row_of[index.label[start]], index.label[there])
    sums = coo_array((index.rise[index.stack[start]], entries), shape=(len(series), len(index.names)))
    return _with_rows(sums.tocsr(), back)


def sum_descendant_sets(index: StackIndex, rows: IntArray, sets: Sequence[Sequence[str]]) -> csr_array:
    """Sum the rise of each series by sets of names: the rise through any name of a set, at or under it.

    Args:
        index: Of the stacks.
        rows: (series,) from ``rows_of``.
        sets: Names; one may be in several sets.

    Returns:
        (series, sets).
    """
    number = index.labels
    pairs = [
        (number[name], position) for position, names in enumerate(sets) for name in names if name in number
    ]
    names, positions = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2).T
    series, back = np.unique(rows, return_inverse=True)
    start, there = _pairs(index, series, wanted=names)
    # Each name stands for all of its sets; a stack counts once for a set.
    first = np.searchsorted(names, index.label[there])
    several = np.searchsorted(names, index.label[there], side="right") - first
    start, first = np.repeat(start, several), np.repeat(first, several)
    nth = np.arange(len(start)) - np.repeat(np.cumsum(several) - several, several)
    above = np.searchsorted(series, index.label[start])
    key = (above * len(sets) + positions[first + nth]) * max(len(index.rise), 1) + index.stack[start]
    entry, stack = np.divmod(np.unique(key), max(len(index.rise), 1))
    entries = np.divmod(entry, max(len(sets), 1))
    sums = coo_array((index.rise[stack], entries), shape=(len(series), len(sets)))
    return _with_rows(sums.tocsr(), back)


def measure_rises(index: StackIndex, series: Sequence[SeriesKey]) -> Rises:
    """Return the rise of each series, and the names that it comes through.

    Args:
        index: Of the stacks.
        series: (series,)
    """
    rows = rows_of(index, series)
    descendants = sum_descendants(index, rows)
    own = np.zeros(len(series))
    for position, row in enumerate(rows.tolist()):
        span = slice(descendants.indptr[position], descendants.indptr[position + 1])
        own[position] = descendants.data[span][descendants.indices[span] == row].sum()
    sizes = index.sums(np.abs(index.rise)[None, :])[0]
    there = rows >= 0
    own[there] = np.where(np.abs(own[there]) > CANCELLED * sizes[rows[there]], own[there], 0.0)
    return Rises(own, rows, descendants)


def _pairs(
    index: StackIndex, series: IntArray, wanted: IntArray | None = None
) -> tuple[Int32Array, Int32Array]:
    """Return the first position of series in each stack, with each position at or under it in that stack.

    Args:
        index: Of the stacks.
        series: Names, ascending; below 0 for none.
        wanted: Names that are asked for at or below; without, all.
    """
    is_series, of_interest = np.zeros(len(index.names), dtype=np.bool_), index.last
    is_series[series[series >= 0]] = True
    if wanted is not None:
        is_wanted = np.zeros(len(index.names), dtype=np.bool_)
        is_wanted[wanted] = True
        of_interest = index.last & is_wanted[index.label]
    start = np.flatnonzero(index.first & is_series[index.label]).astype(np.int32)
    above, descendants = [start[:0]], [start[:0]]
    for step in range(index.deepest):
        there = start + step
        fits = there < len(index.label)
        fits[fits] = index.stack[there[fits]] == index.stack[start[fits]]
        start = start[fits]  # a stack that has ended has no further elements
        hits = start[of_interest[start + step]]
        above.append(hits)
        descendants.append(hits + step)
    return np.concatenate(above), np.concatenate(descendants)


def _with_rows(matrix: csr_array, rows: IntArray) -> csr_array:
    """Return rows of a matrix by number, with all entries, zeros among them."""
    lengths = np.diff(matrix.indptr)
    sizes = lengths[rows]
    ends = np.cumsum(sizes)
    taken = np.arange(int(sizes.sum())) + np.repeat(matrix.indptr[rows] - (ends - sizes), sizes)
    pointers = np.concatenate([[0], ends])
    return csr_array(
        (matrix.data[taken], matrix.indices[taken], pointers), shape=(len(rows), matrix.shape[1])
    )
