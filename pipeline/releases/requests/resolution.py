"""Periods joined to the spacing of a metric's points."""

from __future__ import annotations

import numpy as np

from pipeline.model import FloatArray
from pipeline.releases.requests.periods import ReleasePeriods


def periods_a_point(width_s: float, times: FloatArray) -> int:
    """Return the spacing of a metric's points in periods, 1 at least.

    Args:
        width_s: Of a period.
        times: (points,) of those with a value, epoch seconds, ascending.
    """
    # The median gap ignores missing points and late ones.
    return max(1, int(np.median(np.diff(times)) / width_s + 0.01)) if len(times) > 1 else 1


def merged(periods: ReleasePeriods, width_s: float, many: int) -> ReleasePeriods:
    """Return periods of as many together, which begin with multiples of their length; requests are the mean.

    A point says what a service used until the next one: of its first period alone others would be missing.
    Of which a part is missing are left out.

    Args:
        periods: With a metric, NaN without points, and known starts.
        width_s: Of a period.
        many: How many become one.
    """
    if many == 1:
        return periods
    assert periods.starts is not None
    _, first, counts = np.unique(
        np.floor(periods.starts / (width_s * many) + 1e-6), return_index=True, return_counts=True
    )
    first = first[counts == many]
    rows = first[:, None] + np.arange(many)

    def summed(array: FloatArray) -> FloatArray:
        return np.asarray(array[rows].sum(axis=1))

    finite = np.isfinite(periods.metric)
    values = summed(np.where(finite, periods.metric, 0.0))
    points = summed(finite.astype(np.float64))
    metric = np.divide(values, points, out=np.full(len(rows), np.nan), where=points > 0.0)
    times = None
    if periods.times is not None:
        timed = np.where(np.isfinite(periods.times), periods.served, 0.0)
        logs, weights = summed(np.nan_to_num(periods.times) * timed), summed(timed)
        times = np.divide(logs, weights, out=np.full(logs.shape, np.nan), where=weights > 0.0)
    own = None if periods.own is None else summed(periods.own) / many
    return ReleasePeriods(summed(periods.counts) / many, metric, own, times, periods.starts[first])
