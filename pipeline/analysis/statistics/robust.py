"""Robust statistics: medians, deviations, over-dispersion and block means that a few outliers do not move."""

from __future__ import annotations

import numpy as np
from scipy import special

from pipeline.model import BoolArray, FloatArray

MAD_TO_DEVIATION = 1.4826
"""By which a median absolute deviation becomes the standard deviation of normal noise."""

MEAN_TO_DEVIATION = 1.2533
"""By which a mean absolute deviation becomes one."""

NORMAL_QUARTILE = 0.6745
"""Median distance of a standard normal variable from 0."""

MEDIAN_SQUARE = float(special.chdtri(1, 0.5))
"""Median of a squared standard normal variable."""


def row_medians(values: FloatArray) -> FloatArray:
    """Return each row's median of what is not NaN: (rows,); NaN for a row without data."""
    if values.shape[1] and not np.isnan(values).any():
        return np.asarray(np.median(values, axis=1), dtype=np.float64)
    medians = np.full(len(values), np.nan)
    known = ~np.isnan(values).all(axis=1)
    medians[known] = np.nanmedian(values[known], axis=1)
    return medians


def medians_of_rows(values: FloatArray) -> FloatArray:
    """Return each row's median: (rows,), of (rows, values) without NaN; at a third of numpy's cost."""
    middle = values.shape[1] // 2
    parts = np.partition(values, middle, axis=1)
    upper: FloatArray = parts[:, middle]
    return upper if values.shape[1] % 2 else (parts[:, :middle].max(axis=1) + upper) / 2


def may_exceed_median(values: FloatArray, times: float) -> BoolArray:
    """Return the rows whose largest value may be more than ``times`` their median: (rows,).

    Every row of which it is true is among them, and hardly another. Half of such a row lies below the largest
    value by ``times``, and counting costs a tenth of what a median does.
    """
    bound = (
        values.max(axis=1, keepdims=True, initial=0.0) / times * (1 + 1e-9)
    )  # for the rounding of either side
    result: BoolArray = 2 * (values < bound).sum(axis=1) >= values.shape[1]
    return result


def overdispersion(squares: FloatArray) -> float:
    """Return the variance of most of some deviations, from their squares in standard errors; at least 1.

    It is that of most of them: a few true changes among them do not move their median.
    """
    return max(1.0, float(np.median(squares)) / MEDIAN_SQUARE)


def typical_deviation(sizes: FloatArray) -> FloatArray:
    """Return the standard deviation of normal noise with such absolute deviations: (rows,).

    Most values of a rare thing are equal, so that half of them deviate by nothing; their mean deviation still
    says what is usual. The larger estimate counts.

    Args:
        sizes: (rows, values) absolute deviations, NaN where there is no data.
    """
    return np.maximum(
        MAD_TO_DEVIATION * row_medians(sizes), MEAN_TO_DEVIATION * np.asarray(np.nanmean(sizes, axis=1))
    )


def quantile_deviation(values: FloatArray) -> float:
    """Return the standard deviation of most values around 0: the larger of two quantiles' estimates.

    The median of sizes alone is 0 where most values repeat, as with counts; then the upper quantile speaks,
    and at last the plain deviation.
    """
    size = np.abs(values)
    median, upper = np.quantile(size, [0.5, 0.8])
    robust = max(float(median) / NORMAL_QUARTILE, float(upper) / 1.2816)
    return robust if robust > 0 else float(np.sqrt(np.mean(size**2)))


def block_means(values: FloatArray, weights: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
    """Return weighted means of blocks of windows and their weights: (series, blocks) each.

    What does not fill a block at the old end is left out.

    Args:
        values: (series, windows); anything where the weight is 0.
        weights: (series, windows), not negative.
        width: Windows of a block.
    """
    if width == 1:
        return values, weights
    blocks = values.shape[1] // width
    newest = slice(values.shape[1] - blocks * width, None)
    shape = (len(values), blocks, width)
    known = np.where(weights > 0, values, 0.0)
    weight = weights[:, newest].reshape(shape).sum(axis=2)
    sums = (known * weights)[:, newest].reshape(shape).sum(axis=2)
    means: FloatArray = np.divide(sums, weight, out=np.zeros(weight.shape), where=weight > 0)
    return means, weight
