"""Pruning of stacks that say little before they are aggregated (Atys §5.1), and how much of it (§5.3).

The time of aggregation grows with the distinct stacks, most of which have one or two samples. Atys drops the
threads with the fewest samples: their functions vanish on every host, so the error is the same for any number
of hosts. ``thin_stacks`` draws from the rare stacks instead, and gives the drawn ones the samples of the
others: every function keeps its samples on average, and errors cancel over hosts and windows.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.profiles.formats import Stack
from pipeline.model import BoolArray, FloatArray, IntArray

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
"""Shares of the samples whose stacks are drawn from in the initialisation stage."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Effect of pruning on one profile of the initialisation stage."""

    share: float  # share of the samples that were in pruned stacks, from 0 to 1
    time_s: float  # time of pruning and aggregation
    error: float  # mean absolute percentage error of the top functions, as a ratio


@dataclass(frozen=True, slots=True)
class PruningCurve:
    """A curve ``start + scale · ln(1 + bend · share)``; a straight line as the bend goes to 0."""

    start: float
    scale: float
    bend: float

    def __call__(self, share: float) -> float:
        """Return the value at a share of pruned samples."""
        return self.start + self.scale * math.log1p(self.bend * share)


@dataclass(frozen=True, slots=True)
class PruningPlan:
    """Share to prune, and its effect."""

    share: float  # share of the samples in pruned stacks
    time_s: float
    saved: float  # of the time without pruning
    error: float


def busy_threads(threads: IntArray, counts: IntArray, kept: float) -> BoolArray:
    """Return which stacks are of the threads with the most samples, as Atys prunes (§5.1).

    Args:
        threads: Number of each stack's thread: (stacks,).
        counts: Samples of each stack: (stacks,).
        kept: Share of the samples that the kept threads have at least; 0.99 keeps Atys' P99 threads.
    """
    samples = np.bincount(threads, weights=counts)
    order = np.argsort(-samples, kind="stable")
    before = np.cumsum(samples[order]) - samples[order]
    busy = np.zeros(len(samples), dtype=np.bool_)
    busy[order[before < kept * samples.sum()]] = True
    return np.asarray(busy[threads])


def thin_stacks(stacks: Mapping[Stack, int], share: float, offset: float) -> dict[Stack, int]:
    """Return stacks of which the rarest, with a share of all samples, were drawn from.

    They are drawn systematically in the order of the call tree (Madow 1949): of the running sum of their
    samples every r-th is kept and counts r, which is one more than the most samples of any of them. Every
    stack keeps its samples on average over the offset, and no part of the tree strays by more than r.

    Args:
        stacks: Stacks, root first, with their samples.
        share: Of the samples, from 0 to 1.
        offset: From 0 to 1, uniformly random.
    """
    ordered = sorted(stacks)
    counts = np.array([stacks[stack] for stack in ordered], dtype=np.int64)
    chosen = _rarest(counts, share * float(counts.sum()))
    step = int(counts[chosen].max(initial=0)) + 1
    rare = {ordered[number]: counts[number] / step for number in chosen.tolist()}
    drawn = {stack: times * step for stack, times in round_counts(rare, offset).items()}
    return {stack: count for stack, count in stacks.items() if stack not in rare} | drawn


def round_counts(stacks: Mapping[Stack, float], offset: float) -> dict[Stack, int]:
    """Return whole counts of stacks, of which every part of the call tree keeps its sum to within 1.

    A stack gets the whole numbers that the running sum passes at it, in the order of the call tree: its count
    on average over the offset.

    Args:
        stacks: Stacks, root first, with any counts from 0.
        offset: From 0 to 1, uniformly random.
    """
    ordered = sorted(stacks)
    ends = np.cumsum([stacks[stack] for stack in ordered]) + offset
    passed = np.diff(np.floor(ends), prepend=0.0).astype(np.int64).tolist()
    return {stack: times for stack, times in zip(ordered, passed, strict=True) if times}


def percentage_error(truth: FloatArray, found: FloatArray, top: int = 50) -> float:
    """Return the mean absolute percentage error of the top functions, as a ratio (MAPE of Atys §6.3).

    Args:
        truth: Samples of each function: (functions,).
        found: Estimate of these samples after pruning: (functions,).
        top: How many functions of the most samples.
    """
    chosen = np.argsort(-truth, kind="stable")[:top]
    chosen = chosen[truth[chosen] > 0]
    return float(np.mean(np.abs(found[chosen] / truth[chosen] - 1))) if len(chosen) else 0.0


