"""What stands at or below series in their stacks, and how much of their rise comes through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from pipeline.gcpu.labels import element
from pipeline.gcpu.stacks import Series, share_changes
from pipeline.model import BoolArray, FloatArray, IntArray, StackMatrix


@dataclass(frozen=True, slots=True)
class Frames:
    """The elements of all stacks one after the other, as numbers of their names."""

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


def lay_out(matrix: StackMatrix) -> Frames:
    """Return the stacks' elements as one run of numbers."""
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


def sum_below(frames: Frames, rows: IntArray) -> Below:
    """Sum the stacks of each series by what stands at or below it.

    Args:
        frames: From ``lay_out``.
        rows: (series,) from ``rows_of``.
    """
    wanted, place = np.unique(rows[rows >= 0], return_inverse=True)
    row = np.full(len(frames.names), -1)
    row[wanted] = np.arange(len(wanted))
    start = np.flatnonzero(frames.first & (row[frames.label] >= 0))
    parts = []
    for step in range(frames.deepest):
        there = start + step
        fits = there < len(frames.label)
        fits[fits] = frames.stack[there[fits]] == frames.stack[start[fits]]
        fits[fits] = frames.last[there[fits]]
        here, there = start[fits], there[fits]
        parts.append((row[frames.label[here]], frames.label[there], frames.stack[here], step))
    above, below, stack = (
        np.concatenate([np.zeros(0, dtype=np.int64), *(part[i] for part in parts)]) for i in range(3)
    )
    depth = np.repeat([part[3] for part in parts], [len(part[0]) for part in parts])
    shape = (len(wanted), len(frames.names))
    back = np.full(len(rows), -1)
    back[rows >= 0] = place

    def summed(values: FloatArray) -> csr_array:
        found = coo_array((values, (above, below)), shape=shape).tocsr()
        return _with_rows(found, back)

    mass = frames.mass[stack]
    return Below(summed(frames.rise[stack]), summed(mass), summed(mass * depth))


def _with_rows(found: csr_array, rows: IntArray) -> csr_array:
    """Return rows of a matrix by number; -1 gives an empty one."""
    known = np.maximum(rows, 0)
    lengths = np.append(np.diff(found.indptr), 0)
    sizes = np.where(rows >= 0, lengths[known], 0)
    ends = np.cumsum(sizes)
    taken = np.arange(int(sizes.sum())) + np.repeat(found.indptr[known] - (ends - sizes), sizes)
    pointers = np.concatenate([[0], ends])
    return csr_array((found.data[taken], found.indices[taken], pointers), shape=(len(rows), found.shape[1]))


def _first_of(keys: IntArray) -> BoolArray:
    """Return which elements are the first of their key."""
    found = np.zeros(len(keys), dtype=np.bool_)
    found[np.unique(keys, return_index=True)[1]] = True
    return found
