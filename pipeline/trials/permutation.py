"""Permutation test over the differences of trials, with the interval that belongs to it (§4.2)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pipeline.model import FloatArray
from pipeline.trials.estimate import Estimates

ALL_SUBSETS_UP_TO = 12
"""Trials of which every subset is looked at: 4,095."""

DRAWN_SUBSETS = 4095
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
    member = _subsets(differences.shape[1])
    means = np.sort(differences @ (member / member.sum(axis=0)), axis=1)
    count = means.shape[1]
    smaller = (means <= 0).sum(axis=1)
    larger = (means >= 0).sum(axis=1)
    p_value = np.minimum(1.0, 2.0 * (1.0 + np.minimum(smaller, larger)) / (count + 1.0))
    rank = int(np.floor(alpha / 2.0 * (count + 1.0) + 1e-9))  # 1 is the smallest mean, 0 none
    low, high = np.full(len(means), -np.inf), np.full(len(means), np.inf)
    if rank:
        low, high = means[:, rank - 1], means[:, count - rank]
    return Estimates(differences.mean(axis=1), low, high, p_value)


@lru_cache(maxsize=32)
def _subsets(trials: int) -> FloatArray:
    """Return which trials each subset holds, as 0 and 1: (trials, subsets), none of them empty."""
    if trials <= ALL_SUBSETS_UP_TO:
        numbers = np.arange(1, 2**trials)
        member = (numbers >> np.arange(trials)[:, None]) & 1
    else:
        member = np.random.default_rng(_SEED).integers(0, 2, size=(trials, DRAWN_SUBSETS))
        member[0, member.sum(axis=0) == 0] = 1
    result = member.astype(np.float64)
    result.flags.writeable = False
    return result
