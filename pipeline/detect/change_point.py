"""Change points by CUSUM and maximum likelihood, over all series at once (FBDetect §5.4.2).

The paper alternates CUSUM and Expectation Maximization until they converge "at the change point with the
maximum likelihood of having different means before and after". Each such step can only raise the
likelihood, so the best it can reach is the split with the largest likelihood of all; and that is the
largest standardised CUSUM, which running sums give for every split at once. So it is taken directly: the
same limit, no iterations, and no local optimum to stop in.

The split is tested against one mean throughout by the likelihood ratio, which is chi-squared with one
degree of freedom for a split that was given. The best of m splits was searched for, and exceeds any bound
up to m times as often; its p-value accounts for that (Šidák), so that the significance level is what it
says. Points carry weights (a window's total samples): a window of few samples says little,
one of none says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from pipeline.model import BoolArray, FloatArray, IntArray

CHUNK_ROWS = 512
"""Series worked on together: few enough that their running sums stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class ChangePointConfig:
    """Settings of the change-point detector."""

    significance: float = 0.01  # FBDetect §5.4.2
    min_points: int = 3  # on either side; two points fit nearly any level


@dataclass(frozen=True, slots=True)
class ChangePoints:
    """The most likely change point of each series; index -1 where a series has too few points."""

    index: IntArray  # (series,) first point of the new regime
    before: FloatArray  # (series,) weighted mean of the points before it, NaN with index -1
    after: FloatArray  # (series,)
    statistic: FloatArray  # (series,) likelihood ratio, chi-squared with 1 degree of freedom under no change
    p_value: FloatArray  # (series,) of that, with the search over splits accounted for


def find_change_points(
    values: FloatArray,
    weights: FloatArray,
    *,
    first: int,
    last: int,
    config: ChangePointConfig | None = None,
) -> ChangePoints:
    """Find the one most likely change point of each series within [first, last].

    Args:
        values: (series, points); what has weight 0 may be NaN.
        weights: (points,) or (series, points), not negative: inverse variances up to a factor.
        first: Smallest index the change point may have.
        last: Largest index it may have.
        config: Settings; the paper's by default.

    Returns:
        One change point a series. Its significance is for the caller to judge by ``p_value``.

    Example:
        >>> step = np.array([[1.0, 1.1, 0.9, 1.0, 2.0, 2.1, 1.9, 2.0]])
        >>> find_change_points(step, np.ones(8), first=1, last=7).index
        array([4])
    """
    config = config or ChangePointConfig()
    first, last = max(first, 1), min(last, values.shape[1] - 1)
    weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), values.shape)
    if first > last or not len(values):
        return _none(len(values))
    chunks = [
        _find(values[row : row + CHUNK_ROWS], weights[row : row + CHUNK_ROWS], first, last, config.min_points)
        for row in range(0, len(values), CHUNK_ROWS)
    ]
    index, before, after, statistic, splits = (np.concatenate(column) for column in zip(*chunks, strict=True))
    return ChangePoints(
        index=index.astype(np.int64),
        before=before,
        after=after,
        statistic=statistic,
        p_value=_p_value(statistic, splits),
    )


def _p_value(statistic: FloatArray, splits: FloatArray) -> FloatArray:
    """Return how likely the best of so many splits reaches the statistic by chance (Šidák's bound)."""
    one = np.asarray(stats.chi2.sf(statistic, df=1), dtype=np.float64)
    p_value: FloatArray = -np.expm1(splits * np.log1p(-np.minimum(one, 1 - 1e-12)))
    return np.where(statistic > 0, p_value, 1.0)


def _find(
    values: FloatArray, weights: FloatArray, first: int, last: int, min_points: int
) -> tuple[FloatArray, ...]:
    """Return (index, mean before, mean after, statistic, splits searched) of one chunk."""
    known = weights > 0
    total_mass = weights.sum(axis=1)
    plain = np.where(known, values, 0.0) * weights
    centre = _ratio(plain.sum(axis=1), total_mass)
    # Centring keeps the running sums small against the differences that matter, and makes their total 0.
    moved = np.where(known, values - centre[:, None], 0.0)
    weighted = moved * weights
    one_mean = (moved * weighted).sum(axis=1)
    # What remains of a constant series is rounding, in which everything looks significant.
    one_mean[one_mean <= total_mass * (1e-12 * centre) ** 2] = 0.0

    def running(array: FloatArray | BoolArray) -> FloatArray:
        """Sum what lies left of each allowed split: (series, last - first + 1)."""
        left: FloatArray = np.cumsum(array[:, first - 1 : last], axis=1, dtype=np.float64)
        left += array[:, : first - 1].sum(axis=1, keepdims=True)
        return left

    cusum, mass, points = running(weighted), running(weights), running(known)
    all_points = known.sum(axis=1).astype(np.float64)
    allowed = (points >= min_points) & (all_points[:, None] - points >= min_points)
    # How much two means instead of one lower the squared error: the standardised CUSUM.
    gain = np.where(
        allowed, cusum**2 * _ratio(total_mass[:, None], mass * (total_mass[:, None] - mass)), -1.0
    )
    rows = np.arange(len(values))
    best = gain.argmax(axis=1)
    found = allowed[rows, best]
    mass_left, left, nonzero = mass[rows, best], running(plain)[rows, best], running(plain != 0)[rows, best]
    before = _ratio(left, mass_left)
    after = _ratio(plain.sum(axis=1) - left, total_mass - mass_left)
    after[(plain != 0).sum(axis=1) == nonzero] = 0.0  # a mean of zeros is 0, not what rounding left over
    statistic = _likelihood_ratio(one_mean, gain[rows, best], all_points)
    return (
        np.where(found, best + first, -1).astype(np.float64),
        np.where(found, before, np.nan),
        np.where(found, after, np.nan),
        np.where(found, statistic, 0.0),
        allowed.sum(axis=1).astype(np.float64),
    )


def _likelihood_ratio(one_mean: FloatArray, gain: FloatArray, points: FloatArray) -> FloatArray:
    """Return n log(squared error of one mean / of two means): Gaussian noise of unknown variance."""
    # A series without any noise has an infinite ratio; a floor keeps every number finite and in order.
    two_means = np.maximum(one_mean - gain, 1e-12 * one_mean)
    ratio = np.divide(one_mean, two_means, out=np.ones_like(one_mean), where=two_means > 0)
    statistic: FloatArray = points * np.log(np.maximum(ratio, 1.0))
    return statistic


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    out: FloatArray = np.divide(numerator, denominator, out=np.zeros(shape), where=denominator > 0)
    return out


def _none(series: int) -> ChangePoints:
    nothing = np.full(series, np.nan)
    return ChangePoints(
        np.full(series, -1, dtype=np.int64), nothing, nothing, np.zeros(series), np.ones(series)
    )