def try_pruning(
    stacks: Mapping[Stack, int],
    share: float,
    offset: float,
    aggregate: Callable[[Mapping[Stack, int]], object],
) -> Trial:
    """Prune stacks and aggregate the rest; return the time, and the error of functions' own samples.

    Args:
        stacks: Stacks, root first, with their samples.
        share: Of the samples, from 0 to 1; 0 prunes nothing.
        offset: From 0 to 1, uniformly random.
        aggregate: Whose time is to be saved.
    """
    times, pruned = [], stacks
    for _ in range(_REPEATS):
        began = time.process_time()
        pruned = thin_stacks(stacks, share, offset) if share else stacks
        aggregate(pruned)
        times.append(time.process_time() - began)
    truth, estimate = _own_samples(stacks), _own_samples(pruned)
    exact, left = (np.array([own[name] for name in truth], dtype=np.float64) for own in (truth, estimate))
    return Trial(share, min(times), percentage_error(exact, left))


def plan_pruning(
    stacks: Mapping[Stack, int],
    most_error: float,
    rng: np.random.Generator,
    aggregate: Callable[[Mapping[Stack, int]], object],
) -> PruningPlan:
    """Return the share of such stacks to prune, from trials of SHARES: the initialisation stage (Atys §5.3).

    Args:
        stacks: Stacks, root first, with their samples.
        most_error: Largest MAPE, as a ratio.
        rng: By which rare stacks are drawn.
        aggregate: Whose time is to be saved.
    """
    return choose_share([try_pruning(stacks, share, rng.random(), aggregate) for share in SHARES], most_error)


def _own_samples(stacks: Mapping[Stack, int]) -> Counter[str]:
    own = Counter[str]()
    for stack, count in stacks.items():
        own[stack[-1]] += count
    return own


def fit_curve(shares: Sequence[float], values: Sequence[float]) -> PruningCurve:
    """Fit a curve to measurements, by least squares; see ``PruningCurve``.

    Args:
        shares: Of pruned samples, two different ones at least.
        values: Measurement at each share.
    """
    x, y = np.asarray(shares, dtype=np.float64), np.asarray(values, dtype=np.float64)
    best: tuple[float, PruningCurve] | None = None
    for bend in _BENDS:
        design = np.column_stack([np.ones(len(x)), np.log1p(bend * x)])
        (start, scale), *_ = np.linalg.lstsq(design, y, rcond=None)
        missed = float(((design @ [start, scale] - y) ** 2).sum())
        if best is None or missed < best[0]:
            best = missed, PruningCurve(float(start), float(scale), bend)
    assert best is not None
    return best[1]


def choose_share(trials: Sequence[Trial], most_error: float) -> PruningPlan:
    """Return the pruning that saves the most time within an error: equation 1 of Atys §5.3.

    T(p) and MAPE(p) are fitted to the trials. Both are monotone, so the largest share whose error is allowed
    is the answer; it is no larger than what was tried.

    Args:
        trials: Of several shares, one of them 0.
        most_error: Largest MAPE, as a ratio.

    Raises:
        ValueError: there are less than three different shares, or none of 0.
    """
    shares = sorted({trial.share for trial in trials})
    if len(shares) < 3 or shares[0] != 0:
        raise ValueError("a choice needs trials of three shares at least, one of them 0")
    time_s = fit_curve([trial.share for trial in trials], [trial.time_s for trial in trials])
    error = fit_curve([trial.share for trial in trials], [trial.error for trial in trials])
    share = _largest(error, most_error, shares[-1])
    whole = time_s(0.0)
    return PruningPlan(share, time_s(share), 1 - time_s(share) / whole if whole > 0 else 0.0, error(share))


def _rarest(counts: IntArray, most: float) -> IntArray:
    """Return the stacks of the fewest samples, together at most so many; equal ones lie evenly apart."""
    chosen: list[IntArray] = []
    for count in np.unique(counts).tolist():
        equal = np.flatnonzero(counts == count)
        taken = min(int(most // max(count, 1)), len(equal))
        chosen.append(equal[np.arange(taken) * len(equal) // max(taken, 1)])
        most -= taken * count
        if taken < len(equal):
            break
    return np.concatenate([np.zeros(0, dtype=np.int64), *chosen])


def _largest(curve: Callable[[float], float], bound: float, most: float) -> float:
    """Return the largest argument up to ``most`` at which a rising curve is within a bound; 0 if none is."""
    tried = np.linspace(0.0, most, 1001)
    within = [share for share in tried.tolist() if curve(share) <= bound]
    return max(within, default=0.0)


_REPEATS = 3
"""Number of tries of pruning; the shortest time counts."""

_BENDS = tuple(np.geomspace(1e-3, 1e5, 81).tolist())
