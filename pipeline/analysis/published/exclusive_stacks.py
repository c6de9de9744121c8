"""Deduplication by exclusive stack traces, the alternative to SOMDedup (KDD 2018 §2.3).

A rise shows in a function, in what calls it, and in what it calls more often. Change points close in time
in functions that share stacks are one bucket. From a bucket, functions are removed one by one with all the
stacks that hold them, the one with most stacks of its own first, and what is left is revised to what its
remaining stacks show, until few stacks are left; so each starting point gives one set of functions that
together account for the bucket, and a weighting chooses among the sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from pipeline.analysis.stacks import Group, StackIndex, explained_shares, membership
from pipeline.model import BoolArray, FloatArray, IntArray, SeriesKey


@dataclass(frozen=True, slots=True)
class ExclusiveConfig:
    """Settings of the deduplication."""

    bucket_s: float = 600.0  # §2.3: change points within ten minutes of each other
    remaining: float = 0.1  # share of a bucket's stacks at which removal ends; §2.3 names no number
    balance: float = 0.5  # weight of how large changes are against how much they cover: neither leads
    least: float = 0.3  # share of a function's change that must be left for it to be a regression itself
    starts: int = 64  # starting points tried in a bucket, largest rises first; §2.3 tries all there are


def group_by_exclusive_stacks(
    index: StackIndex,
    series: Sequence[SeriesKey],
    change_times: FloatArray,
    *,
    config: ExclusiveConfig | None = None,
) -> list[Group]:
    """Group candidates around the functions that account best for the rise.

    Each candidate that is not in its bucket's final set belongs to the one of it that explains most of its
    rise. The paper leaves the weighting of sets open; here it is r^b · c^(1 - b): r is what was left of the
    functions' changes when they were removed, as a share of their level; c the same as a share of the
    bucket's change; b the balance. A function high up covers all and hardly changes; of functions far down
    it takes many to cover it all, and of equal sets the smallest is taken.

    Args:
        index: Of the stacks before and after the change.
        series: (candidates,)
        change_times: (candidates,) epoch seconds.
        config: Settings.
    """
    config = config or ExclusiveConfig()
    holds, matrix, rise = membership(index, series), index.matrix, index.rise
    mass = matrix.after / matrix.total_after if matrix.total_after else np.zeros(len(matrix.stacks))
    explained = explained_shares(holds, rise)
    groups = []
    for bucket in buckets(holds & (matrix.before + matrix.after > 0), change_times, config.bucket_s):
        held = holds[bucket].any(axis=0)
        chosen = bucket[_final_set(holds[bucket][:, held], rise[held], mass[held], config)]
        shares = explained[np.ix_(bucket, chosen)]
        nearest = np.where(shares.max(axis=1) > 0, chosen[shares.argmax(axis=1)], bucket)
        nearest[np.isin(bucket, chosen)] = bucket[np.isin(bucket, chosen)]
        for leader in np.unique(nearest).tolist():
            members = tuple(m for m in bucket[nearest == leader].tolist() if m != leader)
            groups.append(Group(leader, members, tuple(float(explained[m, leader]) for m in members)))
    return groups


def buckets(holds: BoolArray, change_times: FloatArray, bucket_s: float) -> list[IntArray]:
    """Return groups of candidates, as indexes, that share stacks and are near in time."""
    member = csr_array(holds.astype(np.float64))
    shared = (member @ member.T).tocoo()
    first, second = shared.coords
    near = np.abs(change_times[first] - change_times[second]) <= bucket_s
    links = csr_array((np.ones(int(near.sum())), (first[near], second[near])), shape=(len(holds),) * 2)
    count, component = connected_components(links, directed=False)
    return [np.flatnonzero(component == number) for number in range(count)]


def _final_set(holds: BoolArray, rise: FloatArray, mass: FloatArray, config: ExclusiveConfig) -> IntArray:
    """Return the best set over all starting points of removal; the smallest of equal sets."""
    changes = holds @ rise
    whole = float(rise.sum()) if rise.sum() * changes.sum() > 0 else float(np.abs(changes).max())
    best, rank = np.zeros(1, dtype=np.int64), (-1.0, 0)
    for start in np.argsort(-np.abs(changes), kind="stable")[: config.starts].tolist():
        removed, change, level = _remove(start, holds, rise, mass, config)
        # What is left of a function that those removed before explain is no regression.
        lasting = np.abs(change) >= config.least * np.abs(changes[removed])
        size = abs(float(change[lasting].sum()))
        relative = size / float(level[lasting].sum()) if level[lasting].any() else 0.0
        covered = min(size / abs(whole), 1.0) if whole else 0.0
        weight = min(relative, 1.0) ** config.balance * covered ** (1 - config.balance)
        if lasting.any() and (round(weight, 9), -int(lasting.sum())) > rank:
            best, rank = removed[lasting], (round(weight, 9), -int(lasting.sum()))
    return best


def _remove(
    start: int, holds: BoolArray, rise: FloatArray, mass: FloatArray, config: ExclusiveConfig
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Remove functions greedily from a starting point.

    Returns:
        The functions, and of each its change and its level in the stacks that were left when it went.
    """
    left, stacks = np.ones(len(holds), dtype=np.bool_), np.ones(len(mass), dtype=np.bool_)
    removed: list[int] = []
    change: list[float] = []
    level: list[float] = []
    chosen = start
    while True:
        gone = holds[chosen] & stacks
        removed.append(chosen)
        change.append(float(rise[gone].sum()))
        level.append(float(mass[gone].sum()))
        left[chosen], stacks = False, stacks & ~gone
        candidates = np.flatnonzero(left & (holds[:, stacks] @ mass[stacks] > 0))
        if float(mass[stacks].sum()) <= config.remaining * float(mass.sum()) or not len(candidates):
            return np.array(removed), np.array(change), np.array(level)
        held = holds[np.ix_(candidates, np.flatnonzero(stacks))]
        exclusive = (held & (held.sum(axis=0) == 1)) @ mass[stacks]
        chosen = int(candidates[np.lexsort((-(held @ mass[stacks]), -exclusive))[0]])
