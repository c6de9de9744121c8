"""Wilcoxon's signed-rank test over the differences of trials, with the interval that belongs to it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from pipeline.experiments.trials.estimate import Estimates
from pipeline.model import FloatArray

EXACT_UP_TO = 100
"""Largest number of trials with the exact distribution; for more the sum of ranks is taken as normal."""

_ROUNDING = 1e-12
_MOST_KEPT = 4_000_000  # means of pairs, which bounds memory


def signed_rank_test(differences: FloatArray, alpha: float) -> Estimates:
    """Test whether trials' differences are centred at 0, by the ranks of their sizes (Wilcoxon 1945).

    What disturbs one side for a whole trial moves a mean by all of its size, and the centre by one rank: up
    to 29 of 100 trials may be far off. The sides of a trial may be exchanged if they run the same code, so
    equal sides differ symmetrically. The centre is the median of the means of all pairs of trials, and the
    interval lies between two of these means (Hodges and Lehmann 1963): it excludes 0 just where the p-value
    is significant. Six trials are the fewest for 5 %.

    Args:
        differences: (experiments, trials), relative; NaN of a trial that has none.
        alpha: Chance that equal sides differ significantly.
    """
    estimates = Estimates.unbounded(np.zeros(len(differences)))
    counts = (~np.isnan(differences)).sum(axis=1)
    for trials in np.unique(counts[counts > 0]).tolist():
        rows = np.flatnonzero(counts == trials)
        step = max(1, _MOST_KEPT // trials**2)
        for part in (rows[first : first + step] for first in range(0, len(rows), step)):
            values = np.sort(differences[part], axis=1)[:, :trials]  # NaN last
            for whole, figure in zip(estimates.figures(), _by_ranks(values, alpha), strict=True):
                whole[part] = figure
    return estimates


def _by_ranks(differences: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return difference, low, high and p-value of experiments whose trials are all known."""
    first, second = np.triu_indices(differences.shape[1])
    means = (differences[:, first] + differences[:, second]) / 2.0
    # Differences that cancel leave a rounding error: a mean of 0 counts on neither side.
    means[np.abs(means) <= _ROUNDING * np.abs(differences).max(axis=1, keepdims=True)] = 0.0
    means.sort(axis=1)
    at_most = _chances(differences.shape[1])
    count = means.shape[1]
    against = count - np.maximum((means > 0).sum(axis=1), (means < 0).sum(axis=1))
    low, high = np.full(len(means), -np.inf), np.full(len(means), np.inf)
    rank = int(np.searchsorted(at_most, alpha / 2.0, side="right"))  # 1 is the smallest mean, 0 none
    if rank:
        low, high = means[:, rank - 1], means[:, count - rank]
    return np.median(means, axis=1), low, high, np.minimum(1.0, 2.0 * at_most[against])


@lru_cache(maxsize=32)
def _chances(trials: int) -> FloatArray:
    """Return the chance that equal sides have a sum of positive ranks of at most 0, 1, …: (sums,)."""
    sums = trials * (trials + 1) // 2
    if trials > EXACT_UP_TO:
        deviation = np.sqrt(sums * (2.0 * trials + 1.0) / 12.0)
        result: FloatArray = special.ndtr((np.arange(sums + 1) + 0.5 - sums / 2.0) / deviation)
    else:
        chance = np.zeros(sums + 1)
        chance[0] = 1.0
        for rank in range(1, trials + 1):
            with_rank = np.concatenate([np.zeros(rank), chance[:-rank]])
            chance = (chance + with_rank) / 2.0
        result = np.minimum(np.cumsum(chance), 1.0)
    result.flags.writeable = False
    return result
