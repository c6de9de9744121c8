"""Points that belong to no lasting regime are replaced before levels are compared."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from pipeline.model import FloatArray
from pipeline.robust import quantile_deviation


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
    odd = np.abs(values - middle) > bound * size
    return np.where(odd, middle, values), int(np.count_nonzero(odd))
