"""End of the warm-up of a trial: after it the points are about stationary (§4.2)."""

from __future__ import annotations

import numpy as np
from scipy import special

from pipeline.model import FloatArray, IntArray

SPAN_SHARE = 0.05
"""Span of the moving average, as a share of the points: there are twenty spans."""

SHORTEST_SPAN = 3.0

FALSE_ALARM = 0.05
"""Chance that a steady trial loses any point."""

SAME_LEVEL = 1e-6
"""Difference of levels, as a share of the largest point, that counts as none: noise may be 0."""

FEWEST_POINTS = 20
"""Fewest points that show the noise: of fewer nothing is discarded."""


def warm_up_points(values: FloatArray) -> IntArray:
    """Return how many of a trial's first points are warm-up: (trials,), all of them if it never ends.

    An exponential moving average follows the points. Its level and its noise are those of the second half.
    What comes before the average stays within its noise is warm-up. If that takes half of the trial, the
    trial is not stationary. The noise is that around a straight line, so that a level that still moves does
    not hide itself.

    Args:
        values: (trials, points) in the order of time; NaN only after a trial's last point.
    """
    counts = (~np.isnan(values)).sum(axis=1)
    result = np.zeros(len(values), dtype=np.int64)
    for count in np.unique(counts[counts >= FEWEST_POINTS]):
        rows = counts == count
        result[rows] = _of_equal_length(values[rows, :count])
    return result


def _of_equal_length(values: FloatArray) -> IntArray:
    from scipy import signal  # slow to import, and every worker of rootcause imports this module

    points = values.shape[1]
    span = max(SHORTEST_SPAN, SPAN_SHARE * points)
    half = points // 2
    weight = 2.0 / (span + 1.0)
    late = values[:, half:]
    level = late.mean(axis=1, keepdims=True)
    residual = _average(signal.detrend(late, axis=1), weight)[:, int(span) :]
    noise = residual.std(axis=1, keepdims=True, ddof=1) * np.sqrt(
        1.0 + span / len(late[0])
    )  # that of the level, too
    # Averages one span apart are about independent: their number bounds comparisons and estimates the noise.
    bound = special.stdtrit(len(late[0]) / span - 2.0, 1.0 - FALSE_ALARM * span / (2.0 * half)) * noise
    bound = np.maximum(bound, SAME_LEVEL * np.abs(values).max(axis=1, keepdims=True))
    outside = np.abs(_average(values[:, :half] - level, weight)) > bound
    last = half - np.argmax(outside[:, ::-1], axis=1)
    warm = np.where(outside.any(axis=1), last, 0)
    result: IntArray = np.where(outside[:, -1], points, warm).astype(np.int64)
    return result


def discard_warm_up(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return both sides of trials with NaN for the warm-up, and how many points each side of a trial lost.

    Both sides of a trial lose as many, so that they see the same requests.

    Args:
        a: (trials, points), NaN after a trial's last one.
        b: The same of side B, which may have more or fewer points.
    """
    lost = np.maximum(warm_up_points(a), warm_up_points(b))
    rest_a, rest_b = (np.where(np.arange(side.shape[1]) < lost[:, None], np.nan, side) for side in (a, b))
    return rest_a, rest_b, lost


def _average(values: FloatArray, weight: float) -> FloatArray:
    """Return the exponential moving average along rows, begun at 0: (rows, values)."""
    from scipy import signal

    result: FloatArray = signal.lfilter([weight], [1.0, weight - 1.0], values, axis=1)
    return result
