"""Permutation test over the differences of trials, with the interval that belongs to it (§4.2)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pipeline.experiments.trials.estimate import Estimates
from pipeline.model import FloatArray

ALL_SUBSETS_UP_TO = 12
"""Largest number of trials of which every subset is examined: 4,095 subsets."""

DRAWN_SUBSETS = 4095
_MOST_KEPT = 4_000_000  # members of subsets, which bounds memory: of so many trials some are drawn at a time
_ROUNDING = 1e-12
_SEED = 20240710


def permutation_test(differences: FloatArray, alpha: float) -> Estimates:
    """Test whether the mean of trials' differences is 0, by flipping their signs.

    The sides of a trial may be exchanged if they run the same code, so every sign is as probable. A flip of
    some trials reaches the observed mean or more if, and only if, the mean of these trials is 0 or less
    (Hartigan, "Using subsample values as typical values", 1969). So the means of subsets of trials give both
    the p-value and the interval: they agree at every alpha. Six trials are the fewest for 5 %.

    Args:
        differences: (experiments, trials).
        alpha: Chance that equal sides differ significantly.
    """
    means = _subset_means(differences)
    # Differences that cancel leave a rounding error: a mean of 0 counts on both sides.
    means[np.abs(means) <= _ROUNDING * np.abs(differences).max(axis=1, keepdims=True)] = 0.0
    means.sort(axis=1)
    count = means.shape[1]
    smaller = (means <= 0).sum(axis=1)
    larger = (means >= 0).sum(axis=1)
    p_value = np.minimum(1.0, 2.0 * (1.0 + np.minimum(smaller, larger)) / (count + 1.0))
    rank = int(np.floor(alpha / 2.0 * (count + 1.0) + 1e-9))  # 1 is the smallest mean, 0 none
    low, high = np.full(len(means), -np.inf), np.full(len(means), np.inf)
    if rank:
        low, high = means[:, rank - 1], means[:, count - rank]
    return Estimates(differences.mean(axis=1), low, high, p_value)


def _subset_means(differences: FloatArray) -> FloatArray:
    """Return the mean of each subset of trials that is not empty: (experiments, subsets)."""
    trials = differences.shape[1]
    if trials * DRAWN_SUBSETS <= _MOST_KEPT:
        return differences @ _shares(trials)
    draw = np.random.default_rng(_SEED)
    step = max(1, _MOST_KEPT // trials)
    sizes = [min(step, DRAWN_SUBSETS - first) for first in range(0, DRAWN_SUBSETS, step)]
    return np.concatenate([differences @ _drawn_shares(draw, trials, size) for size in sizes], axis=1)


@lru_cache(maxsize=8)
def _shares(trials: int) -> FloatArray:
    """Return the weight of each trial in the mean of each non-empty subset: (trials, subsets)."""
    if trials <= ALL_SUBSETS_UP_TO:
        member = (np.arange(1, 2**trials) >> np.arange(trials)[:, None]) & 1
        result: FloatArray = member / member.sum(axis=0)
    else:
        result = _drawn_shares(np.random.default_rng(_SEED), trials, DRAWN_SUBSETS)
    result.flags.writeable = False
    return result


def _drawn_shares(draw: np.random.Generator, trials: int, subsets: int) -> FloatArray:
    member = draw.integers(0, 2, size=(trials, subsets))
    member[0, member.sum(axis=0) == 0] = 1
    result: FloatArray = member / member.sum(axis=0)
    return result
