"""The index of stacks: their elements as numbers, which stacks hold a label, by how much each rose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.sparse import csr_array

from pipeline.frames import element, series_of
from pipeline.model import BoolArray, FloatArray, IntArray, SeriesKey, StackMatrix

NO_STACKS = StackMatrix((), np.zeros(0), np.zeros(0), 0.0, 0.0)
"""What there is of a service without samples, and of service-level metrics."""


@dataclass(frozen=True, slots=True, eq=False)
class StackIndex:
    """The elements of all stacks one after the other, root first, as numbers of their labels.

    Labels are numbered in the order of the alphabet, so that nothing hangs on the order of stacks.
    ``label[starts[i]:starts[i + 1]]`` are the labels of stack i. ``by_label[label_starts[k]:label_starts[k +
    1]]`` are the positions of label k in ``label``, ascending.
    """

    matrix: StackMatrix  # of the stacks
    names: tuple[str, ...]  # (labels,) ascending
    labels: Mapping[str, int]  # name → number
    subroutine: BoolArray  # (labels,) whether it names a subroutine; an annotation does not
    label: IntArray  # (elements,)
    stack: IntArray  # (elements,) the stack that an element belongs to
    starts: IntArray  # (stacks + 1,)
    by_label: IntArray  # (elements,)
    label_starts: IntArray  # (labels + 1,)
    first: BoolArray  # (elements,) whether it is the first of its label in its stack
    last: BoolArray  # (elements,) whether it is the last of its label in its stack
    incidence: csr_array  # (labels, stacks) 1 where a stack holds a label, however often
    rise: FloatArray  # (stacks,) by how much each stack's share of all samples grew

    @property
    def stacks(self) -> int:
        """How many stacks there are."""
        return len(self.starts) - 1

    @property
    def deepest(self) -> int:
        """How many elements the longest stack has."""
        return int(np.diff(self.starts).max(initial=0))

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums over the stacks that hold each label: (rows, labels) from (rows, stacks).

        As gCPU does, they count a stack once for a label, however often it recurs there.
        """
        return np.ascontiguousarray((self.incidence @ values.T).T)

    def positions(self, label: str) -> IntArray:
        """Return where a label stands among all elements; empty for one that no stack holds."""
        number = self.labels.get(label)
        if number is None:
            return np.empty(0, dtype=np.int64)
        return self.by_label[self.label_starts[number] : self.label_starts[number + 1]]

    def holding(self, labels: Iterable[str]) -> BoolArray:
        """Return which stacks hold at least one of the labels: (stacks,)."""
        holds = np.zeros(self.stacks, dtype=np.bool_)
        for label in labels:
            holds[self.stack[self.positions(label)]] = True
        return holds


def index_stacks(matrix: StackMatrix, known: StackIndex | None = None) -> StackIndex:
    """Index stacks by their labels, in time proportional to their elements.

    Args:
        matrix: Stack counts before and after.
        known: The index of a matrix whose stacks are the first of these: they are not laid out again.
    """
    label, lengths, names = _elements(matrix.stacks, known)
    stack = np.repeat(np.arange(len(lengths)), lengths)
    by_label = np.argsort(label, kind="stable")
    label_starts = _starts(np.bincount(label, minlength=len(names)))
    first, last = np.ones((2, len(label)), dtype=np.bool_)
    # Equal labels of one stack follow each other here.
    again = (np.diff(label[by_label]) == 0) & (np.diff(stack[by_label]) == 0)
    first[by_label[1:][again]] = False
    last[by_label[:-1][again]] = False
    holders = by_label[first[by_label]]
    rows = _starts(np.bincount(label[holders], minlength=len(names)))
    return StackIndex(
        matrix=matrix,
        names=names,
        labels={name: number for number, name in enumerate(names)},
        subroutine=np.array([series_of(name).kind == "subroutine" for name in names], dtype=np.bool_),
        label=label,
        stack=stack,
        starts=_starts(lengths),
        by_label=by_label,
        label_starts=label_starts,
        first=first,
        last=last,
        incidence=csr_array((np.ones(len(holders)), stack[holders], rows), shape=(len(names), len(lengths))),
        rise=share_changes(matrix),
    )


def rows_of(index: StackIndex, series: Sequence[SeriesKey]) -> IntArray:
    """Return the number of each series' label, -1 where no stack holds it: (series,)."""
    return np.array([index.labels.get(element(*key), -1) for key in series], dtype=np.int64)


def membership(index: StackIndex, series: Sequence[SeriesKey]) -> BoolArray:
    """Return which stacks hold which series: (series, stacks)."""
    holds = np.zeros((len(series), index.stacks), dtype=np.bool_)
    for row, key in enumerate(series):
        holds[row, index.stack[index.positions(element(*key))]] = True
    return holds


def mean_depths(index: StackIndex, series: Sequence[SeriesKey]) -> FloatArray:
    """Return how deep each series stands on average after the change, from 0 at the root: (series,).

    Of a series that recurs in a stack the deepest counts. 0 where it stands nowhere.
    """
    depths = np.zeros(len(series))
    for row, key in enumerate(series):
        positions = index.positions(element(*key))
        positions = positions[index.last[positions]]
        stacks = index.stack[positions]
        weights = index.matrix.after[stacks]
        whole = float(weights.sum())
        if whole > 0:
            depths[row] = float(weights @ (positions - index.starts[stacks])) / whole
    return depths


def share_changes(matrix: StackMatrix) -> FloatArray:
    """Return by how much each stack's share of all samples grew: (stacks,); 0 where a span has no samples."""
    if not matrix.total_before or not matrix.total_after:
        return np.zeros(len(matrix.stacks))
    return matrix.after / matrix.total_after - matrix.before / matrix.total_before


def _elements(
    stacks: Sequence[Sequence[str]], known: StackIndex | None
) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Return the label of each element, how many elements each stack has, and the names of labels."""
    numbers: dict[str, int] = dict(known.labels) if known else {}
    more = stacks[known.stacks :] if known else stacks
    lengths = np.fromiter(map(len, more), dtype=np.int64, count=len(more))
    met = np.fromiter(
        (numbers.setdefault(name, len(numbers)) for name in chain.from_iterable(more)),
        dtype=np.int64,
        count=int(lengths.sum()),
    )
    if known:
        lengths = np.concatenate([np.diff(known.starts), lengths])
        met = np.concatenate([known.label, met])
    names = tuple(sorted(numbers))
    position = np.empty(len(names), dtype=np.int64)
    position[np.fromiter(map(numbers.__getitem__, names), dtype=np.int64, count=len(names))] = np.arange(
        len(names)
    )
    return position[met], lengths, names


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
