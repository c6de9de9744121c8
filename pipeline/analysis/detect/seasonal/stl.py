"""Detection and decomposition of daily and weekly seasons in a batch of series (FBDetect §5.4.4).

The paper asks the autocorrelation function whether a series is seasonal, and STL for the season. Both need
settling where it leaves them open:

- The autocorrelation is taken at all whole multiples of the period together: ten days hold nine days' worth
  of evidence, not one. Noise that is autocorrelated itself makes large values by chance more likely;
  Bartlett's formula says by how much. A slow drift or a change of level resembles itself at every lag, so
  that a moving average of one period is taken off first, which leaves it no correlation at a whole period.
- A pulse of two hours shows best in short windows, a smooth cycle in long ones, whose means are less noisy.
  So it is looked for at two scales, each with half of the significance.
- A week always repeats a day, so the week is looked for in what the day leaves over.
- A season counts as the same in every cycle (STL's periodic smoothing of its cycles): a candidate is judged
  by the season carried on beyond the data it was fitted to, and a season that may bend follows the last
  cycle's noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft, special

from pipeline.analysis.statistics.blocks import block_means, ratio_or_zero
from pipeline.analysis.statistics.robust import row_medians, typical_deviation
from pipeline.model import BoolArray, FloatArray
from pipeline.model.units import DAY_S, WEEK_S

CHUNK_ROWS = 256
"""Series transformed together: bounds the memory that the transforms take."""


@dataclass(frozen=True, slots=True)
class SeasonConfig:
    """Settings of the search for seasons and of their decomposition."""

    significance: float = 0.01  # FBDetect §5.4.2, shared by the two periods
    min_cycles: float = 2.0  # a period seen once says nothing about its return
    min_points: int = 8  # a period: fewer cannot show its shape
    scales: tuple[int, ...] = (144, 24)  # windows into which a period is divided to look for it
    outlier: float = 4.0  # standard deviations to which points are clipped
    robust_rounds: int = 4  # of STL's reweighting; Cleveland et al. 1990, §3.3, need about as many


@dataclass(frozen=True, slots=True)
class Periods:
    """Seasons of each series."""

    daily: BoolArray  # (series,)
    weekly: BoolArray  # (series,)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Season and trend of each series: (series, windows) each. The rest of a series is its residual."""

    seasonal: FloatArray
    trend: FloatArray


def points_of(period_s: float, resolution_s: float) -> int:
    """Return the number of windows in a period, rounded."""
    return round(period_s / resolution_s)


def find_periods(
    values: FloatArray, weights: FloatArray, resolution_s: float, *, config: SeasonConfig | None = None
) -> Periods:
    """Return which series have a significant daily or weekly cycle.

    Args:
        values: (series, windows); may be NaN where the weight is 0.
        weights: (windows,) or (series, windows), not negative: inverse variances up to a factor.
        resolution_s: Length of a window.
        config: Settings.

    Returns:
        One row for each series. A period of which the data hold fewer than ``min_cycles`` is not significant.
    """
    config = config or SeasonConfig()
    weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), values.shape)
    day, week = points_of(DAY_S, resolution_s), points_of(WEEK_S, resolution_s)
    daily, weekly = np.ones(len(values)), np.ones(len(values))
    for first in range(0, len(values), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        has_data = weights[rows] > 0
        clipped = _clip(np.where(has_data, values[rows], 0.0), has_data, config.outlier)
        if _enough(values.shape[1], day, config):
            daily[rows] = _periodicity(clipped, weights[rows], day, 0.0, config)
        if _enough(values.shape[1], week, config):
            # What is left of a day's phase correlates by this much less: so many values around their mean.
            has_day = day >= config.min_points
            missing = 1 / (values.shape[1] / day - 1) if has_day else 0.0
            left = clipped - fold(clipped, weights[rows], day) if has_day else clipped
            weekly[rows] = _periodicity(left, weights[rows], week, missing, config)
    bound = -np.expm1(np.log1p(-config.significance) / 2)
    return Periods(daily < bound, weekly < bound)


def decompose(
    values: FloatArray,
    weights: FloatArray,
    periods: Sequence[int],
    *,
    config: SeasonConfig | None = None,
) -> Decomposition:
    """Return the season and the trend of each series by robust STL, one period after the other.

    Gaps are bridged in a straight line. The seasonal part is the same in every cycle, and with several
    periods it is their sum, each found in what the shorter ones leave over.

    Args:
        values: (series, windows); what has weight 0 may be NaN.
        weights: (windows,) or (series, windows).
        periods: Lengths in windows. Those that the data do not hold twice are left out; without any, the
            trend is the series' median.
        config: Settings.
    """
    config = config or SeasonConfig()
    weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), values.shape)
    usable = [p for p in sorted(periods) if _enough(values.shape[1], p, config)]
    seasonal, trend = np.zeros(values.shape), np.zeros(values.shape)
    for row in range(len(values)):
        has_data = weights[row] > 0
        bridged = bridge(values[row], has_data)
        trend[row] = np.median(bridged)
        for period in usable:
            season, trend[row] = _stl(bridged - seasonal[row], period, config)
            seasonal[row] += season
    return Decomposition(seasonal, trend)


