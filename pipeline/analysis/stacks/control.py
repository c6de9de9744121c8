"""The control of stacks: their usual change at the same hours of earlier days, without any deployment.

Endpoints have daily cycles of their own. Compared with the hours just before alone, the daily cycle of an
endpoint looks like the effect of a change on its subroutines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from pipeline.analysis.stacks.index import StackIndex, share_changes
from pipeline.model import FloatArray, IntArray, StackMatrix


@dataclass(frozen=True, slots=True)
class ControlConfig:
    """Settings of the control."""

    spread: float = 0.1
    """Prior standard deviation of a callee's logarithmic change around its caller's.

    Half of the largest cycles that endpoints are seen to have: what thousands of samples show is hardly drawn
    to the caller by it, and what ten show is nearly the caller's.
    """

    min_days: int = 3  # of two, one on which something else changed would be half


def against_control(
    index: StackIndex, days: Sequence[StackMatrix], config: ControlConfig | None = None
) -> StackIndex:
    """Return the index with the counts before as expected at the hours after, had nothing changed.

    Args:
        index: Of the stacks around a change.
        days: Stacks at the same hours of earlier days; what the index does not know counts in totals alone.
        config: Settings.

    Returns:
        The index as it was where too few days are known.
    """
    config = config or ControlConfig()
    days = [day for day in days if day.total_before and day.total_after]
    if len(days) < config.min_days:
        return index
    row_of = {stack: row for row, stack in enumerate(index.matrix.stacks)}
    before, after = np.zeros((2, len(days), index.stacks))
    # Scaled to equal samples on each side, so that days and sides have the same weight.
    samples = float(np.mean([(day.total_before + day.total_after) / 2 for day in days]))
    for number, day in enumerate(days):
        rows = np.fromiter(map(row_of.get, day.stacks, repeat(-1)), np.int64, len(day.stacks))
        present = rows >= 0
        before[number, rows[present]] = day.before[present] * samples / day.total_before
        after[number, rows[present]] = day.after[present] * samples / day.total_after
    matrix = index.matrix
    matrix = replace(matrix, before=matrix.before * usual_factors(index, before, after, config))
    return replace(index, matrix=matrix, rise=share_changes(matrix))


def usual_factors(
    index: StackIndex, before: FloatArray, after: FloatArray, config: ControlConfig | None = None
) -> FloatArray:
    """Return the usual factor of each stack's share; with few samples, that of its callers.

    From the root down, each callee's change is its caller's times a factor of its own, whose logarithm has a
    normal prior around 0 with the config's spread; the posterior mean is taken, with the sampling variance of
    a logarithmic ratio of two counts (a random-effects model of nested groups). A callee that is all of its
    caller adds nothing. The days on which a callee rose most and least do not count for it, since something
    else may have changed there.

    Args:
        index: Of the stacks.
        before: (days, stacks) samples.
        after: (days, stacks) samples; each side of each day of the same total.
        config: Settings.

    Returns:
        (stacks,) 1 where nothing is known.
    """
    config = config or ControlConfig()
    factor = np.ones(index.stacks)
    node = np.zeros(index.stacks, dtype=np.int64)
    counts = np.stack([before, after])  # (before and after, days, stacks)
    callers = np.broadcast_to(counts.sum(axis=2, keepdims=True), counts.shape).copy()
    left = np.arange(index.stacks)  # stacks whose caller has other stacks besides
    lengths = np.diff(index.starts)
    for depth in range(index.deepest + 1):
        # A stack that ends here is a callee of its own: the work of its last frame itself.
        ends = lengths[left] <= depth
        label = index.label[np.minimum(index.starts[left] + depth, len(index.label) - 1)]
        node[left], sizes = _children(node[left], np.where(ends, len(index.names) + left, label))
        sums = _sums(counts[:, :, left], node[left], len(sizes))[:, :, node[left]]
        own = _posterior(sums[0], sums[1], factor[left], config.spread)
        factor[left] *= np.where((sums == callers[:, :, left]).all(axis=(0, 1)), 1.0, own)
        callers[:, :, left] = sums
        left = left[~ends & (sizes[node[left]] > 1)]
        if not len(left):
            break
    return factor


def _children(node: IntArray, child: IntArray) -> tuple[IntArray, IntArray]:
    """Return the number of each stack's next node, and the number of stacks of each node."""
    keys = node * (int(child.max(initial=0)) + 1) + child
    _, number, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    return number.reshape(-1), sizes


def _sums(counts: FloatArray, node: IntArray, nodes: int) -> FloatArray:
    """Return the sums of each node's stacks: (2, days, nodes)."""
    rows = counts.reshape(-1, counts.shape[2])
    sums = np.array([np.bincount(node, row, minlength=nodes) for row in rows], dtype=np.float64)
    return sums.reshape(*counts.shape[:2], nodes)


def _posterior(before: FloatArray, after: FloatArray, callers: FloatArray, spread: float) -> FloatArray:
    """Return the factor of each callee beyond its caller's; half a sample keeps 0 from being certain."""
    ratio = (after + 0.5) / (before * callers + 0.5)
    chosen = np.ones(ratio.shape, dtype=np.bool_)
    columns = np.arange(ratio.shape[1])
    chosen[ratio.argmax(axis=0), columns] = False
    # Count from the other end, so that two different days are left out if days are equal.
    chosen[len(ratio) - 1 - ratio[::-1].argmin(axis=0), columns] = False
    days = chosen.sum(axis=0)
    by_day = np.log(ratio)
    sampling_by_day = 1 / (after + 0.5) + 1 / (before * callers + 0.5)
    before, after = (before * callers * chosen).sum(axis=0), (after * chosen).sum(axis=0)
    logarithm = np.log((after + 0.5) / (before + 0.5))
    sampling = 1 / (after + 0.5) + 1 / (before + 0.5)
    # Days that disagree say little of what is usual: on one of them something may have been released.
    beyond = (((by_day - logarithm) ** 2 - sampling_by_day) * chosen).sum(axis=0) / days
    certain = sampling + np.maximum(beyond, 0.0) / days
    return np.asarray(np.exp(logarithm * spread**2 / (spread**2 + certain)), dtype=np.float64)
