"""Monotonic trends without a model: the Mann-Kendall test and Theil-Sen's slope (FBDetect §5.4.3).

Both look at every pair of points, so their cost grows with the square of the points: a caller with long rows
hands in means of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.statistics.robust import row_quantiles
from pipeline.model import FloatArray

_PAIRS_AT_ONCE = 2_000_000
"""Pairs worked on together: few enough for the processor's cache to be of use."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A line through each row; NaN where fewer than two points are known."""

    slope: FloatArray  # (rows,) per point
    intercept: FloatArray  # (rows,) its level at the first point


def mann_kendall(values: FloatArray) -> FloatArray:
    """Return (rows,) standard scores of the Mann-Kendall test: above 0 rising, below 0 falling.

    The statistic counts rising minus falling pairs. Its variance without a trend accounts for ties (Kendall
    1975), and one is taken off its size for continuity. Fewer than three known points, or points that are all
    equal, score 0. The points are taken to be independent.

    Args:
        values: (rows, points) in order of time; NaN is no data.

    Example:
        >>> mann_kendall(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])).round(2)
        array([2.2])
    """
    parts = [_mann_kendall(values[rows]) for rows in _chunks(values)]
    return np.concatenate(parts) if parts else np.zeros(0)


def theil_sen(values: FloatArray) -> Lines:
    """Return the line whose slope is the median over all pairs of points (Theil 1950, Sen 1968).

    The intercept is the median of what the slope leaves of each point.

    Args:
        values: (rows, points), equally spaced in time; NaN is no data.

    Example:
        >>> theil_sen(np.array([[1.0, 3.0, 5.0, 70.0, 9.0]])).slope
        array([2.])
    """
    points = values.shape[1]
    first, second = np.triu_indices(points, 1)
    slopes = [
        row_quantiles((values[rows][:, second] - values[rows][:, first]) / (second - first), (0.5,))[0]
        for rows in _chunks(values)
    ]
    slope = np.concatenate(slopes) if slopes else np.zeros(0)
    return Lines(slope, row_quantiles(values - slope[:, None] * np.arange(points), (0.5,))[0])


def _chunks(values: FloatArray) -> list[slice]:
    rows = max(_PAIRS_AT_ONCE // max(values.shape[1] ** 2, 1), 1)
    return [slice(start, start + rows) for start in range(0, len(values), rows)]


def _mann_kendall(values: FloatArray) -> FloatArray:
    has_data = ~np.isnan(values)
    later, earlier = values[:, None, :], values[:, :, None]
    # Each pair stands in the square twice: above its diagonal as it is, below it mirrored.
    before = np.triu(np.ones((values.shape[1],) * 2, dtype=np.bool_), 1)
    rising = ((later > earlier) & before).sum(axis=(1, 2)) - ((later < earlier) & before).sum(axis=(1, 2))
    tied = (later == earlier).sum(axis=2).astype(np.float64)  # points equal to this one, itself included
    points = has_data.sum(axis=1).astype(np.float64)
    # A group of t equal points has t members, so its t (t - 1) (2 t + 5) is a sum over them.
    groups = np.where(has_data, (tied - 1) * (2 * tied + 5), 0.0).sum(axis=1)
    variance = (points * (points - 1) * (2 * points + 5) - groups) / 18
    score = np.sign(rising) * np.maximum(np.abs(rising) - 1, 0)
    testable = (points >= 3) & (variance > 0)
    scores: FloatArray = np.divide(
        score, np.sqrt(np.maximum(variance, 0.0)), out=np.zeros(len(values)), where=testable
    )
    return scores
