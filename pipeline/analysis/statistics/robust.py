"""Robust statistics: medians, deviations and over-dispersion that a few outliers do not move."""

from __future__ import annotations

import numpy as np
from scipy import special

from pipeline.model import BoolArray, FloatArray

MAD_TO_DEVIATION = 1.4826
"""Standard deviation of normal noise, in units of its median absolute deviation."""

MEAN_TO_DEVIATION = 1.2533
"""Standard deviation of normal noise, in units of its mean absolute deviation."""

NORMAL_QUARTILE = 0.6745
"""Median distance of a standard normal variable from 0."""

_UPPER = 0.8

NORMAL_UPPER = 1.2816
"""Distance of a standard normal variable from 0 that 80 % do not exceed."""

MEDIAN_SQUARE = float(special.chdtri(1, 0.5))
"""Median of a squared standard normal variable."""


def row_medians(values: FloatArray) -> FloatArray:
    """Return each row's median, NaN left out: (rows,); NaN for a row without data."""
    if values.shape[1] and not np.isnan(values).any():
        return np.asarray(np.median(values, axis=1), dtype=np.float64)
    medians = np.full(len(values), np.nan)
    has_data = ~np.isnan(values).all(axis=1)
    medians[has_data] = np.nanmedian(values[has_data], axis=1)
    return medians


def row_quantiles(values: FloatArray, levels: tuple[float, ...]) -> FloatArray:
    """Return quantiles of each row: (levels, rows); NaN for a row without data.

    Between two points the quantile is interpolated.

    Args:
        values: (rows, values) in any unit; NaN is no data.
        levels: From 0 to 1.
    """
    if not values.shape[1]:
        return np.full((len(levels), len(values)), np.nan)
    ordered = np.sort(values, axis=1)  # NaN comes last
    last = np.maximum((~np.isnan(values)).sum(axis=1) - 1, 0)
    position = np.asarray(levels)[:, None] * last
    lower = np.floor(position).astype(np.int64)
    upper = np.minimum(lower + 1, last)
    rows = np.arange(len(values))
    low, high = ordered[rows, lower], ordered[rows, upper]
    quantiles: FloatArray = low + (high - low) * (position - lower)
    return quantiles


def medians_of_rows(values: FloatArray) -> FloatArray:
    """Return each row's median: (rows,), of (rows, values) without NaN, at a third of numpy's cost."""
    middle = values.shape[1] // 2
    parts = np.partition(values, middle, axis=1)
    upper: FloatArray = parts[:, middle]
    return upper if values.shape[1] % 2 else (parts[:, :middle].max(axis=1) + upper) / 2


def may_exceed_median(values: FloatArray, times: float) -> BoolArray:
    """Return the rows whose largest value may be more than ``times`` their median: (rows,).

    No such row is missed, and hardly another is returned: half of the values of such a row lie below the
    largest value divided by ``times``. Counting them costs a tenth of a median.
    """
    bound = (
        values.max(axis=1, keepdims=True, initial=0.0) / times * (1 + 1e-9)
    )  # for the rounding of either side
    result: BoolArray = 2 * (values < bound).sum(axis=1) >= values.shape[1]
    return result


def overdispersion(squares: FloatArray) -> float:
    """Return the variance of deviations in standard errors, from their squares: at least 1.

    It comes from the median of the squares, which a few true changes among them do not move.
    """
    return max(1.0, float(np.median(squares)) / MEDIAN_SQUARE)


def typical_deviation(sizes: FloatArray) -> FloatArray:
    """Return the standard deviation of normal noise from its absolute deviations: (rows,), in their unit.

    It is the larger of the estimates by the median and by the mean. The median is 0 if most values are equal,
    as those of a rare subroutine are.

    Args:
        sizes: (rows, values) absolute deviations, NaN where there is no data.
    """
    return np.maximum(
        MAD_TO_DEVIATION * row_medians(sizes), MEAN_TO_DEVIATION * np.asarray(np.nanmean(sizes, axis=1))
    )


def median_deviations(values: FloatArray) -> FloatArray:
    """Return each row's median absolute deviation from its median: (rows,), in the unit of the values.

    Args:
        values: (rows, values); NaN is no data.
    """
    middle = row_quantiles(values, (0.5,))[0]
    deviations: FloatArray = row_quantiles(np.abs(values - middle[:, None]), (0.5,))[0]
    return deviations


def quantile_deviations(values: FloatArray) -> FloatArray:
    """Return the standard deviation around 0 of most values of each row: (rows,), in the unit of the values.

    It is the larger of two estimates for normal noise, from the median and from the 80 % quantile of the
    sizes. The median alone is 0 if most values repeat, as rare counts do. If both are 0, it is the plain
    deviation; without data it is 0.

    Args:
        values: (rows, values) around 0, such as differences or residuals; NaN is no data.
    """
    size = np.abs(values)
    median, upper = row_quantiles(size, (0.5, _UPPER))
    robust = np.nan_to_num(np.fmax(median / NORMAL_QUARTILE, upper / NORMAL_UPPER))
    has_data = ~np.isnan(size)
    squares = (np.where(has_data, size, 0.0) ** 2).sum(axis=1)
    plain = np.sqrt(squares / np.maximum(has_data.sum(axis=1), 1))
    return np.asarray(np.where(robust > 0, robust, plain), dtype=np.float64)


def quantile_deviation(values: FloatArray) -> float:
    """Return ``quantile_deviations`` of one row: (values,)."""
    return float(quantile_deviations(values[None])[0])
