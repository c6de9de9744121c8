"""The changed stacks of a regression, in few enough lines to be read.

FBDetect attributes a regression to the stacks that rose (§5.4.9, Table 4); the paper does not say how to show
thousands of stacks, most of which differ by chance alone. Here stacks are merged until each line is
significant: first over who calls the regressed code, from the root down, then over what it calls. Listing the
smallest branches of a tree that are large enough, each without what is listed in it, is known as hierarchical
heavy hitters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.analysis.statistics.robust import overdispersion
from pipeline.model import BoolArray, FloatArray, IntArray, StackChange, StackMatrix

ELLIPSIS = "…"
"""Stands for frames of a stack that are left out, or that differ between merged stacks."""

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StackDifferenceConfig:
    """Requirements for a line of the difference."""

    level: float = 0.01  # chance of any noise line in a whole difference (Bonferroni)
    least_expected: float = 5.0  # samples on either side from which on a binomial is nearly normal
    depth: int = 32  # most frames of a line: they fit on a screen


def stack_difference(
    matrix: StackMatrix, regressed: BoolArray, *, most: int = 20, config: StackDifferenceConfig | None = None
) -> tuple[StackChange, ...]:
    """Return the changes of a regression's stacks, the largest first.

    A line holds at least ``1 / most`` of the regression's change and lies beyond sampling noise; what does
    not is merged with its neighbours until it does, or left out. No sample is in two lines. Where merged
    stacks differ, and where a stack is longer than fits, the line has an ELLIPSIS.

    Every other share shrinks when a regression takes more of the whole, so a line must also differ from the
    rest of the service.

    Args:
        matrix: Stack counts before and after the change point.
        regressed: (stacks,) which stacks hold the regressed series.
        most: Lines at most.
        config: Settings.

    Returns:
        Shares of all the service's samples; empty where a span has no samples.
    """
    config = config or StackDifferenceConfig()
    positions = np.flatnonzero(regressed & (matrix.before + matrix.after > 0)).tolist()
    if not positions or not matrix.total_before or not matrix.total_after or most < 1:
        return ()
    anchor = _anchor([matrix.stacks[position] for position in positions])
    halves = {position: _halves(matrix.stacks[position], anchor) for position in positions}
    # Callees come first, so that callers merge first; sorted, so that the order of the matrix has no effect.
    keys = sorted(
        ((*callees, "", *reversed(callers)), position) for position, (callers, callees) in halves.items()
    )
    evidence = _Evidence(matrix, regressed, config, tests=2 * len(positions))
    least = abs(evidence.change(positions)) / most

    def significant(branch: Sequence[int]) -> bool:
        before, after = evidence.counts(branch)
        change = after / matrix.total_after - before / matrix.total_before
        return abs(change) >= least and evidence.beyond_noise(before, after)

    shown: dict[Key, FloatArray] = {}
    for branch in _merged(keys, significant):
        stack = _shown([halves[position] for position in branch], config.depth)
        shown[stack] = shown.get(stack, np.zeros(2)) + evidence.shares(branch)
    lines = [StackChange(stack, float(pair[0]), float(pair[1])) for stack, pair in shown.items()]
    return tuple(sorted(lines, key=lambda line: (-abs(line.after - line.before), line.stack))[:most])


class _Evidence:
    """Test of whether a set of stacks changed by more than chance explains.

    Of a set's samples, a binomial part falls after the change if its share stayed as it was. The variance
    is that of the binomial times the over-dispersion that stacks outside the regression show: the median of
    their squared deviations, which a few true changes among them do not move.
    """

    def __init__(
        self, matrix: StackMatrix, regressed: BoolArray, config: StackDifferenceConfig, *, tests: int
    ) -> None:
        self._matrix = matrix
        self._least = config.least_expected
        self._bound = -float(special.ndtri(config.level / 2 / tests))
        before, after = self.shares(np.flatnonzero(regressed))
        moved = (1 - after) / (1 - before) if before < 1 and after < 1 else 1.0
        # Expected parts of a set's samples after the change: if its share stays, and if only others moved.
        self._parts = [
            factor * matrix.total_after / (matrix.total_before + factor * matrix.total_after)
            for factor in (1.0, moved)
        ]
        self._dispersion = self._dispersion_of(np.flatnonzero(~regressed))

    def shares(self, stacks: Sequence[int] | IntArray) -> FloatArray:
        """Return a set's shares of all samples before and after: (2,)."""
        before, after = self.counts(stacks)
        return np.array([before / self._matrix.total_before, after / self._matrix.total_after])

    def change(self, stacks: Sequence[int]) -> float:
        """Return the change of a set's share of all samples."""
        before, after = self.shares(stacks)
        return float(after - before)

    def beyond_noise(self, before: float, after: float) -> bool:
        """Return whether a set's share neither stayed nor moved as all others did, but for chance."""
        samples = before + after
        scores = [
            (after - samples * part) / (samples * part * (1 - part) * self._dispersion) ** 0.5
            for part in self._parts
            if samples * min(part, 1 - part) >= self._least
        ]
        return len(scores) == len(self._parts) and (min(scores) > self._bound or max(scores) < -self._bound)

    def counts(self, stacks: Sequence[int] | IntArray) -> tuple[float, float]:
        """Return a set's samples before and after."""
        if len(stacks) == 1:  # as most are
            return self._matrix.before.item(stacks[0]), self._matrix.after.item(stacks[0])
        chosen = np.asarray(stacks, dtype=np.int64)
        return float(self._matrix.before[chosen].sum()), float(self._matrix.after[chosen].sum())

    def _dispersion_of(self, outside: IntArray) -> float:
        part = self._parts[1]
        after = self._matrix.after[outside]
        samples = after + self._matrix.before[outside]
        usable = samples * min(part, 1 - part) >= self._least
        if not usable.any():
            return 1.0
        squares = (after - samples * part)[usable] ** 2 / (samples[usable] * part * (1 - part))
        return overdispersion(squares)


