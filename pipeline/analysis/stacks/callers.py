"""Callers of a subroutine, path by path, and the samples that these callers have besides it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.stacks.index import StackIndex
from pipeline.model import BoolArray, FloatArray, Int32Array, IntArray

_ENOUGH = 30.0
"""Samples on either side from which on the rest of a branch shows how its traffic changed."""

_ERRORS = 3.0
"""Standard errors of a callee's excess rise over its caller's others beyond which it is no witness."""


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """The branches of a subroutine's callers: its samples in each, and those besides it, of row 0."""

    caller: IntArray  # (branches,) index of the caller in Beside
    own: FloatArray  # (before and after, branches)
    rest: FloatArray  # (before and after, branches)


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """A subroutine's samples by caller, and the samples that these callers have besides it."""

    own: FloatArray  # (before and after, rows, callers)
    rest: FloatArray  # (before and after, rows, callers)
    branches: Branches


_NO_BRANCHES = Branches(np.zeros(0, dtype=np.int64), np.zeros((2, 0)), np.zeros((2, 0)))


def caller_nodes(index: StackIndex) -> list[Int32Array]:
    """Return, for each depth, numbers that are equal for stacks with the same frames down to that depth.

    Numbers follow the order of the alphabet. A stack that is alone at its node is looked at no further.

    Returns:
        (depths,) of (stacks,), the last of no more than single stacks.
    """
    position = np.zeros(index.stacks, dtype=np.int64)  # of each stack's node among all stacks in order
    node, nodes = np.zeros(index.stacks, dtype=np.int32), []
    left = np.arange(index.stacks)
    for depth in range(index.deepest + 1):
        if len(left):
            left = _divided(index, position, left, depth)
            begins = np.zeros(index.stacks, dtype=np.bool_)
            begins[position] = True
            node = (np.cumsum(begins, dtype=np.int32) - 1)[position]
        nodes.append(node)
    return nodes


def _divided(index: StackIndex, position: IntArray, stacks: IntArray, depth: int) -> IntArray:
    """Set the positions of stacks by their frame at one depth, and return those that still share a node."""
    ends = index.starts[stacks + 1] - index.starts[stacks] <= depth
    label = index.label[np.minimum(index.starts[stacks] + depth, len(index.label) - 1)]
    # A stack that ends here is a callee of its own: the work of its last frame itself.
    child = np.where(ends, len(index.names) + stacks, label)
    caller = position[stacks]
    key = caller * (len(index.names) + index.stacks) + child
    order = np.argsort(key)
    stacks, caller, key = stacks[order], caller[order], key[order]
    rank = np.arange(len(stacks))
    of_caller, first = np.diff(caller, prepend=-1) != 0, np.diff(key, prepend=-1) != 0
    begin = np.maximum.accumulate(np.where(first, rank, 0))
    position[stacks] = caller + begin - np.maximum.accumulate(np.where(of_caller, rank, 0))
    alone = first & np.append(first[1:], True)
    return np.asarray(stacks[~alone], dtype=np.int64)


def deepest_of(index: StackIndex, labels: Iterable[str]) -> IntArray:
    """Return the depth of the deepest of some frames in each stack, -1 without any: (stacks,)."""
    deepest = np.full(index.stacks, -1)
    for label in labels:
        positions = index.positions(label)
        stack = index.stack[positions]
        np.maximum.at(deepest, stack, positions - index.starts[stack])
    return deepest


def beside_callers(
    index: StackIndex,
    nodes: Sequence[Int32Array],
    label: str,
    counts: FloatArray,
    samples: FloatArray,
    rising: IntArray,
) -> Beside | None:
    """Return the samples of callers besides a subroutine: of each path, the nearest caller with as many.

    Of a caller's other callees, the one that won most is left out if it rose beyond the others: it changed by
    itself. Paths without such a caller are compared with the whole service.

    Args:
        index: Of the stacks.
        nodes: As ``caller_nodes`` returns them.
        label: The subroutine.
        counts: (before and after, rows, stacks) samples, both sides of a row of one total. Callers are chosen
            by row 0.
        samples: (before and after,) independent samples in row 0 for each unit of its counts.
        rising: (stacks,) from ``deepest_of``, of what rises by itself: below a caller it does not count.

    Returns:
        None for a subroutine that no stack holds.
    """
    own = index.holding([label])
    if not own.any():
        return None
    first = np.full(index.stacks, -1)  # depth of the subroutine, from the root
    positions = index.positions(label)[::-1]
    first[index.stack[positions]] = positions - index.starts[index.stack[positions]]
    left = own.copy()
    parts: list[tuple[FloatArray, FloatArray]] = []
    branches: list[Branches] = []
    for depth in range(int(first.max()) - 1, -1, -1):
        callers = np.unique(nodes[depth][left & (first > depth)])
        if not len(callers):
            continue
        caller = _numbers(nodes[depth], callers)
        beside = (caller >= 0) & ~own & (rising <= depth)
        witnesses = _witnesses(counts[:, 0], caller, beside, nodes[depth + 1], samples)
        enough = _enough(counts[:, 0], caller, own, witnesses, len(callers))
        chosen = (caller >= 0) & enough[caller]
        rank = np.cumsum(enough) - 1
        caller = rank[caller]
        size = int(enough.sum())
        if not size:
            continue
        mine, rest = chosen & left, chosen & witnesses
        numbers = np.where(chosen, caller, -1)
        branches.append(_branches(nodes[depth:], counts[:, 0], numbers, (left, own), rising - depth, samples))
        parts.append((_sums(counts, mine, caller, size), _sums(counts, rest, caller, size)))
        left &= ~chosen
    if left.any():
        rest = ~own & (rising < 0)
        parts.append((_whole(counts, left), _whole(counts, rest)))
        root = np.zeros(index.stacks, dtype=np.int64)
        branches.append(_branches([root, *nodes], counts[:, 0], root, (left, own), rising + 1, samples))
    held, besides = (np.concatenate(side, axis=2) for side in zip(*parts, strict=True))
    return Beside(held, besides, _joined(branches, [own_sums.shape[2] for own_sums, _ in parts]))


