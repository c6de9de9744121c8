"""What stands at or below series in their stacks, and how much of their rise comes through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from pipeline.model import BoolArray, FloatArray, IntArray, StackMatrix
from pipeline.stacks.index import Series, share_changes
from pipeline.stacks.labels import element


@dataclass(frozen=True, slots=True)
class Frames:
    """The elements of all stacks one after the other, as numbers of their names."""

    matrix: StackMatrix  # of the stacks
    names: tuple[str, ...]
    label: IntArray  # (elements,)
    stack: IntArray  # (elements,) which stack each belongs to
    first: BoolArray  # (elements,) whether it is the first of its name in its stack
    last: BoolArray  # (elements,) whether it is the last of its name in its stack
    rise: FloatArray  # (stacks,) by how much each stack's share of all samples grew
    mass: FloatArray  # (stacks,) its share before and after together

    @property
    def deepest(self) -> int:
        """How many elements the longest stack has."""
        return int(np.bincount(self.stack).max(initial=0))


@dataclass(frozen=True, slots=True)
class Below:
    """Sums over the stacks that hold a series and, at or below it, an element: (series, names) each.

    All three have the same entries, zeros among them.
    """

    rise: csr_array
    mass: csr_array
    depth: csr_array  # how far below, weighted by mass


@dataclass(frozen=True, slots=True)
class Rises:
    """By how much series rose, and through what at or below them."""

    size: FloatArray  # (series,) signed; 0 where the stacks show no rise
    rows: IntArray  # (series,) number of each name in the frames, -1 without stacks
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
        span = slice(self.below.mass.indptr[series], self.below.mass.indptr[series + 1])
        former = self.below.mass.data[span] - rise
        own = names == self.rows[series]
        before = float(former[own].sum())
        alike: FloatArray = former * (float(rise[own].sum()) / before if before > 0 else 0.0)
        return alike


def lay_out(matrix: StackMatrix) -> Frames:
    """Return the stacks' elements as one run of numbers: once for all that is asked of them."""
    sizes = np.array([len(stack) for stack in matrix.stacks], dtype=np.int64)
    # In the order of the alphabet, so that nothing hangs on the order of stacks.
    number = {name: place for place, name in enumerate(sorted({n for stack in matrix.stacks for n in stack}))}
    label = np.fromiter(
        (number[name] for stack in matrix.stacks for name in stack), dtype=np.int64, count=int(sizes.sum())
    )
    stack = np.repeat(np.arange(len(sizes)), sizes)
    key = stack * max(len(number), 1) + label
    shares = [
        side / total if total else np.zeros(len(sizes))
        for side, total in ((matrix.before, matrix.total_before), (matrix.after, matrix.total_after))
    ]
    return Frames(
        matrix=matrix,
        names=tuple(number),
        label=label,
        stack=stack,
        first=_first_of(key),
        last=_first_of(key[::-1])[::-1],
        rise=share_changes(matrix),
        mass=shares[0] + shares[1],
    )


def rows_of(frames: Frames, series: Sequence[Series]) -> IntArray:
    """Return the number of each series' name in the frames, -1 where no stack holds it: (series,)."""
    number = {name: place for place, name in enumerate(frames.names)}
    return np.array([number.get(element(*one), -1) for one in series], dtype=np.int64)


def stands_below(frames: Frames, one: Series, others: Sequence[Series]) -> BoolArray:
    """Tell below which of some series another one stands in any stack; no series stands below itself.

    Args:
        frames: From ``lay_out``.
        one: What may stand below.
        others: What may stand above.

    Returns:
        (others,)
    """
    (row,), rows = rows_of(frames, [one]), rows_of(frames, others)
    below = sum_below(frames, rows).rise
    entries = np.repeat(np.arange(len(rows)), np.diff(below.indptr))
    found = np.zeros(len(rows), dtype=np.bool_)
    found[entries[below.indices == row]] = True
    return np.asarray(found & (rows != row))


def sum_below(frames: Frames, rows: IntArray) -> Below:
    """Sum the stacks of each series by what stands at or below it.

    Args:
        frames: From ``lay_out``.
        rows: (series,) from ``rows_of``.
    """
    series, back = np.unique(rows, return_inverse=True)
    start, there = _pairs(frames, series)
    above = np.searchsorted(series, frames.label[start])
    stack = frames.stack[start]

    def summed(values: FloatArray) -> csr_array:
        shape = (len(series), len(frames.names))
        return _with_rows(coo_array((values, (above, frames.label[there])), shape=shape).tocsr(), back)

    mass = frames.mass[stack]
    return Below(summed(frames.rise[stack]), summed(mass), summed(mass * (there - start)))


def sum_sets_below(frames: Frames, rows: IntArray, sets: Sequence[Sequence[str]]) -> csr_array:
    """Sum the rise of each series by sets of names: by what comes through any of a set, at or below it.

    Args:
        frames: From ``lay_out``.
        rows: (series,) from ``rows_of``.
        sets: Names; one may be in several sets.

    Returns:
        (series, sets).
    """
    number = {name: place for place, name in enumerate(frames.names)}
    pairs = [(number[name], place) for place, names in enumerate(sets) for name in names if name in number]
    names, places = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2).T
    series, back = np.unique(rows, return_inverse=True)
    start, there = _pairs(frames, series, wanted=names)
    # Each name stands for all sets that it is in; a stack counts once for a set.
    first = np.searchsorted(names, frames.label[there])
    several = np.searchsorted(names, frames.label[there], side="right") - first
    start, first = np.repeat(start, several), np.repeat(first, several)
    nth = np.arange(len(start)) - np.repeat(np.cumsum(several) - several, several)
    above = np.searchsorted(series, frames.label[start])
    key = (above * len(sets) + places[first + nth]) * max(len(frames.rise), 1) + frames.stack[start]
    entry, stack = np.divmod(np.unique(key), max(len(frames.rise), 1))
    entries = np.divmod(entry, max(len(sets), 1))
    found = coo_array((frames.rise[stack], entries), shape=(len(series), len(sets)))
    return _with_rows(found.tocsr(), back)


def measure_rises(frames: Frames, series: Sequence[Series], delta: FloatArray | None = None) -> Rises:
    """Return by how much each series rose, and through what.

    Args:
        frames: From ``lay_out``.
        series: (series,)
        delta: (series,) their changes at their change points; without, the stacks alone say.
    """
    rows = rows_of(frames, series)
    below = sum_below(frames, rows)
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


def _pairs(frames: Frames, series: IntArray, wanted: IntArray | None = None) -> tuple[IntArray, IntArray]:
    """Return the places of series, the first in each stack, with each place at or below in the same stack.

    Args:
        frames: The elements.
        series: Names, ascending; below 0 for none.
        wanted: Names that are asked for at or below; without, all.
    """
    asked, of_interest = np.zeros(len(frames.names), dtype=np.bool_), frames.last
    asked[series[series >= 0]] = True
    if wanted is not None:
        kept = np.zeros(len(frames.names), dtype=np.bool_)
        kept[wanted] = True
        of_interest = frames.last & kept[frames.label]
    start = np.flatnonzero(frames.first & asked[frames.label])
    above, below = [start[:0]], [start[:0]]
    for step in range(frames.deepest):
        there = start + step
        fits = there < len(frames.label)
        fits[fits] = frames.stack[there[fits]] == frames.stack[start[fits]]
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


def _first_of(keys: IntArray) -> BoolArray:
    """Return which elements are the first of their key."""
    found = np.zeros(len(keys), dtype=np.bool_)
    found[np.unique(keys, return_index=True)[1]] = True
    return found
