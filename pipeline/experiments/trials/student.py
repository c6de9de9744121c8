"""Student's t-test between the points of both sides, plain and with outliers removed or capped (§4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from pipeline.experiments.trials.estimate import Estimates, Experiments
from pipeline.model import FloatArray

Outliers = Literal["none", "elim", "cap"]

ROUNDING = 1e-12
"""Relative error of a mean by rounding alone, as a share of the largest number."""

UPPER_SHARE = 0.05
"""Share of a side's points, the largest, that count as outliers: ServiceLab leaves the percentile open."""


@dataclass(frozen=True, slots=True)
class Means:
    """A mean of each row, its variance, and the degrees of freedom of that: (rows,) each."""

    mean: FloatArray
    variance: FloatArray
    degrees: FloatArray


def trimmed_means(values: FloatArray, share: float) -> Means:
    """Return each row's mean without its largest values.

    The variance is that of Yuen (1974), from winsorised values: the plain formula over the remaining values
    is too small, and produces false positives.

    Args:
        values: (rows, points), NaN where there is no point.
        share: Of a row's points that are left out; 0 gives the plain mean and its variance.
    """
    ordered = np.sort(values, axis=1)  # NaN last
    count = np.sum(~np.isnan(values), axis=1)
    remaining = count - np.floor(share * count).astype(np.int64)
    index = np.arange(values.shape[1])
    largest = np.take_along_axis(ordered, np.maximum(remaining - 1, 0)[:, None], axis=1)
    capped = np.where(index < count[:, None], np.minimum(ordered, largest), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(index < remaining[:, None], capped, 0.0).sum(axis=1) / remaining
        winsorised = capped.sum(axis=1) / count
        squares = np.where(index < count[:, None], (capped - winsorised[:, None]) ** 2, 0.0).sum(axis=1)
        return Means(mean, squares / (remaining * (remaining - 1.0)), remaining - 1.0)


def t_test(experiments: Experiments, alpha: float, outliers: Outliers = "none") -> Estimates:
    """Compare the points of all trials of side A with those of side B, by Welch's form of the t-test.

    Points of several trials are one sample each side: what differs between trials counts as if it differed
    between points. So the test is for single trials, as in the paper, or for trials that do not differ.

    Args:
        experiments: What was measured.
        alpha: Chance that equal sides differ significantly.
        outliers: ``elim`` leaves out the largest points of each side, ``cap`` caps those of both together, at
            one value: which side they are of must not move it.
    """
    sides = [side.reshape(len(side), -1) for side in (experiments.a, experiments.b)]
    if outliers == "cap":
        cap = np.nanquantile(np.concatenate(sides, axis=1), 1.0 - UPPER_SHARE, axis=1, keepdims=True)
        sides = [np.minimum(side, cap) for side in sides]
    a, b = (trimmed_means(side, UPPER_SHARE if outliers == "elim" else 0.0) for side in sides)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = a.variance + b.variance
        degrees = variance**2 / (a.variance**2 / a.degrees + b.variance**2 / b.degrees)
        error = np.sqrt(variance) / np.abs(a.mean)
        difference = (b.mean - a.mean) / np.abs(a.mean)
        p_value = 2.0 * special.stdtr(degrees, -np.abs(difference) / error)
        half = special.stdtrit(degrees, 1.0 - alpha / 2.0) * error
    constant = error == 0  # both sides
    p_value = np.where(constant, np.where(difference == 0, 1.0, _chance_of_constants(a, b)), p_value)
    half = np.where(constant, np.where((p_value <= alpha) | (difference == 0), 0.0, np.inf), half)
    finite = np.isfinite(difference) & np.isfinite(half)
    reach = np.where(finite, half, np.inf)
    middle = np.where(finite, difference, 0.0)
    return Estimates(difference, middle - reach, middle + reach, np.where(finite | constant, p_value, 1.0))


def paired_t_test(differences: FloatArray, alpha: float) -> Estimates:
    """Test whether the mean of trials' differences is 0.

    Args:
        differences: (experiments, trials), relative; NaN of a trial that has none.
        alpha: Chance that equal sides differ significantly.
    """
    finite = ~np.isnan(differences)
    trials = finite.sum(axis=1)
    mean = np.where(finite, differences, 0.0).sum(axis=1) / np.maximum(trials, 1)
    squares = np.where(finite, differences - mean[:, None], 0.0) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(squares.sum(axis=1) / (trials - 1.0) / trials)
    scale = np.abs(np.where(finite, differences, 0.0)).max(axis=1, initial=0.0)
    # Differences without a spread show no noise, yet their signs are random if sides are equal.
    return of_means(SampleMeans(mean, error, trials - 1.0, scale, 2.0 ** (1.0 - trials)), alpha)


@dataclass(frozen=True, slots=True)
class SampleMeans:
    """Means that are 0 if sides are equal, with the input of Student's test: (experiments,) each."""

    mean: FloatArray
    error: FloatArray
    """Standard error."""
    degrees: FloatArray
    """Degrees of freedom; with less than one nothing bounds the mean."""
    scale: FloatArray
    """Largest value that entered the mean: a mean that is tiny beside it is rounding."""
    chance: FloatArray
    """p-value of a mean that is not 0 although its error is 0."""


def of_means(found: SampleMeans, alpha: float) -> Estimates:
    """Return the intervals and p-values of means by Student."""
    few = ~(found.degrees >= 1.0)
    degrees = np.where(few, 1.0, found.degrees)
    rounding = ROUNDING * found.scale
    mean = np.where(np.abs(found.mean) <= rounding, 0.0, found.mean)
    half = special.stdtrit(degrees, 1.0 - alpha / 2.0) * found.error
    with np.errstate(invalid="ignore", divide="ignore"):
        p_value = 2.0 * special.stdtr(degrees, -np.abs(mean) / found.error)
    constant = found.error <= rounding
    p_value = np.where(constant, np.where(mean == 0, 1.0, found.chance), p_value)
    half = np.where(constant, np.where((p_value <= alpha) | (mean == 0), 0.0, np.inf), half)
    half = np.where(few, np.inf, half)
    return Estimates(mean, mean - half, mean + half, np.where(few, 1.0, p_value))


def _chance_of_constants(a: Means, b: Means) -> FloatArray:
    """Return the most probable that sides of one distribution can be constant, each at a value of its own.

    Two values of probability p and 1 - p are the worst case; p is then the share of side A's points.
    """
    points_a, points_b = a.degrees + 1.0, b.degrees + 1.0
    share = points_a / (points_a + points_b)
    result: FloatArray = np.minimum(1.0, 2.0 * share**points_a * (1.0 - share) ** points_b)
    return result
