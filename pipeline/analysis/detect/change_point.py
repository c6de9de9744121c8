"""Change points by CUSUM and maximum likelihood, over all series at once (FBDetect §5.4.2).

The paper alternates CUSUM and Expectation Maximization until they converge "at the change point with the
maximum likelihood of having different means before and after the change point". Each such step can only raise
the likelihood, so the best it can reach is the split with the largest likelihood of all; and that is the
largest standardised CUSUM, which running sums give for every split at once. So it is taken directly: the
same limit, no iterations, and no local optimum to stop in.

Two likelihoods: of counts (samples that held a subroutine, out of those that were taken), and of values
(service-level metrics). A series of counts may have but a few samples a day; there the ratio's mean is far
from normal, and the likelihood of counts is what finds a tiny, rare subroutine. Over-dispersed counts are
taken as quasi-likelihood (McCullagh and Nelder 1989, chapter 9): the deviance by the dispersion.

The paper tests by the chi-squared distribution with one degree of freedom. After a search for the best split
that exceeds any level many times as often as it says, and it knows neither autocorrelation nor that the
noise is itself an estimate. ``p_values`` accounts for all three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from pipeline.model import BoolArray, FloatArray, IntArray

Family = Literal["counts", "values"]
"""Kinds of observations: counts with their expectation, or values times their weights."""


@dataclass(frozen=True, slots=True)
class SideSums:
    """Sums on both sides of splits: (series, splits) each."""

    left: FloatArray  # observed
    left_exposure: FloatArray
    right: FloatArray
    right_exposure: FloatArray

    def of_splits(self, splits: slice) -> SideSums:
        """Return the sums of some splits."""
        sides = (self.left, self.left_exposure, self.right, self.right_exposure)
        return SideSums(*(side[:, splits] for side in sides))


def split_sums(observed: FloatArray, exposure: FloatArray, *, first: int, last: int) -> SideSums:
    """Return the sums on both sides of each split in [first, last]; a split is the first index of the right.

    Args:
        observed: (series, windows).
        exposure: (series, windows), 0 where there is no data.
        first: At least 1.
        last: Less than the number of windows.
    """
    left, right = both_sides(observed, first, last)
    left_exposure, right_exposure = both_sides(exposure, first, last)
    # Where no data is left, rounding can make it less than none.
    return SideSums(left, left_exposure, right, np.maximum(right_exposure, 0.0))


def both_sides(values: FloatArray, first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Return sums left and right of each split in [first, last]: (series, splits) each."""
    # Each side is summed from its own end: what lies beyond the splits is added up once, and the sums of
    # counts stay whole numbers.
    middle = values[:, first:last]
    left = np.empty((len(values), last - first + 1))
    left[:, 0] = values[:, :first].sum(axis=1)
    np.cumsum(middle, axis=1, out=left[:, 1:])
    left[:, 1:] += left[:, :1]
    right = values.sum(axis=1, keepdims=True) - left
    return left, right


def signed_roots(sums: SideSums, family: Family) -> FloatArray:
    """Return the signed root of the likelihood ratio of two levels against one, positive for a rise.

    For noise of dispersion (variance) 1 it is standard normal under no change. For values it is the
    standardised CUSUM; for counts with expectation E, by the Poisson likelihood given the sum of both sides,
    2 Σ O log(O / Ê), Ê being the sum divided as the expectations are.
    """
    both = (sums.left_exposure > 0) & (sums.right_exposure > 0)
    weight = np.where(both, sums.left_exposure + sums.right_exposure, 1.0)
    if family == "values":
        change = ratio(sums.right, sums.right_exposure) - ratio(sums.left, sums.left_exposure)
        roots: FloatArray = change * np.sqrt(sums.left_exposure * sums.right_exposure / weight)
        return np.where(both, roots, 0.0)
    total = sums.left + sums.right
    share = sums.right_exposure / weight
    expected_right = total * share
    expected_left = total - expected_right
    deviance = 2 * (_times_log(sums.left, expected_left) + _times_log(sums.right, expected_right))
    sign = np.sign(sums.right - expected_right)
    return np.where(both, sign * np.sqrt(np.maximum(deviance, 0.0)), 0.0)


def root_bounds(sums: SideSums, family: Family) -> FloatArray:
    """Return roots like ``signed_roots``, or further from 0, without the logarithms that those cost.

    The likelihood ratio of counts is 2 Σ Ê (1 + x) log(1 + x), x being (O - Ê) / Ê, which sums to 0 over both
    sides. And (1 + x) log(1 + x) is at most x + x² / 2, or x + (1 + |x|) x² / 2 where x is negative.
    """
    if family == "values":
        return signed_roots(sums, family)
    total = sums.left + sums.right
    right = total * (sums.right_exposure / np.maximum(sums.left_exposure + sums.right_exposure, 1e-300))
    left, away = np.maximum(total - right, 1e-300), sums.right - right
    right = np.maximum(right, 1e-300)
    fewer = np.where(away > 0, left, right)
    squares = away * away
    deviance = squares / left + squares / right + squares / fewer * np.minimum(np.abs(away) / fewer, 1.0)
    return np.copysign(np.sqrt(deviance), away)


def _times_log(observed: FloatArray, expected: FloatArray) -> FloatArray:
    ratio = np.divide(observed, expected, out=np.ones(observed.shape), where=expected > 0)
    result: FloatArray = special.xlogy(observed, ratio)
    return result


def p_values(
    root: FloatArray, degrees_of_freedom: FloatArray, span: FloatArray, splits: IntArray
) -> FloatArray:
    """Return the chance that the best of many splits has so large a root without a change.

    One split's root by the estimated noise follows Student's t. The best of neighbouring splits, standardised
    CUSUMs with correlation exp(-|u| / 2) in u = log(left / right exposure), exceeds b with a probability of
    about 2 Φ(-b) + U b φ(b), U being the range of u (Siegmund 1985, chapter 11), but never more often than so
    many independent ones.

    Args:
        root: (series,) standardised by the noise.
        degrees_of_freedom: (series,) degrees of freedom of the noise's estimate.
        span: (series,) U.
        splits: (series,) how many were searched.
    """
    single = 2 * special.stdtr(degrees_of_freedom, -np.abs(root))
    normal = -special.ndtri(np.maximum(single, 1e-300) / 2)
    searched = single + span * normal * np.exp(-(normal**2) / 2) / math.sqrt(2 * math.pi)
    independent = -np.expm1(splits * np.log1p(-np.minimum(single, 1 - 1e-12)))
    result: FloatArray = np.minimum(np.minimum(searched, independent), 1.0)
    return np.where(splits > 0, result, 1.0)


def log_odds_span(sums: SideSums, allowed: BoolArray) -> FloatArray:
    """Return the range of log(left / right exposure) over the allowed splits: (series,).

    Args:
        sums: (series, splits).
        allowed: (series, splits), or (1, splits) if they are the same for all.
    """
    some, every = allowed.any(axis=1), np.arange(len(sums.left_exposure))
    first, last = allowed.argmax(axis=1), allowed.shape[1] - 1 - allowed[:, ::-1].argmax(axis=1)
    # More lies left of a later split.
    lowest, highest = (
        np.log(np.where(some, ratio(sums.left_exposure[every, at], sums.right_exposure[every, at]), 1.0))
        for at in (first, last)
    )
    return np.where(some, highest - lowest, 0.0)


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide; 0 where the divisor is 0."""
    out: FloatArray = np.divide(
        numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator > 0
    )
    return out
