"""Transients: points of no lasting regime, which are replaced before levels are compared."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from pipeline.analysis.statistics.robust import quantile_deviation
from pipeline.model import FloatArray


def _theil_sen(values: FloatArray, time: FloatArray) -> FloatArray:
    """Return the line whose slope is the median of all pairs' (Sen 1968)."""
    first, second = np.triu_indices(len(values), 1)
    slope = np.median((values[second] - values[first]) / (time[second] - time[first]))
    line: FloatArray = np.median(values) + slope * (time - np.median(time))
    return line


def replace_transients(
    values: FloatArray, time: FloatArray, *, longest: int, bound: float
) -> tuple[FloatArray, int]:
    """Replace points far from the running median by it, and count them.

    The median of 2 longest + 1 points follows a lasting step at once and a stretch of up to ``longest``
    points not at all. Near either end it is the median of the outermost such window, so that the last points
    of a series, which nothing confirms yet, move it no more than others do; there a point may also lie on the
    line through twice as many points (Theil and Sen), or the ends of a slope would be odd.

    Args:
        values: (points,), at least eight.
        time: (points,) ascending.
        longest: Points of the longest transient.
        bound: Standard deviations from which a point is odd: of neighbours' differences, or of the distances
            from the median where those are larger, as on a smooth curve.
    """
    middle, size = _middle(values, time, longest)
    odd = np.abs(values - middle) > bound * size
    return np.where(odd, middle, values), int(np.count_nonzero(odd))


def far_runs(
    values: FloatArray, time: FloatArray, *, longest: int, bound: float, least: float
) -> tuple[int, ...]:
    """Return the lengths of runs of odd points on one side that are too large for a transient.

    Args:
        values: (points,), at least eight.
        time: (points,) ascending.
        longest: Points of the longest transient.
        bound: As ``replace_transients`` takes it.
        least: Points times standard deviations of what is too large.
    """
    middle, size = _middle(values, time, longest)
    away = (values - middle) / max(size, np.finfo(float).tiny)
    side = np.where(np.abs(away) > bound, np.sign(away), 0.0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0.0], side, [0.0]])))
    runs = [slice(*pair) for pair in zip(edges, edges[1:], strict=False) if side[pair[0]]]
    return tuple(
        run.stop - run.start for run in runs if np.abs(away[run]).min() * (run.stop - run.start) >= least
    )


def _middle(values: FloatArray, time: FloatArray, longest: int) -> tuple[FloatArray, float]:
    """Return the running median, and the standard deviation of a point around it."""
    points = len(values)
    width = min(2 * longest + 1, points - 1 + points % 2)
    half = width // 2
    middle = ndimage.median_filter(values, size=width, mode="nearest")
    for last, outermost in ((slice(half), slice(2 * width)), (slice(-half, None), slice(-2 * width, None))):
        near = values[outermost]
        line = _theil_sen(near, time[outermost])[last]
        flat = float(np.median(near[:width] if last.start is None else near[-width:]))
        on_line = (values[last] > (line + flat) / 2) == (line > flat)  # nearer to it, for any size
        middle[last] = np.where(on_line, line, flat)
    size = max(quantile_deviation(np.diff(values)) / np.sqrt(2), quantile_deviation(values - middle))
    return middle, float(size)