def callees_beside(nodes: Sequence[Int32Array], counts: FloatArray, least: FloatArray) -> Beside:
    """Return each callee of each caller, with the samples of the caller besides it if these are as many.

    Args:
        nodes: As ``caller_nodes`` returns them.
        counts: (before and after, rows, stacks) samples, both sides of a row of one total.
        least: (before and after,) bound on a callee's samples in row 0, under which they are too few.

    Returns:
        One in place of the callers for each callee.
    """
    caller = np.zeros(counts.shape[2], dtype=np.int32)
    sums = _sums(counts, None, caller, 1)
    parts = [np.zeros((2, *counts.shape[:2], 0))]
    for callee in nodes:
        if sums.shape[2] == counts.shape[2]:
            break  # single stacks have nothing besides
        callees = int(callee.max()) + 1
        own = _sums(counts, None, callee, callees)
        above = np.zeros(callees, dtype=np.int32)
        above[callee] = caller
        rest = sums[:, :, above] - own
        enough = (own[:, 0] >= least[:, None]).all(axis=0) & (rest[:, 0] >= own[:, 0]).all(axis=0)
        parts.append(np.stack([own[:, :, enough], rest[:, :, enough]]))
        caller, sums = callee, own
    mine, rest = np.concatenate(parts, axis=3)
    return Beside(mine, rest, _NO_BRANCHES)


def _numbers(node: Int32Array, chosen: Int32Array) -> IntArray:
    """Return each stack's index among the chosen nodes, -1 if it is at none of them."""
    position = np.full(int(node.max()) + 1, -1)
    position[chosen] = np.arange(len(chosen))
    return position[node]


def _witnesses(
    counts: FloatArray,
    caller: IntArray,
    beside: BoolArray,
    callee: Int32Array | IntArray,
    samples: FloatArray,
) -> BoolArray:
    """Return the mask of stacks that are evidence on their caller's traffic: (stacks,).

    Of each caller the callee that won most is left out if it rose beyond the others.
    """
    largest = _winners(counts, caller, beside, callee)
    callers = int(caller.max(initial=0)) + 1
    it, rest = (
        _by_caller(counts, caller, rows, callers) * samples[:, None] + 0.5
        for rows in (largest, beside & ~largest)
    )
    apart = np.log(it[1] * rest[0] / (it[0] * rest[1]))
    variance = (1 / it + 1 / rest).sum(axis=0)
    risen = apart > _ERRORS * np.sqrt(variance)
    return np.asarray(beside & ~(largest & risen[caller]))


def _winners(
    counts: FloatArray, caller: IntArray, beside: BoolArray, callee: Int32Array | IntArray
) -> BoolArray:
    """Return the mask of stacks with the callee of each caller that won most: (stacks,)."""
    stacks = np.flatnonzero(beside)
    _, first, at = np.unique(callee[stacks], return_index=True, return_inverse=True)
    at = at.reshape(-1)
    won = np.bincount(at, counts[1, stacks] - counts[0, stacks], minlength=len(first))
    of = caller[stacks[first]]
    # The last stack of each caller in this order has the callee that won most.
    order = np.lexsort((won, of))
    most = np.zeros(len(first), dtype=np.bool_)
    most[order[np.append(np.diff(of[order]) != 0, True)[: len(order)]]] = True
    largest = np.zeros(len(beside), dtype=np.bool_)
    largest[stacks[most[at]]] = True
    return largest


def _enough(
    counts: FloatArray, caller: IntArray, own: BoolArray, beside: BoolArray, callers: int
) -> BoolArray:
    """Return the mask of callers with as many samples besides a subroutine as with it, before and after."""
    mine, rest = (_by_caller(counts, caller, rows, callers) for rows in (own & (caller >= 0), beside))
    return np.asarray(((rest >= mine) & (rest > 0)).all(axis=0))


def _by_caller(counts: FloatArray, caller: IntArray, rows: BoolArray, callers: int) -> FloatArray:
    """Return sums of both sides by caller: (before and after, callers)."""
    return np.array([np.bincount(caller[rows], side[rows], minlength=callers) for side in counts])


