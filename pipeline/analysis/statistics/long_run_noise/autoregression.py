"""Long-run noise by autocorrelation: noise that grows with a metric's level and lasts for several periods.

A least-squares fit that treats all periods as equal and independent follows the busiest periods, and slow
noise above all. ``estimate_noise`` corrects both (generalised least squares). It divides each period by the
size of its noise, a power of the level (Carroll and Ruppert, Transformation and Weighting in Regression,
1988, ch. 3). Then it weights each period by the part that earlier periods do not predict: an autoregression
(Yule and Walker, by the recursion of Levinson and Durbin) of the order that Akaike's criterion chooses. Both
are estimated on the residuals of a fit, and again on those of the improved fit.

``memory`` is the number of periods that count as one independent period.

A bad estimate costs precision alone, because chances come from a bootstrap (``statistics.bootstrap``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.statistics.fit import coefficients, equalised, orthonormal
from pipeline.model import FloatArray

_ROUNDS = 2
"""Repetitions of estimating the noise from a fit, and the fit from the noise."""

_LOWEST = 0.05
"""Quantile of the metric below which a fitted level, which may be negative, is raised to it."""

_LEAST_ERROR = 1e-3
"""Least error as a share of the mean error: an error of 0 has no logarithm."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Size and autocorrelation of a metric's noise in the periods of two releases.

    Args:
        scale: (periods,) relative size, of the old release's periods, then of the new release's.
        old: Number of periods of the old release.
        weights: Element k is for a period with k earlier periods of its release: (k + 1,) weights of these,
            oldest first, and of the period itself, whose sum is the unpredicted part of its noise.
    """

    scale: FloatArray
    old: int
    weights: tuple[FloatArray, ...]

    def whiten(self, columns: FloatArray) -> FloatArray:
        """Return the unpredicted part of each period in units of its noise: (periods, columns) as given."""
        scaled = columns / self.scale[:, None]
        return np.concatenate(
            [_innovations(scaled[: self.old], self.weights), _innovations(scaled[self.old :], self.weights)]
        )


def estimate_noise(metric: FloatArray, columns: FloatArray, old: int) -> Noise:
    """Return the noise of a metric around the least-squares fit of some columns.

    Args:
        metric: (periods,) of the old release, then of the new release.
        columns: (periods, columns). They fit each release by itself, since a change of costs would count as
            noise otherwise.
        old: Number of periods of the old release.
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


def memory(parts: tuple[FloatArray, ...]) -> float:
    """Return the number of periods that carry as much information as one independent period, at least 1.

    It is 1 plus twice the sum of autocorrelations up to the first lag at which the autocorrelation is within
    its noise (Geyer, Statistical Science 7, 1992).

    Args:
        parts: (periods,) residuals of each release, in the metric's unit.
    """
    squares = max(sum(float(part @ part) for part in parts), np.finfo(np.float64).tiny)
    noise = 2.0 / np.sqrt(sum(map(len, parts)))
    total = 1.0
    for lag in range(1, max(map(len, parts)) // 10):
        correlation = sum(float(part[:-lag] @ part[lag:]) for part in parts if len(part) > lag) / squares
        if correlation < noise:
            break
        total += 2.0 * correlation
    return total


def _scale(metric: FloatArray, fitted: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the relative size of noise: (periods,), the level to a power from 0 to 1 that fits errors."""
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
    """Return the weights of `Noise` from the residuals of each release.

    Orders are tried up to ten times the decimal logarithm of the number of periods, as R's ``ar`` does.
    """
    periods = sum(map(len, parts))
    most = min(int(10.0 * math.log10(periods)), min(map(len, parts)) - 1)
    lags = range(most + 1)
    covariance = np.array(
        [sum(float(part[: len(part) - lag] @ part[lag:]) for part in parts) for lag in lags]
    )
    predictors = [np.zeros(0)]  # weights of 0, 1, … earlier periods, the latest first
    variances = [covariance[0]]
    for order in range(1, most + 1):
        last = predictors[-1]
        reflected = (covariance[order] - last @ covariance[order - 1 : 0 : -1]) / variances[-1]
        predictors.append(np.append(last - reflected * last[::-1], reflected))
        variances.append(variances[-1] * (1.0 - reflected**2))
    criterion = periods * np.log(variances) + 2.0 * np.arange(most + 1)
    best = int(criterion.argmin())
    return tuple(
        np.append(-predictor[::-1], 1.0) * math.sqrt(variances[best] / variance)
        for predictor, variance in zip(predictors[: best + 1], variances[: best + 1], strict=True)
    )


def _innovations(columns: FloatArray, weights: tuple[FloatArray, ...]) -> FloatArray:
    """Return columns of one release less the part that earlier periods predict: (periods, columns)."""
    innovations = np.empty_like(columns)
    order = min(len(weights) - 1, len(columns))
    for row, weight in enumerate(weights[:order]):
        innovations[row] = weight @ columns[: row + 1]
    last = len(columns) - order
    innovations[order:] = weights[-1][-1] * columns[order:]
    for begin, weight in enumerate(weights[-1][:-1]):
        innovations[order:] += weight * columns[begin : begin + last]
    return innovations
