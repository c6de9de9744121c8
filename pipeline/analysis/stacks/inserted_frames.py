"""Inserted frames: a tracer or a middleware puts a frame into stacks that are otherwise the same.

A frame around everything makes every stack new, though no work is. The rest of a stack without its inserted
frames is its identity across the change. By that, the earlier cost of a stack is carried over to the stacks
that it became, and only their difference is a change.

A new subroutine with a cost of its own is no inserted frame: the stacks without it keep their cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from pipeline.analysis.stacks.index import StackIndex, share_changes
from pipeline.model import BoolArray, FloatArray, IntArray, StackMatrix

Stack = tuple[str, ...]

_SEED = 0x1F2A
"""Seed of the random keys, of any value: keys are only compared with each other."""


@dataclass(frozen=True, slots=True)
class InsertedFramesConfig:
    """Criteria of an inserted frame."""

    most: float = 0.5  # it won more than this share of its cost, and the stacks without it gave more of that
    mistaken: float = 0.005  # share of the labels taken for new that chance produces
    errors: float = 3.0  # standard errors by which the stacks without it must have fallen: one-sided 0.00135


class Moves(NamedTuple):
    """What stacks gave each other: (moves,) each."""

    source: IntArray
    goal: IntArray
    part: FloatArray  # of what the source had

    def made(self, counts: FloatArray) -> FloatArray:
        """Return counts of a time before the change in the stacks that each became: (stacks,)."""
        moving = counts[self.source] * self.part
        left = counts - np.bincount(self.source, moving, len(counts))
        moved = left + np.bincount(self.goal, moving, len(counts))
        return np.asarray(np.maximum(moved, 0.0), dtype=np.float64)  # rounding


@dataclass(frozen=True, slots=True, eq=False)
class CarriedOver:
    """Stacks around a change, with the cost before in the stacks that each one became."""

    index: StackIndex
    frames: frozenset[str] = frozenset()  # labels that were inserted or taken out
    became: Mapping[Stack, Sequence[tuple[Stack, float]]] = field(
        default_factory=dict
    )  # with parts of the cost

    def spread(self, matrix: StackMatrix, *, after: bool = True) -> StackMatrix:
        """Return stacks of a time before the change, redistributed to the stacks that they became.

        Args:
            matrix: Of that time.
            after: Whether its span after lies before the change, too.
        """
        rows = {stack: row for row, stack in enumerate(matrix.stacks)}
        moves = [
            (row, rows.setdefault(goal, len(rows)), part)
            for row, stack in enumerate(matrix.stacks)
            for goal, part in self.became.get(stack, ())
        ]
        if not moves:
            return matrix
        padding = (0, len(rows) - len(matrix.stacks))
        counts = [np.pad(side, padding) for side in (matrix.before, matrix.after)]
        source, goal = np.array([move[:2] for move in moves], dtype=np.int64).T
        part = np.array([move[2] for move in moves])
        spread = [Moves(source, goal, part).made(side) for side in (counts if after else counts[:1])]
        return replace(matrix, stacks=tuple(rows), before=spread[0], after=[*spread, *counts[1:]][1])


def carry_over(index: StackIndex, config: InsertedFramesConfig | None = None) -> CarriedOver:
    """Return stacks with the cost before in the stacks that each became by frames inserted or taken out.

    Args:
        index: Of the stacks around a change.
        config: Settings.

    Returns:
        The index as it was where no frame was inserted.
    """
    config = config or InsertedFramesConfig()
    matrix = index.matrix
    if not matrix.total_before or not matrix.total_after:
        return CarriedOver(index)
    before, after = matrix.before / matrix.total_before, matrix.after / matrix.total_after
    variance = before / matrix.total_before + after / matrix.total_after
    new, vanished = _new_and_vanished(index, before, after, variance, config)
    frames = _inserted(index, new, before, after, variance, config)
    frames |= _inserted(index, vanished, after, before, variance, config)
    if not frames.any():
        return CarriedOver(index)
    moves = _moves(index, frames, before, after, config)
    if not len(moves.source):
        return CarriedOver(index)
    carried = replace(matrix, before=moves.made(matrix.before))
    return CarriedOver(
        replace(index, matrix=carried, rise=share_changes(carried)),
        frozenset(index.names[number] for number in np.flatnonzero(frames).tolist()),
        _by_stack(matrix.stacks, moves),
    )


def _new_and_vanished(
    index: StackIndex,
    before: FloatArray,
    after: FloatArray,
    variance: FloatArray,
    config: InsertedFramesConfig,
) -> tuple[BoolArray, BoolArray]:
    """Return the labels that won or lost most of their cost beyond chance among all labels."""
    own_before, own_after, spread = index.sums(np.stack([before, after, variance]))
    tiny = np.finfo(np.float64).tiny
    chance = special.ndtr(-np.abs(own_after - own_before) / np.sqrt(np.maximum(spread, tiny)))
    new, vanished = own_before < config.most * own_after, own_after < config.most * own_before
    if not ((new | vanished) & (chance <= config.mistaken)).any():
        return new & False, vanished & False
    from scipy import stats  # slow to import, and seldom needed

    certain = stats.false_discovery_control(chance) <= config.mistaken
    return new & certain, vanished & certain


def _inserted(
    index: StackIndex,
    labels: BoolArray,
    before: FloatArray,
    after: FloatArray,
    variance: FloatArray,
    config: InsertedFramesConfig,
) -> BoolArray:
    """Return the new labels that were inserted into otherwise unchanged stacks.

    The cost that a stack without them lost went to the stacks that are equal but for them: first to those
    that have the fewest, so that a new callee under an inserted frame gets none of it.

    Args:
        index: Of the stacks.
        labels: (labels,) which are new.
        before: (stacks,) shares.
        after: (stacks,) shares.
        variance: (stacks,) of their difference.
        config: Settings.
    """
    if not labels.any():
        return labels
    elements = np.bincount(index.stack[labels[index.label]], minlength=index.stacks)
    plain = elements == 0
    key = _keys(index, labels)
    keys = int(key.max(initial=0)) + 1
    lost = np.bincount(key, np.where(plain, before - after, 0.0), keys)
    spread = np.bincount(key, variance, keys)  # chance moves cost among all of these, too
    won = np.where(plain, 0.0, np.maximum(after - before, 0.0))
    order = np.lexsort((elements, key))
    running = np.cumsum(won[order]) - won[order]
    first = np.concatenate([[True], np.diff(key[order]) != 0])
    earlier = running - np.maximum.accumulate(np.where(first, running, 0.0))
    carried = np.zeros(index.stacks)
    carried[order] = np.clip(lost[key[order]] - earlier, 0.0, won[order])
    # Stacks without a label that won by chance count against it, or chance alone would speak for it.
    whole = np.bincount(key, won, keys)
    part = np.divide(won, whole[key], out=np.zeros(index.stacks), where=whole[key] > 0)
    carried = np.where(lost[key] < 0, np.maximum(lost[key], -whole[key]) * part, carried)
    sums = index.sums(np.stack([carried, won, np.where(won > 0, spread[key], 0.0)]))
    most, beyond_noise = sums[0] > config.most * sums[1], sums[0] > config.errors * np.sqrt(sums[2])
    return np.asarray(labels & most & beyond_noise, dtype=np.bool_)


def _moves(
    index: StackIndex, frames: BoolArray, before: FloatArray, after: FloatArray, config: InsertedFramesConfig
) -> Moves:
    """Return what stacks that are equal but for inserted frames gave each other."""
    key = _keys(index, frames)
    holds = index.holding(index.names[number] for number in np.flatnonzero(frames).tolist())
    framed = np.bincount(key, holds, int(key.max(initial=0)) + 1) > 0
    return moves_between(key, framed[key], framed[key], before, after, config.most)


def moves_between(
    key: IntArray, gives: BoolArray, takes: BoolArray, before: FloatArray, after: FloatArray, most: float
) -> Moves:
    """Return what stacks of the same key gave each other: those that fell to those that rose, in proportion.

    Args:
        key: (stacks,) from 0 on.
        gives: (stacks,) which may have given cost.
        takes: (stacks,) which may have taken it.
        before: (stacks,) shares.
        after: (stacks,) shares.
        most: A stack that lost more than this share of its cost has vanished: all of it is carried along,
            even if the work itself has become less.
    """
    keys = int(key.max(initial=0)) + 1
    lost, won = np.maximum(before - after, 0.0) * gives, np.maximum(after - before, 0.0) * takes
    all_lost, all_won = np.bincount(key, lost, keys), np.bincount(key, won, keys)
    part = np.where(after < most * before, 1.0, np.minimum(all_won / np.maximum(all_lost, 1e-300), 1.0)[key])
    giving = np.flatnonzero((lost > 0) & (all_won[key] > 0))
    taking = np.flatnonzero(won > 0)
    taking = taking[np.argsort(key[taking], kind="stable")]
    first, end = (np.searchsorted(key[taking], key[giving], side=side) for side in ("left", "right"))
    many = end - first
    source = np.repeat(giving, many)
    nth = np.arange(len(source)) - np.repeat(np.cumsum(many) - many, many)
    goal = taking[np.repeat(first, many) + nth]
    gone = part[source] * lost[source] / before[source]
    return Moves(source, goal, np.asarray(gone * won[goal] / all_won[key[goal]], dtype=np.float64))


def _by_stack(stacks: tuple[Stack, ...], moves: Moves) -> dict[Stack, list[tuple[Stack, float]]]:
    moves_by_stack: dict[Stack, list[tuple[Stack, float]]] = {}
    for source_row, goal_row, share in zip(*(column.tolist() for column in moves), strict=True):
        moves_by_stack.setdefault(stacks[source_row], []).append((stacks[goal_row], share))
    return moves_by_stack


def _keys(index: StackIndex, left_out: BoolArray) -> IntArray:
    """Return numbers that are equal for stacks that are equal but for the given labels: (stacks,).

    A sum of random numbers over the labels, each times one of its position among those that stay.
    """
    rng = np.random.default_rng(_SEED)
    numbers = rng.integers(2**64, size=len(index.names), dtype=np.uint64)
    of_position = rng.integers(2**64, size=index.deepest + 1, dtype=np.uint64) | np.uint64(1)
    sums, staying = np.zeros(index.stacks, dtype=np.uint64), np.zeros(index.stacks, dtype=np.int64)
    for _, positions in index.levels():
        stack, label = index.stack[positions], index.label[positions]
        remaining = ~left_out[label]
        sums[stack] += np.where(remaining, numbers[label] * of_position[staying[stack]], np.uint64(0))
        staying[stack] += remaining
    return np.unique(sums, return_inverse=True)[1].reshape(-1).astype(np.int64)