def carry_on(seasonal: FloatArray, period: int, windows: int) -> FloatArray:
    """Repeat the last cycle of a season up to a length of ``windows``: (series, windows)."""
    fitted = seasonal.shape[1]
    later = np.arange(fitted, windows)
    source = later - period * (-(-(later - fitted + 1) // period))
    return np.concatenate([seasonal, seasonal[:, source]], axis=1)


def bridge(values: FloatArray, has_data: BoolArray) -> FloatArray:
    """Return a series whose gaps are filled in a straight line; zeros for one without any data."""
    if has_data.all():
        return values
    positions = np.flatnonzero(has_data)
    if not len(positions):
        return np.zeros(len(values))
    filled: FloatArray = np.interp(np.arange(len(values)), positions, values[positions])
    return filled


def fold(values: FloatArray, weights: FloatArray, period: int) -> FloatArray:
    """Return the weighted mean of each phase of a period around the whole mean: (series, windows)."""
    rows, windows = values.shape
    cycles = -(-windows // period)
    padding = ((0, 0), (0, cycles * period - windows))
    weight = np.pad(weights, padding).reshape(rows, cycles, period)
    total = np.pad(values * weights, padding).reshape(rows, cycles, period)
    level = ratio_or_zero(total.sum(axis=(1, 2)), weight.sum(axis=(1, 2)))
    phases = ratio_or_zero(total.sum(axis=1), weight.sum(axis=1))
    phases = np.where(weight.sum(axis=1) > 0, phases - level[:, None], 0.0)
    return np.tile(phases, (1, cycles))[:, :windows]


def _enough(windows: int, period: int, config: SeasonConfig) -> bool:
    return period >= config.min_points and windows >= config.min_cycles * period


def _stl(values: FloatArray, period: int, config: SeasonConfig) -> tuple[FloatArray, FloatArray]:
    """Return (season, trend) of one series without gaps."""
    from statsmodels.tsa.seasonal import STL  # takes half a second and 60 MB, and few processes need it

    cycles = -(-len(values) // period)
    # A span of many times the cycles weighs all the same: the season is periodic (Cleveland et al. 1990).
    # Trend and low-pass filter are smooth over a period, so that a tenth of the points is enough of them.
    jump = max(1, period // 10)
    fitted = STL(
        values,
        period=period,
        seasonal=20 * cycles + 1,
        seasonal_deg=0,
        robust=True,
        trend_jump=jump,
        low_pass_jump=jump,
    ).fit(inner_iter=1, outer_iter=config.robust_rounds)
    return np.asarray(fitted.seasonal), np.asarray(fitted.trend)


def _clip(values: FloatArray, has_data: BoolArray, bound: float) -> FloatArray:
    """Centre each series on its median, clip outliers, and set windows without data to 0."""
    holes = np.where(has_data, values, np.nan)
    holes[~has_data.any(axis=1)] = 0.0
    centred = holes - row_medians(holes)[:, None]
    sizes = np.abs(centred)
    scale = typical_deviation(sizes)
    reach = bound * scale[:, None]
    return np.where(has_data, np.clip(np.nan_to_num(centred), -reach, reach), 0.0)


def _periodicity(
    values: FloatArray, weights: FloatArray, period: int, missing: float, config: SeasonConfig
) -> FloatArray:
    """Return the p-value of no correlation at whole multiples of a period, at the best scale: (series,)."""
    p_values = []
    for width in sorted({max(1, period // scale) for scale in config.scales}):
        if period // width < config.min_points:
            continue
        means, weight = block_means(values, weights, width)
        p_values.append(_periodicity_at(means, weight, period / width, missing, config))
    best: FloatArray = np.minimum(np.min(p_values, axis=0) * len(p_values), 1.0)
    return best


def _periodicity_at(
    values: FloatArray, weights: FloatArray, period: float, missing: float, config: SeasonConfig
) -> FloatArray:
    has_data = weights > 0
    width = round(period)
    flat = _clip(values - moving_mean(values, weights, width), has_data, config.outlier)
    # A mean of more samples is less noisy; scaled so, all points are equally noisy.
    even = np.where(has_data, flat * np.sqrt(weights), 0.0)
    even -= np.where(has_data, ratio_or_zero(even.sum(axis=1), has_data.sum(axis=1))[:, None], 0.0)
    windows = values.shape[1]
    products = _lagged_products(even)
    pairs = np.rint(_lagged_products(has_data.astype(np.float64)))
    variance = ratio_or_zero(products[:, 0], pairs[:, 0])
    correlation = ratio_or_zero(ratio_or_zero(products, pairs), variance[:, None])
    # Too few pairs are left at the last lags to say anything.
    multiples = np.rint(np.arange(period, windows - period / 4, period)).astype(np.int64)
    weight = pairs[:, multiples]
    pooled = ratio_or_zero(((correlation[:, multiples] + missing) * weight).sum(axis=1), weight.sum(axis=1))
    bartlett = 1 + 2 * (correlation[:, 1 : width // 2] ** 2).sum(axis=1)
    score = pooled * np.sqrt(weight.sum(axis=1) / bartlett)
    # Summed over all multiples, the products are the squares of so many independent phases' sums: skewed
    # like a standardised chi-squared variable.
    degrees_of_freedom = np.maximum(period / bartlett, 1.0)
    p_value = special.chdtrc(
        degrees_of_freedom, np.maximum(degrees_of_freedom + score * np.sqrt(2 * degrees_of_freedom), 0.0)
    )
    testable = (variance > 0) & (weight.sum(axis=1) > 0)
    return np.asarray(np.where(testable, p_value, 1.0), dtype=np.float64)


def _lagged_products(values: FloatArray) -> FloatArray:
    """Return sums of products of each series with itself at every lag: (series, windows)."""
    windows = values.shape[1]
    size = fft.next_fast_len(2 * windows, real=True)
    spectrum = fft.rfft(values, size, axis=1)
    return np.asarray(fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :windows])


def moving_mean(values: FloatArray, weights: FloatArray, width: int) -> FloatArray:
    """Return weighted means of centred spans, cut off at the ends."""
    positions = np.arange(values.shape[1])
    low = np.maximum(positions - width // 2, 0)
    high = np.minimum(positions - width // 2 + width, values.shape[1])

    def spans(array: FloatArray) -> FloatArray:
        running = np.concatenate([np.zeros((len(array), 1)), np.cumsum(array, axis=1)], axis=1)
        sums: FloatArray = running[:, high] - running[:, low]
        return sums

    return ratio_or_zero(spans(values * weights), spans(np.ascontiguousarray(weights)))
