"""Prior of the noise of a service's series, from the variances of its subroutines (empirical Bayes).

Two dozen blocks estimate a series' variance to about a quarter. A test among thousands of series must allow
for that error: the bound of Student's t with 31 degrees of freedom is a third higher than that of the normal
distribution. But subroutines with similar levels have similar variances: most of a variance is sampling, and
the rest comes from the same servers under the same load. The scatter of variances beyond their estimation
error measures how similar they are, and so how many degrees of freedom the prior is worth (Smyth, Stat.
Appl. Genet. Mol. Biol. 3, 2004). A series that is noisier than the prior can account for is judged by its
own variance (after Phipson et al., Ann. Appl. Stat. 10, 2016).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.analysis.statistics.root import root_between
from pipeline.model import BoolArray, FloatArray, SharedVariancePrior

_NORMAL_QUARTILES = 1.349
"""Distance of a normal distribution's quartiles, in standard deviations."""

_QUARTILES_ERROR = 1.166
"""Standard error of a deviation that is estimated from n quartiles, times √n, in deviations."""

_MOST_DEGREES = 1000.0
"""Beyond, Student's t is the normal distribution."""


@dataclass(frozen=True, slots=True)
class SharedPriorConfig:
    """Settings of the estimate."""

    min_series: int = 100  # fewer do not show how similar they are
    most_series: int = 512  # that are looked at, spread over all levels: more add little
    min_samples: float = 5.0  # in the longest block: below, a variance's estimate is no chi-squared
    knot_series: int = 50  # for each knot of the trend of noise over level
    outlying: float = 0.01  # series that the others say nothing of, by the F-test of their variances


def fit_shared_prior(
    level: FloatArray,
    variance: FloatArray,
    degrees_of_freedom: FloatArray,
    config: SharedPriorConfig | None = None,
) -> SharedVariancePrior | None:
    """Fit the variance at each level, and its scatter, to the noise of many series.

    Args:
        level: (series,) above 0.
        variance: (series,) estimates, see pipeline.analysis.statistics.long_run_noise.batch_means.
        degrees_of_freedom: (series,) degrees of freedom of those.
        config: Settings.

    Returns:
        None if there are too few series, or they have nothing in common.
    """
    config = config or SharedPriorConfig()
    positive = (level > 0) & (variance > 0)
    level, variance, degrees_of_freedom = level[positive], variance[positive], degrees_of_freedom[positive]
    if len(level) < config.min_series:
        return None
    order = np.lexsort((variance, level))
    own = float(np.median(degrees_of_freedom))
    log_level, log_variance = np.log(level[order]), np.log(variance[order])
    parts = np.array_split(np.arange(len(order)), max(1, len(order) // config.knot_series))
    knots = np.array([log_level[0], *(np.median(log_level[part]) for part in parts)])
    trend = np.array([np.median(log_variance[part]) for part in (parts[0], *parts)])
    scatter = log_variance - np.interp(log_level, knots, trend)
    # The scatter may be that much larger: what the others are worth is not to be overestimated.
    spread = _spread(scatter) * (1 + _QUARTILES_ERROR / np.sqrt(len(scatter)))
    worth = _degrees_of_freedom(float(spread**2 - special.polygamma(1, own / 2)))
    if worth < 1:
        return None
    # The median of a quotient of variances is not quite 1.
    return SharedVariancePrior(knots, trend - np.log(_f_quantile(own, worth, 0.5)), worth)


def moderated(
    common: SharedVariancePrior,
    level: FloatArray,
    variance: FloatArray,
    degrees_of_freedom: FloatArray,
    config: SharedPriorConfig | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return variances and their degrees of freedom moderated by the service's prior.

    Args:
        common: Of the service.
        level: (series,).
        variance: (series,) each one's own estimate.
        degrees_of_freedom: (series,) degrees of freedom of that.
        config: Settings.
    """
    config = config or SharedPriorConfig()
    usable, expected = _expected(common, level)
    total = degrees_of_freedom + common.degrees_of_freedom
    likely = variance <= expected * _f_quantile(
        degrees_of_freedom, common.degrees_of_freedom, 1 - config.outlying
    )
    usable &= likely
    shared = (degrees_of_freedom * variance + common.degrees_of_freedom * expected) / total
    return np.where(usable, shared, variance), np.where(usable, total, degrees_of_freedom)


def least_moderated(
    common: SharedVariancePrior,
    level: FloatArray,
    variance: FloatArray,
    degrees_of_freedom: tuple[float, float],
) -> FloatArray:
    """Return a lower bound of ``moderated`` variances: (series,).

    Args:
        common: Of the service.
        level: (series,).
        variance: (series,) what each one's own estimate is at least.
        degrees_of_freedom: Between which it has them.
    """
    usable, expected = _expected(common, level)
    # One that is no longer likely is larger than expected, and a shared one lies between the two.
    shared = [
        (degrees * variance + common.degrees_of_freedom * expected) / (degrees + common.degrees_of_freedom)
        for degrees in degrees_of_freedom
    ]
    return np.where(usable, np.minimum(*shared), variance)


def _expected(common: SharedVariancePrior, level: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Return True for levels that the prior covers, and its variance there: (series,) each."""
    positive = level > 0
    at = np.log(np.where(positive, level, 1.0))
    expected: FloatArray = np.exp(np.interp(at, common.log_levels, common.log_variances))
    # Below the levels that were looked at, nothing is.
    return positive & (at >= common.log_levels[0]), expected


def _spread(values: FloatArray) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / _NORMAL_QUARTILES


def _degrees_of_freedom(log_variance: float) -> float:
    """Return the degrees of freedom of a chi-squared variable whose logarithm has a variance."""
    if log_variance <= special.polygamma(1, _MOST_DEGREES / 2):
        return _MOST_DEGREES
    half = root_between(lambda x: float(special.polygamma(1, x)) - log_variance, 0.25, _MOST_DEGREES / 2)
    return 0.5 if half is None else 2.0 * half


def _f_quantile(numerator: FloatArray | float, denominator: float, probability: float) -> FloatArray:
    quantile: FloatArray = special.fdtri(numerator, denominator, probability)
    return quantile
