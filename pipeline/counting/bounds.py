"""Bounds on the stacks that are stored: on the depth of each, and on the number and size per message.

Totals and series are counted from whole stacks first, so only drawings and attribution by stacks become
coarser. The stored stacks depend on one message alone: the same message gives the same stacks in any batch
and in any replay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.counting.vocabulary import Vocabulary
from pipeline.model import BoolArray, IntArray
from pipeline.model.frames import DEEP, OTHER


@dataclass(frozen=True, slots=True)
class StackBounds:
    """Bounds on the stored stacks of one message.

    ``depth`` bounds the elements of a stack: those next to the root and to the leaf stay, with ``(deep)``
    between them. ``stacks`` bounds the distinct stacks and ``characters`` the length of all their names: the
    stacks with the most samples stay, the others become one, ``(other)``. A message contains a name once, and
    every row of a stack repeats it: without a bound, a message of megabytes could become rows of gigabytes.
    """

    depth: int = 512
    stacks: int = 20_000
    characters: int = 1 << 24


STACK_BOUNDS = StackBounds()


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Stacks of elements: ``flat[starts[i]:starts[i + 1]]`` are those of stack i, root first."""

    flat: IntArray
    starts: IntArray  # (stacks + 1,)

    @classmethod
    def of(cls, flat: IntArray, lengths: IntArray) -> Ragged:
        """Return stacks of these lengths."""
        starts = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        return cls(flat, starts)

    def part(self, first: int, end: int) -> Ragged:
        """Return the stacks from ``first`` up to, without, ``end``."""
        starts = self.starts[first : end + 1]
        return Ragged(self.flat[starts[0] : starts[-1]], starts - starts[0])

    def take(self, chosen: NDArray[np.intp]) -> Ragged:
        """Return chosen stacks, in that order."""
        lengths = np.diff(self.starts)[chosen]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Ragged.of(self.flat[np.repeat(self.starts[chosen], lengths) + within], lengths)


def bounded_stacks(
    stacks: Ragged,
    stack_hash: NDArray[np.uint64],
    counts: IntArray,
    vocabulary: Vocabulary,
    bounds: StackBounds,
) -> tuple[Ragged, int]:
    """Return the stacks of a message within bounds, and the number of shortened ones.

    Args:
        stacks: Stacks of one message.
        stack_hash: (stacks,) hashes, which order stacks with equally many samples.
        counts: (stacks,) samples.
        vocabulary: Numbers elements; grows by the labels that stand for omitted elements.
        bounds: The bounds.

    Returns:
        The same object if nothing was shortened.
    """
    deep = np.diff(stacks.starts) > bounds.depth
    bounded = stacks
    if deep.any():
        bounded = _fold_middles(bounded, deep, bounds.depth, vocabulary[DEEP])
    excess = _excess(stack_hash, counts, _characters(bounded, vocabulary), bounds)
    shortened = deep | excess
    if not shortened.any():
        return stacks, 0
    if excess.any():
        bounded = _fold_whole(bounded, excess, vocabulary[OTHER])
    return bounded, int(shortened.sum())


def _characters(stacks: Ragged, vocabulary: Vocabulary) -> IntArray:
    """Return (stacks,) the length of all names of each stack."""
    running = np.concatenate([[0], np.cumsum(vocabulary.lengths[stacks.flat])])
    sums: IntArray = running[stacks.starts[1:]] - running[stacks.starts[:-1]]
    return sums


def _excess(
    stack_hash: NDArray[np.uint64], counts: IntArray, characters: IntArray, bounds: StackBounds
) -> BoolArray:
    """Return (stacks,) True for stacks beyond the bounds, which are not among the message's largest."""
    if len(counts) <= bounds.stacks and int(characters.sum()) <= bounds.characters:
        return np.zeros(len(counts), dtype=np.bool_)
    # A stack may occur twice in a message.
    ids, first, of = np.unique(stack_hash, return_index=True, return_inverse=True)
    samples = np.zeros(len(ids), dtype=np.int64)
    np.add.at(samples, of, counts)
    largest = np.lexsort((ids, -samples))
    within = np.cumsum(characters[first][largest]) <= bounds.characters
    left_out = np.ones(len(ids), dtype=np.bool_)
    left_out[largest[within][: bounds.stacks]] = False
    return left_out[of]


def _fold_middles(stacks: Ragged, deep: BoolArray, depth: int, label: int) -> Ragged:
    """Replace the middle of deep stacks by one element, so that they have ``depth`` elements."""
    head = (depth - 1) // 2
    lengths = np.diff(stacks.starts)
    position = np.arange(len(stacks.flat)) - np.repeat(stacks.starts[:-1], lengths)
    from_leaf = np.repeat(lengths, lengths) - position  # 1 for the leaf
    is_deep = np.repeat(deep, lengths)
    flat = np.where(is_deep & (position == head), label, stacks.flat)
    keep = ~is_deep | (position <= head) | (from_leaf < depth - head)
    return Ragged.of(flat[keep], np.where(deep, depth, lengths))


def _fold_whole(stacks: Ragged, chosen: BoolArray, label: int) -> Ragged:
    """Replace each chosen stack by one element."""
    lengths = np.diff(stacks.starts)
    position = np.arange(len(stacks.flat)) - np.repeat(stacks.starts[:-1], lengths)
    is_chosen = np.repeat(chosen, lengths)
    flat = np.where(is_chosen, label, stacks.flat)
    folded = np.where(chosen, np.minimum(lengths, 1), lengths)
    return Ragged.of(flat[~is_chosen | (position == 0)], folded)