def _anchor(stacks: Sequence[Key]) -> str | None:
    """Return the deepest frame that all stacks hold: the regressed series, or a callee that it always has."""
    common = set(stacks[0]).intersection(*stacks[1:])
    depths = {frame: sum(stack.index(frame) for stack in stacks) for frame in common}
    return max(sorted(depths), key=lambda frame: depths[frame], default=None)


def _halves(stack: Key, anchor: str | None) -> tuple[Key, Key]:
    """Cut a stack above its anchor: callers from the root down, then the anchor and its callees."""
    position = stack.index(anchor) if anchor is not None else 0
    return stack[:position], stack[position:]


def _merged(keys: Sequence[tuple[Key, int]], significant: Callable[[Sequence[int]], bool]) -> list[list[int]]:
    """Return disjoint sets of stacks, each worth listing and as small as can be.

    Keys with a common beginning are a branch of a tree. From the leaves up, a branch without its listed parts
    is listed if it is significant; else it joins the branch above.

    Args:
        keys: Each stack's key and the stack, sorted.
        significant: Whether a set of stacks is worth listing.
    """
    sets: list[list[int]] = []
    branches: list[tuple[int, list[int]]] = [
        (0, [])
    ]  # how many elements they share, and what is left of them

    def close(shared: int) -> None:
        while branches[-1][0] > shared:
            _, left = branches.pop()
            if left and significant(left):
                sets.append(left)
                left = []
            if branches[-1][0] < shared:
                branches.append((shared, left))
            else:
                branches[-1][1].extend(left)

    previous: Key = ()
    for key, stack in keys:
        close(_common(previous, key))
        branches.append((len(key), [stack]))
        previous = key
    close(0)
    rest = branches[0][1]
    return [*sets, rest] if rest and significant(rest) else sets


def _common(left: Key, right: Key) -> int:
    """Return the number of first elements that two keys share."""
    shorter = min(len(left), len(right))
    return next((position for position in range(shorter) if left[position] != right[position]), shorter)


def _shown(halves: Sequence[tuple[Key, Key]], depth: int) -> Key:
    """Return merged stacks as one: their common frames, with an ELLIPSIS where they differ."""
    all_callers, all_callees = [callers for callers, _ in halves], [callees for _, callees in halves]
    head = _shared(all_callers)
    tail = tuple(reversed(_shared([tuple(reversed(callers[len(head) :])) for callers in all_callers])))
    whole = all(len(callers) == len(head) + len(tail) for callers in all_callers)
    callers = (*head, *tail) if whole else (*head, ELLIPSIS, *tail)
    callees = _shared(all_callees)
    callees = callees if all(len(one) == len(callees) for one in all_callees) else (*callees, ELLIPSIS)
    return _within(callers, depth // 2) + _within(callees, depth - depth // 2)


def _shared(stacks: Sequence[Key]) -> Key:
    """Return the frames with which all stacks begin."""
    # The first and the last in sorted order have the shortest common beginning.
    low, high = min(stacks), max(stacks)
    return low[: _common(low, high)]


def _within(frames: Key, most: int) -> Key:
    """Cut frames in the middle where there are too many: the ends say where a path comes from and leads."""
    if len(frames) <= most:
        return frames
    head = (most - 1) // 2
    cut = (*frames[:head], ELLIPSIS, *frames[len(frames) - (most - 1 - head) :])
    return tuple(f for i, f in enumerate(cut) if f != ELLIPSIS or i == 0 or cut[i - 1] != ELLIPSIS)
