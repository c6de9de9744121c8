"""The dictionary of causes: each is a set of stacks that it changes, with the ways in which it may be read.

A subroutine that costs more by itself changes the stacks that end in it; called more often by a caller, those
in which it stands right below that caller; called more often by all of them, those that hold it. Equal sets
cannot be distinguished by stacks: they are one cause with several readings. Annotations such as ``endpoint=``
are no subroutines: nothing is their own, and they call nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.analysis.stacks import StackIndex
from pipeline.model import BoolArray, FloatArray, Int32Array, IntArray

CauseKind = Literal["own", "calls", "through"]

KINDS: tuple[CauseKind, ...] = ("own", "calls", "through")
"""What a cause changes, the plainest first: own cost, calls by one caller, or calls by all callers."""

_SEED = 20_261_128


class Reading(NamedTuple):
    """One way to read a cause: which subroutine, and by which caller, where one caller is meant."""

    kind: CauseKind
    name: str
    caller: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CauseSets:
    """Sets of stacks: ``stacks[starts[k]:starts[k + 1]]`` are those of set k, ascending.

    Readings stand one after the other, those of set k from ``reading_starts[k]`` on, the plainest first.
    """

    index: StackIndex
    stacks: Int32Array  # (members,)
    starts: IntArray  # (sets + 1,)
    kind: NDArray[np.int8]  # (readings,) position in KINDS
    label: Int32Array  # (readings,) number of the subroutine's label
    caller: Int32Array  # (readings,) number of the caller's label, -1 for none
    reading_starts: IntArray  # (sets + 1,)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def is_own(self) -> BoolArray:
        """Whether a set may be read as a subroutine's own cost: (sets,)."""
        return np.asarray(self.kind[self.reading_starts[:-1]] == KINDS.index("own"))

    def of(self, number: int) -> Int32Array:
        """Return the stacks of a set, ascending."""
        return self.stacks[self.starts[number] : self.starts[number + 1]]

    def readings(self, number: int) -> Iterator[Reading]:
        """Yield the readings of a set, the plainest first."""
        names = self.index.names
        for row in range(self.reading_starts[number], self.reading_starts[number + 1]):
            caller = names[self.caller[row]] if self.caller[row] >= 0 else ""
            yield Reading(KINDS[self.kind[row]], names[self.label[row]], caller)

    def named(self, labels: Iterable[str]) -> BoolArray:
        """Return which sets may be read as one of these labels: (sets,)."""
        numbers = [self.index.labels[label] for label in labels if label in self.index.labels]
        readings = np.isin(self.label, numbers)
        return np.add.reduceat(readings, self.reading_starts[:-1]) > 0 if len(self) else readings

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums over the stacks of each set: (…, sets) from (…, stacks)."""
        if not len(self):
            return np.zeros((*values.shape[:-1], 0))
        rows = values.reshape(-1, values.shape[-1])
        sums = [np.add.reduceat(row[self.stacks], self.starts[:-1]) for row in rows]
        return np.array(sums, dtype=np.float64).reshape(*values.shape[:-1], len(self))


def find_cause_sets(index: StackIndex, samples: FloatArray, least: float) -> CauseSets:
    """Return the sets of stacks that one cause may have changed.

    Args:
        index: Of the stacks.
        samples: (stacks,) on both sides together.
        least: Sets of fewer samples are left out: no change of them could be distinguished from chance.
    """
    parts = [_own(index), _calls(index), _through(index)]
    kind = np.repeat(np.arange(3, dtype=np.int8), [len(part.label) for part in parts])
    label, caller, size = (np.concatenate(arrays) for arrays in zip(*(p[:3] for p in parts), strict=True))
    stacks = np.concatenate([part.stacks for part in parts])
    starts = np.concatenate([[0], np.cumsum(size)])
    enough = _sums(samples, stacks, starts) >= least
    stacks, size = stacks[np.repeat(enough, size)], size[enough]
    kind, label, caller = kind[enough], label[enough], caller[enough]
    return _merged(index, stacks, size, kind, label, caller)


class _Part(NamedTuple):
    label: Int32Array
    caller: Int32Array
    size: IntArray
    stacks: Int32Array


def _own(index: StackIndex) -> _Part:
    at = np.flatnonzero(index.subroutine[index.label])
    last = np.diff(index.stack[at], append=-1) != 0
    leaf, stack = index.label[at][last], index.stack[at][last]
    label, size = np.unique(leaf, return_counts=True)
    order = np.argsort(leaf, kind="stable")
    return _Part(label, np.full(len(label), -1, dtype=np.int32), size, stack[order])


def _calls(index: StackIndex) -> _Part:
    """Return the pairs of caller and callee; a pair that recurs in a stack holds it once."""
    at = np.flatnonzero(index.subroutine[index.label])
    stack, label = index.stack[at], index.label[at].astype(np.int64)
    inner = np.flatnonzero(np.diff(stack) == 0)
    labels, stacks = len(index.names), max(index.stacks, 1)
    key = (label[inner] * labels + label[inner + 1]) * stacks + stack[inner]
    key.sort()
    key = key[np.diff(key, prepend=-1) != 0]
    pair = key // stacks
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    caller, callee = np.divmod(pair[first], labels)
    size = np.diff(first, append=len(pair))
    return _Part(callee.astype(np.int32), caller.astype(np.int32), size, (key % stacks).astype(np.int32))


def _through(index: StackIndex) -> _Part:
    held = index.incidence[np.flatnonzero(index.subroutine)]
    label = np.flatnonzero(index.subroutine).astype(np.int32)
    size = np.diff(held.indptr).astype(np.int64)
    return _Part(label, np.full(len(label), -1, dtype=np.int32), size, held.indices.astype(np.int32))


def _merged(
    index: StackIndex,
    stacks: Int32Array,
    size: IntArray,
    kind: NDArray[np.int8],
    label: Int32Array,
    caller: Int32Array,
) -> CauseSets:
    """Return the sets with equal ones as one, in the order of the first of them."""
    starts = np.concatenate([[0], np.cumsum(size)])
    # The sum of a random number of 64 bits for each stack: unequal sets have equal sums by chance alone.
    marks = np.random.default_rng(_SEED).integers(0, 2**64, index.stacks, dtype=np.uint64)
    mark = np.add.reduceat(marks[stacks], starts[:-1]) if len(size) else np.zeros(0, dtype=np.uint64)
    _, first, same = np.unique(mark, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # sets by where they stood first
    rank = np.empty(len(first), dtype=np.int64)
    rank[order] = np.arange(len(first))
    number = rank[same.reshape(-1)]
    readings = np.argsort(number, kind="stable")
    firsts = first[order]
    members = np.concatenate([[0], np.cumsum(size[firsts])])
    at = np.repeat(starts[firsts] - members[:-1], size[firsts]) + np.arange(members[-1])
    return CauseSets(
        index=index,
        stacks=stacks[at],
        starts=members,
        kind=kind[readings],
        label=label[readings],
        caller=caller[readings],
        reading_starts=np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(firsts)))]),
    )


def _sums(values: FloatArray, stacks: Int32Array, starts: IntArray) -> FloatArray:
    """Return the sums of sets that are not empty."""
    return np.add.reduceat(values[stacks], starts[:-1]) if len(starts) > 1 else np.zeros(0)
