"""Types of requests that take longer to answer in the new release: evidence on which of them costs more.

A request that costs more mostly takes longer, too. Response times alone are no verdict: they rise with the
load, and with all that a service waits for (Liao et al., §2). So types are compared with one another: what
the types of a period have in common is left out, and what most types have in common in a release. What is
left distinguishes types whose change would explain the metric equally well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.analysis.statistics.long_run_noise.autoregression import memory
from pipeline.model import FloatArray
from pipeline.releases.requests.periods import ReleasePeriods

FEWEST_PERIODS = 5
"""Fewest periods of each release with response times of a type; with fewer its shift is not known."""

_FALSE_SHIFTS = 0.05
"""False discovery rate among types that count as shifted."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """Differences of types' response times between two releases, beyond the difference of all types.

    Args:
        shift: (types,) of the logarithm: 0.1 is 10 % longer in the new release. NaN if it is not known.
        error: (types,) its standard error, with how much types differ that did not change.
    """

    shift: FloatArray
    error: FloatArray


def response_shifts(old: ReleasePeriods, new: ReleasePeriods) -> Shifts:
    """Return the shifts of all types; none is known where a release has no response times."""
    if old.times is None or new.times is None:
        unknown = np.full(old.counts.shape[1], np.nan)
        return Shifts(unknown, unknown)
    level = _mean(old.times, old.served)
    before = _within_period(old.times, level)
    after = _within_period(new.times, level)
    variance = _variance_of_mean(before, old.served) + _variance_of_mean(after, new.served)
    shift = _mean(after, new.served) - _mean(before, old.served)
    shift[~np.isfinite(variance)] = np.nan
    shift = shift - _median(shift)
    # Types that did not change differ, too: by what they read, or by what they wait for.
    spread = _median(np.abs(shift)) / special.ndtri(0.75)
    return Shifts(shift, np.sqrt(variance + max(0.0, spread**2 - _median(variance))))


def log_evidence(shifts: Shifts, sign: FloatArray) -> FloatArray:
    """Return how much likelier the times of a type are if its cost changed: (types,) logarithms of factors.

    The change of times with a cost is unknown. A type counts by the scale that makes its times likeliest
    (Good 1965, type II likelihood), so one whose times did not change loses nothing: its work may follow the
    answer. Other things change times as well, of this type by as much as often as of the others (Laplace's
    rule of succession), so that the factor is at most one more than the types, where no other one is shifted
    as much.

    Args:
        shifts: Of the types.
        sign: (types,) 1 where the cost would be higher, -1 where it would be lower.
    """
    comparable = np.isfinite(shifts.shift) & (shifts.error > 0.0)
    z = np.divide(shifts.shift, shifts.error, out=np.zeros(len(comparable)), where=comparable)
    ahead = np.maximum(z * sign, 0.0)
    # Shifts of changed types as half a normal distribution, of which the best variance is near z² - 1.
    scale = np.maximum(np.square(ahead) - 1.0, 0.0)
    shrunk = scale / (1.0 + scale)
    gain = np.square(ahead) * shrunk / 2.0 - np.log1p(scale) / 2.0
    gain = np.maximum(gain + np.log(2.0) + special.log_ndtr(ahead * np.sqrt(shrunk)), 0.0)
    shifted = np.zeros(len(comparable), dtype=np.bool_)
    if comparable.any():
        from scipy import stats  # slow to import, and every worker of the stage releases imports this module

        shifted[comparable] = (
            stats.false_discovery_control(2.0 * special.ndtr(-np.abs(z[comparable]))) <= _FALSE_SHIFTS
        )
    size = np.abs(shifts.shift)
    larger = (shifted & (size >= size[:, None])).sum(axis=1) - shifted
    by_itself = (1.0 + larger) / (comparable.sum() - comparable + 2.0)
    return np.asarray(gain - np.logaddexp(np.log1p(-by_itself), np.log(by_itself) + gain))


def _within_period(times: FloatArray, level: FloatArray) -> FloatArray:
    """Return response times without the common part of each period's types: (periods, types)."""
    above = times - level
    came = np.isfinite(above).any(axis=1)
    common = np.zeros(len(times))
    common[came] = np.nanmedian(above[came], axis=1)
    return np.asarray(times - common[:, None])


def _mean(times: FloatArray, requests: FloatArray) -> FloatArray:
    """Return the mean of each type over all requests: (types,); NaN without any."""
    weights = np.where(np.isfinite(times), requests, 0.0)
    total = weights.sum(axis=0)
    sums = (np.nan_to_num(times) * weights).sum(axis=0)
    mean: FloatArray = np.divide(sums, total, out=np.full(len(total), np.nan), where=total > 0.0)
    return mean


def _variance_of_mean(times: FloatArray, requests: FloatArray) -> FloatArray:
    """Return the variance of each type's mean, estimated between periods: (types,); NaN with few periods."""
    left = times - _mean(times, requests)
    variance = np.full(times.shape[1], np.nan)
    for column in range(times.shape[1]):
        came = np.isfinite(left[:, column]) & (requests[:, column] > 0.0)
        many = int(came.sum())
        if many >= FEWEST_PERIODS:
            share = requests[came, column] / requests[came, column].sum()
            deviations = left[came, column] * share
            variance[column] = float(deviations @ deviations) * many / (many - 1.0) * memory((deviations,))
    return variance


def _median(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else 0.0
