"""Noise of sums of stacks: how far each set strays from what is expected of it without a change."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.analysis.cost_shift.daily_noise import MIN_DAYS, DailyNoise, fit_daily_noise
from pipeline.analysis.explain.cause_sets import CauseSets
from pipeline.model import FloatArray

_PRIOR_DEGREES = 8.0
"""Degrees of freedom of how far sets differ in their noise, where no days say it."""


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Samples of each stack against those expected; row 0 is the change, the others are earlier days.

    ``per_sample`` is the variance of a sum less what is expected of it, by sampling alone, in units of the
    expected samples: both are counted, so it is at least one and the ratio of the two spans.
    """

    seen: FloatArray  # (rows, stacks)
    expected: FloatArray  # (rows, stacks) of as many samples in all
    samples_before: FloatArray  # (rows,) that the expectation was made of
    dispersion: float  # variance of a count in units of what independent samples make

    @property
    def days(self) -> int:
        """Number of earlier days."""
        return len(self.seen) - 1

    @property
    def ratio(self) -> FloatArray:
        """Samples after for each one before: (rows,)."""
        return np.asarray(self.seen.sum(axis=1) / self.samples_before, dtype=np.float64)

    @property
    def per_sample(self) -> FloatArray:
        """Variance of a sum less its expectation, by sampling alone, for each sample expected: (rows,)."""
        return self.dispersion * (1 + self.ratio)


@dataclass(frozen=True, slots=True, eq=False)
class SetNoise:
    """Noise of possible causes."""

    dispersion: FloatArray  # (sets,) variance of a set's sum in units of its expected samples
    degrees_of_freedom: float  # of that variance
    drift: float  # typical standard deviation from hours to hours beyond sampling, relative

    def least(self, gain: float) -> float:
        """Return the gain that is as unlikely as one of known noise: t has longer tails than the normal.

        The log likelihood ratio of a t of ν degrees of freedom is (ν + 1) ln(1 + t² / ν).
        """
        degrees = self.degrees_of_freedom
        return degrees * math.expm1(gain / (degrees + 1)) if math.isfinite(degrees) else gain


def noise_of_sets(sets: CauseSets, compared: Compared) -> SetNoise:
    """Return the noise of each set: what its own days say and what all sets say of such, weighed.

    The worst of its own days is left out, since something may have changed there.

    Args:
        sets: Possible causes.
        compared: Samples, expected with the traffic of their entries.
    """
    seen, expected = sets.sums(compared.seen), sets.sums(compared.expected)
    rows, per_sample = compared.days + 1, compared.per_sample
    totals = np.maximum(compared.seen.sum(axis=1), 1.0)
    shares = (expected / totals[:, None], seen / totals[:, None])
    prior = fit_daily_noise(*shares, compared.samples_before, totals, compared.dispersion)
    if rows == 1 or not prior.degrees_of_freedom:
        prior = DailyNoise(prior.drift, _PRIOR_DEGREES)
    mean = np.maximum(expected[0], 1.0)
    sampled = np.sqrt(per_sample[0] * mean)
    if compared.days >= MIN_DAYS:
        spread = _spread(shares[0][1:], shares[1][1:]) * totals[0]
    else:
        spread = np.zeros(len(sets))
    weighed = prior.weigh(sampled=sampled, observed=spread, expected=mean, days=compared.days)
    degrees = weighed.degrees_of_freedom
    degrees = degrees if math.isfinite(degrees) else _PRIOR_DEGREES
    usual = 1 + 1 / compared.days if compared.days >= MIN_DAYS else 1.0  # a mean of few days
    error = np.maximum(weighed.error, sampled)
    return SetNoise(np.asarray(error**2 * usual / mean), degrees, prior.drift)


def _spread(expected: FloatArray, seen: FloatArray) -> FloatArray:
    """Return the standard deviation of each set's share from day to day, without its worst day: (sets,)."""
    squares = np.sort((seen - expected) ** 2, axis=0)[:-1]
    return np.asarray(np.sqrt(squares.mean(axis=0) / _share_without_largest(len(seen))))


def _share_without_largest(days: int) -> float:
    """Return the mean of squared standard scores without the largest of some days.

    The largest of n squares is about the quantile n / (n + 1) of its distribution, chi-squared of one degree;
    below it they average what the truncated distribution does.
    """
    largest = float(special.chdtri(1, 1 / (days + 1)))
    return float(special.chdtr(3, largest) / special.chdtr(1, largest))
