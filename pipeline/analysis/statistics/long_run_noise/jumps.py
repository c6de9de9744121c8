"""Jumps of a level between blocks of windows: changes of level, which are not noise."""

from __future__ import annotations

import numpy as np
from scipy import special

from pipeline.analysis.statistics.robust import MEDIAN_SQUARE, may_exceed_median, medians_of_rows
from pipeline.model import BoolArray, FloatArray


def find_jumps(observed: FloatArray, exposure: FloatArray, *, side: int, significance: float) -> BoolArray:
    """Return True before each block at which the level jumps: (series, blocks).

    At a jump the means of ``side`` blocks before and after differ by more than such means usually do, and by
    more than at the places around it.

    Args:
        observed: (series, blocks) sums.
        exposure: (series, blocks) or (1, blocks) sums, 0 where there is no data.
        side: Blocks on either side that are compared.
        significance: Chance of a false jump in a series.
    """
    observed, exposure = _moving_sums(observed, side), _moving_sums(exposure, side)
    from scipy.ndimage import maximum_filter1d  # slow to import, and every worker imports this module

    has_data = exposure > 0
    inverse = 1.0 / np.where(has_data, exposure, np.inf)
    levels = observed * inverse
    squares = levels[:, side:] - levels[:, :-side]
    squares *= squares
    spread = inverse[:, side:] + inverse[:, :-side]
    both = has_data[:, side:] & has_data[:, :-side]
    squares /= spread if both.all() else np.where(both, spread, np.inf)
    jumps = np.zeros((len(observed), observed.shape[1] + side - 1), dtype=np.bool_)
    if not squares.size:
        return jumps
    bound = special.chdtri(1, significance / squares.shape[1])
    rows = np.flatnonzero(may_exceed_median(squares, bound / MEDIAN_SQUARE))
    if not len(rows):
        return jumps
    squares = squares[rows]
    outlying = squares > bound * (medians_of_rows(squares)[:, None] / MEDIAN_SQUARE)
    highest = squares == maximum_filter1d(squares, 2 * side + 1, axis=1)
    # A block that holds a jump differs from both its neighbours.
    jumps[rows, side : side + squares.shape[1]] = outlying & maximum_filter1d(highest, 3, axis=1)
    return jumps


def _moving_sums(values: FloatArray, length: int) -> FloatArray:
    sums = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, out=sums[:, 1:])
    return np.asarray(sums[:, length:] - sums[:, :-length])
