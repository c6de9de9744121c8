"""Noise of sums of stacks: how far each set strays from what is expected on days without a change."""

from __future__ import annotations

import numpy as np
from scipy import special

from pipeline.analysis.cost_shift.daily_noise import MIN_DAYS
from pipeline.analysis.explain.cause_sets import CauseSets
from pipeline.model import FloatArray

_SIZES = 20
"""Groups of sets by size that have a typical dispersion."""

_SETS = 40
"""Sets of a group at least."""

_PRIOR_DAYS = 8.0
"""Days of its own that outweigh what sets of its size have."""

_LEAST_OF_USUAL = 0.7
"""Share of the usual dispersion below which no set's own goes: quiet days are luck."""


def dispersion_of_sets(sets: CauseSets, seen: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the variance of each set's sum in units of its expected samples: (sets,), at least 2.

    Samples before and after are both counted, so two is what independent samples make. Each set has its own
    mean square over the days, without its worst day, since something may have changed there; it is weighed
    with what sets of its size have (empirical Bayes).

    Args:
        sets: Possible causes.
        seen: (days, stacks) samples on earlier days.
        expected: (days, stacks) samples expected there, of as many samples as were seen.
    """
    days = len(seen)
    if days < MIN_DAYS or not len(sets):
        return np.full(len(sets), 2.0)
    mean = sets.sums(expected)
    squares = np.sort((sets.sums(seen) - mean) ** 2 / np.maximum(mean, 1.0), axis=0)
    own = squares[:-1].mean(axis=0) / _share_without_largest(days)
    size = np.log(np.maximum(mean.mean(axis=0), 1.0))
    usual = _usual(size, own)
    weighed = (_PRIOR_DAYS * usual + days * own) / (_PRIOR_DAYS + days)
    return np.asarray(np.maximum(np.maximum(weighed, _LEAST_OF_USUAL * usual), 2.0) * (1 + 1 / days))


def _usual(size: FloatArray, own: FloatArray) -> FloatArray:
    """Return the typical dispersion of sets of each set's size."""
    order = np.argsort(size, kind="stable")
    groups = np.array_split(order, max(1, min(_SIZES, len(order) // _SETS)))
    sizes = [float(np.median(size[group])) for group in groups]
    typical = [float(np.mean(np.minimum(own[group], 4 * np.median(own[group]) + 1))) for group in groups]
    return np.maximum(np.interp(size, sizes, typical), 1.0)


def _share_without_largest(days: int) -> float:
    """Return the mean of squared standard scores without the largest of some days.

    The largest of n squares is about the quantile n / (n + 1) of its distribution, chi-squared of one degree;
    below it they average what the truncated distribution does.
    """
    largest = float(special.chdtri(1, 1 / (days + 1)))
    return float(special.chdtr(3, largest) / special.chdtr(1, largest))
