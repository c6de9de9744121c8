"""Noise of a metric over periods, and what makes it equal and independent (generalised least squares).

Noise grows with the load, and goes on from one period to the next. A fit that takes all periods for equal and
independent follows the busiest ones, and slow noise above all. So periods are divided by what their noise is
like, a power of the level (Carroll and Ruppert 1988, Transformation and Weighting in Regression, ch. 3), and
then each counts by what it differs from what those before foresee: by an autoregression (Yule and Walker, by
the recursion of Levinson and Durbin), whose order is Akaike's. Both are estimated on the residuals of a fit,
and once more on those of the better one.

What is estimated badly costs precision alone: chances are those of a bootstrap (see ``bootstrap``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.statistics.bootstrap import memory
from pipeline.analysis.statistics.fit import coefficients, equalised, orthonormal
from pipeline.model import FloatArray

_ROUNDS = 2
"""Of estimating noise by a fit, and the fit by noise."""

_LOWEST = 0.05
"""Quantile of the metric that levels lie above: a fit may say less than nothing."""

_LEAST_ERROR = 1e-3
"""Of the mean one: an error of 0 has no logarithm."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How noise differs from period to period, and goes on.

    Args:
        scale: (periods,) how large it is, of the old release's periods, then of the new one's.
        old: How many are of the old release.
        weights: For 0, 1, … earlier periods of a release: what makes a period's noise new, itself the last.
    """

    scale: FloatArray
    old: int
    weights: tuple[FloatArray, ...]

    def whiten(self, columns: FloatArray) -> FloatArray:
        """Return what of (periods, columns) is new in each period, in units of its noise."""
        scaled = columns / self.scale[:, None]
        return np.concatenate(
            [_new(scaled[: self.old], self.weights), _new(scaled[self.old :], self.weights)]
        )


def estimate_noise(metric: FloatArray, columns: FloatArray, old: int) -> Noise:
    """Return the noise of a metric beyond what columns explain.

    Args:
        metric: (periods,) of the old release, then of the new one.
        columns: (periods, columns) that leave each release its own costs: a change would seem to be noise.
        old: How many periods are of the old release.
    """
    fitted = columns @ coefficients(columns, metric)
    scale = _scale(metric, fitted, equalised(metric - fitted, orthonormal(columns)))
    noise = Noise(scale, old, (np.ones(1),))
    for _ in range(_ROUNDS):
        left = (metric - fitted) / scale
        parts = (left[:old], left[old:])
        if memory(parts) == 1.0:
            break
        noise = Noise(scale, old, _autoregression(parts))
        fitted = columns @ coefficients(noise.whiten(columns), noise.whiten(metric[:, None])[:, 0])
    return noise


def _scale(metric: FloatArray, fitted: FloatArray, errors: FloatArray) -> FloatArray:
    """Return how large noise is: a power of the level from 0 to 1, as errors have it, 1 in the mean."""
    lowest = float(np.quantile(metric, _LOWEST))
    least = _LEAST_ERROR * float(np.abs(errors).mean())
    if lowest <= 0.0 or least <= 0.0:
        return np.ones(len(metric))
    level = np.log(np.maximum(fitted, lowest))
    level -= level.mean()
    varies = float(level @ level)
    slope = float(level @ np.log(np.maximum(np.abs(errors), least))) / varies if varies > 0.0 else 0.0
    return np.asarray(np.exp(min(1.0, max(0.0, slope)) * level))


def _autoregression(parts: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
    """Return the weights of `Noise`, by the residuals of each release.

    Orders are tried up to ten times the decimal logarithm of the number of periods, as R's ``ar`` does.
    """
    periods = sum(map(len, parts))
    most = min(int(10.0 * math.log10(periods)), min(map(len, parts)) - 1)
    lags = range(most + 1)
    covariance = np.array(
        [sum(float(part[: len(part) - lag] @ part[lag:]) for part in parts) for lag in lags]
    )
    foreseen = [np.zeros(0)]  # by 0, 1, … earlier periods, the latest first
    variances = [covariance[0]]
    for order in range(1, most + 1):
        last = foreseen[-1]
        reflected = (covariance[order] - last @ covariance[order - 1 : 0 : -1]) / variances[-1]
        foreseen.append(np.append(last - reflected * last[::-1], reflected))
        variances.append(variances[-1] * (1.0 - reflected**2))
    criterion = periods * np.log(variances) + 2.0 * np.arange(most + 1)
    best = int(criterion.argmin())
    return tuple(
        np.append(-each[::-1], 1.0) * math.sqrt(variances[best] / variance)
        for each, variance in zip(foreseen[: best + 1], variances[: best + 1], strict=True)
    )


def _new(columns: FloatArray, weights: tuple[FloatArray, ...]) -> FloatArray:
    """Return columns of one release less what earlier periods foresee: (periods, columns)."""
    found = np.empty_like(columns)
    order = min(len(weights) - 1, len(columns))
    for row, weight in enumerate(weights[:order]):
        found[row] = weight @ columns[: row + 1]
    last = len(columns) - order
    found[order:] = weights[-1][-1] * columns[order:]
    for begin, weight in enumerate(weights[-1][:-1]):
        found[order:] += weight * columns[begin : begin + last]
    return found
