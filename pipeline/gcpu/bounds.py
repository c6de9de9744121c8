"""What is kept of stacks: not deeper than a bound, and not more of one message than another.

Totals and series are counted from whole stacks before this, so that only what is drawn and attributed by
stacks becomes coarser. What is kept depends on one message alone: the same message gives the same stacks
in any batch and in any replay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.frames import DEEP, OTHER
from pipeline.model import BoolArray, IntArray, Profile


@dataclass(frozen=True, slots=True)
class StackBounds:
    """Most that is kept of one message's stacks.

    ``depth`` elements of a stack: the half next to the root, the half next to the leaf, and between them
    ``(deep)``. ``stacks`` distinct stacks, with ``characters`` in all their names: those with the most
    samples; the others become one, ``(other)``. A message spells a name once and a row of a stack spells it
    again, so that without a bound a message of megabytes could become rows of gigabytes.
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


def bounded_stacks(
    stacks: Ragged,
    stack_hash: NDArray[np.uint64],
    counts: IntArray,
    per_profile: IntArray,
    vocabulary: dict[str, int],
    bounds: StackBounds,
) -> tuple[Ragged, tuple[int, ...]]:
    """Return the stacks as they are kept, and how many of each profile are not kept as they came.

    Args:
        stacks: Stacks of all profiles, profile after profile.
        stack_hash: (stacks,) what decides between stacks with equally many samples.
        counts: (stacks,) samples.
        per_profile: (profiles,) how many of the stacks are whose.
        vocabulary: Label to element; grows by the labels that stand for what was left out.
        bounds: What to keep.

    Returns:
        The same object if nothing had to be shortened.
    """
    deep = np.diff(stacks.starts) > bounds.depth
    kept = stacks
    if deep.any():
        kept = _fold_middles(kept, deep, bounds.depth, vocabulary.setdefault(DEEP, len(vocabulary)))
    excess = _excess(stack_hash, counts, _characters(kept, vocabulary), per_profile, bounds)
    shortened = deep | excess
    if not shortened.any():
        return stacks, (0,) * len(per_profile)
    if excess.any():
        kept = _fold_whole(kept, excess, vocabulary.setdefault(OTHER, len(vocabulary)))
    ends = np.cumsum(per_profile)
    running = np.concatenate([[0], np.cumsum(shortened)])
    return kept, tuple((running[ends] - running[ends - per_profile]).tolist())


def _characters(stacks: Ragged, vocabulary: dict[str, int]) -> IntArray:
    """Return how long the names of each stack are together: (stacks,)."""
    lengths = np.fromiter(map(len, vocabulary), dtype=np.int64, count=len(vocabulary))
    running = np.concatenate([[0], np.cumsum(lengths[stacks.flat])])
    sums: IntArray = running[stacks.starts[1:]] - running[stacks.starts[:-1]]
    return sums


def _excess(
    stack_hash: NDArray[np.uint64],
    counts: IntArray,
    characters: IntArray,
    per_profile: IntArray,
    bounds: StackBounds,
) -> BoolArray:
    """Return which stacks are not among the largest of their profile, as far as bounds go: (stacks,)."""
    excess = np.zeros(len(counts), dtype=np.bool_)
    ends = np.cumsum(per_profile)
    running = np.concatenate([[0], np.cumsum(characters)])
    spelt = running[ends] - running[ends - per_profile]
    for profile in np.flatnonzero((per_profile > bounds.stacks) | (spelt > bounds.characters)).tolist():
        span = slice(int(ends[profile] - per_profile[profile]), int(ends[profile]))
        # A stack may stand twice in a message.
        ids, first, of = np.unique(stack_hash[span], return_index=True, return_inverse=True)
        samples = np.zeros(len(ids), dtype=np.int64)
        np.add.at(samples, of, counts[span])
        largest = np.lexsort((ids, -samples))
        within = np.cumsum(characters[span][first][largest]) <= bounds.characters
        left_out = np.ones(len(ids), dtype=np.bool_)
        left_out[largest[within][: bounds.stacks]] = False
        excess[span] = left_out[of]
    return excess


def _fold_middles(stacks: Ragged, deep: BoolArray, depth: int, label: int) -> Ragged:
    """Put one element instead of the middle of deep stacks, which then have ``depth`` elements."""
    head = (depth - 1) // 2
    lengths = np.diff(stacks.starts)
    position = np.arange(len(stacks.flat)) - np.repeat(stacks.starts[:-1], lengths)
    from_leaf = np.repeat(lengths, lengths) - position  # 1 for the leaf
    is_deep = np.repeat(deep, lengths)
    flat = np.where(is_deep & (position == head), label, stacks.flat)
    keep = ~is_deep | (position <= head) | (from_leaf < depth - head)
    return _ragged(flat[keep], np.where(deep, depth, lengths))


def _fold_whole(stacks: Ragged, chosen: BoolArray, label: int) -> Ragged:
    """Put one element instead of each chosen stack."""
    lengths = np.diff(stacks.starts)
    position = np.arange(len(stacks.flat)) - np.repeat(stacks.starts[:-1], lengths)
    is_chosen = np.repeat(chosen, lengths)
    flat = np.where(is_chosen, label, stacks.flat)
    return _ragged(flat[~is_chosen | (position == 0)], np.where(chosen, np.minimum(lengths, 1), lengths))


def _ragged(flat: IntArray, lengths: IntArray) -> Ragged:
    return Ragged(flat, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def profile_extent(profile: Profile, *, exact_from: float) -> tuple[int, int]:
    """Return how many elements the stacks of a profile have, and at most how many characters these have.

    Args:
        profile: One message.
        exact_from: Characters from which on they are counted, rather than bounded by the longest name.
    """
    if not profile.frames:
        return 0, 0
    elements = len(profile.stack_frames)
    characters = elements * max(map(len, profile.frames))
    if characters > exact_from:
        lengths = np.fromiter(map(len, profile.frames), dtype=np.int64, count=len(profile.frames))
        characters = int(lengths[profile.stack_frames].sum())
    return elements, min(characters, STACK_BOUNDS.characters)