def _sums(
    counts: FloatArray, chosen: BoolArray | None, caller: IntArray | Int32Array, callers: int
) -> FloatArray:
    """Return the sums of each caller's stacks, of some or all: (before and after, rows, callers)."""
    stacks = slice(None) if chosen is None else np.flatnonzero(chosen)
    numbers = caller[stacks].astype(np.int64)
    sums = [np.bincount(numbers, row[stacks], minlength=callers) for side in counts for row in side]
    return np.array(sums, dtype=np.float64).reshape(*counts.shape[:2], callers)


def _branches(
    nodes: Sequence[Int32Array | IntArray],
    counts: FloatArray,
    caller: IntArray,
    own: tuple[BoolArray, BoolArray],
    rising: IntArray,
    samples: FloatArray,
) -> Branches:
    """Return the branches of callers, and the witnesses of each branch's traffic.

    The witnesses are the other samples of a branch. A branch that has hardly any besides the subroutine is
    divided by the subroutine's callees: the one that won most may be slower, the others show how often the
    subroutine is called.

    Args:
        nodes: From the callers' depth down.
        counts: (before and after, stacks)
        caller: (stacks,) number of its caller, -1 for none.
        own: (stacks,) the subroutine's of these callers, and all of it.
        rising: (stacks,) depth below the callers of what rises by itself: below a branch it does not count.
        samples: (before and after,) independent samples for each unit of counts.
    """
    branch, depths = _divide(nodes, counts, caller, np.zeros(len(caller), dtype=np.int64))
    in_branch = branch >= 0
    count = int(branch.max(initial=-1)) + 1
    of = np.zeros(count, dtype=np.int64)
    of[branch[in_branch]] = caller[in_branch]
    counted = in_branch & (rising <= depths)
    # If a descendant of the subroutine rises by itself, the other work of the subroutine is a witness.
    beside_rising = np.isin(branch, branch[in_branch & own[1] & ~counted])
    callee = np.arange(len(caller))  # of what nothing divides, each stack by itself
    for depth in np.unique(depths[in_branch & (depths < len(nodes))]).tolist():
        rows = depths == depth
        callee[rows] = depth * len(caller) + nodes[min(depth + 1, len(nodes) - 1)][rows]
    rest = _witnesses(counts, branch, counted & (~own[1] | beside_rising), callee, samples)
    mine, rest_sums = (_by_caller(counts, branch, rows, count) for rows in (own[0] & in_branch, rest))
    silent = np.asarray((rest_sums * samples[:, None] < _ENOUGH).any(axis=0))
    inside = counted & own[1] & silent[branch]
    if inside.any():
        part, _ = _divide(nodes, counts, np.where(inside, branch, -1), depths)
        inside &= ~_winners(counts, branch, inside, part)
        at = np.unique(branch[inside])
        rest_sums[:, at] = _by_caller(counts, branch, inside, count)[:, at]
    return Branches(of, mine, rest_sums)


def _divide(
    nodes: Sequence[Int32Array | IntArray], counts: FloatArray, whole: IntArray, begins: IntArray
) -> tuple[IntArray, IntArray]:
    """Divide stacks into parts: from each whole down, the first nodes with as many samples beside them.

    Frames around all of a whole do not divide it. A whole that no node divides is one part.

    Args:
        nodes: From one depth down.
        counts: (before and after, stacks)
        whole: (stacks,) number of its whole, -1 for none.
        begins: (stacks,) how far down its whole begins.

    Returns:
        (stacks,) number of its part, -1 for none; and how far down that begins.
    """
    stacks = np.flatnonzero(whole >= 0)
    part, depths, count = np.full(len(whole), -1), np.full(len(whole), len(nodes)), 0
    sums = _by_caller(counts, whole, whole >= 0, int(whole.max(initial=-1)) + 1)
    above = sums[:, whole]
    for depth, node in enumerate(nodes[1:], start=1):
        begun = begins[stacks] < depth
        started = stacks[begun]
        if not len(started):
            continue
        here = np.array([np.bincount(node[started], side[started]) for side in counts])[:, node[started]]
        divided = (2 * here <= above[:, started]).all(axis=0)
        chosen = started[divided]
        names, number = np.unique(node[chosen], return_inverse=True)
        part[chosen], depths[chosen] = count + number.reshape(-1), depth
        count += len(names)
        above[:, started] = here
        stacks = np.concatenate([stacks[~begun], started[~divided]])
    _, number = np.unique(whole[stacks], return_inverse=True)
    part[stacks] = count + number.reshape(-1)
    return part, depths


def _joined(branches: Sequence[Branches], callers: Sequence[int]) -> Branches:
    """Return the joined branches of groups of callers."""
    before = np.cumsum([0, *callers])
    return Branches(
        np.concatenate([group.caller + start for group, start in zip(branches, before, strict=False)]),
        np.concatenate([group.own for group in branches], axis=1),
        np.concatenate([group.rest for group in branches], axis=1),
    )


def _whole(counts: FloatArray, chosen: BoolArray) -> FloatArray:
    return np.asarray(counts[:, :, chosen].sum(axis=2, keepdims=True))
