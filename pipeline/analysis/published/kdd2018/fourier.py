"""Fourier regression of daily and weekly cycles (KDD 2018 §2.2.1), over many series at once.

All series share their moments in time, hence the terms of the regression, so that the normal equations of all
are one matrix product. The order is chosen per series by the corrected Akaike criterion, on plain least
squares; the chosen one is fitted again by iteratively reweighted least squares with Huber's loss.

Two things are settled where the paper leaves them open. The fitted level β0 is not subtracted: what is added
back by multiplication with the trend is a level, and subtracting it would leave none. And a series whose
trend is not positive throughout cannot be detrended by division, and is fitted as it is.
"""

from __future__ import annotations

import numpy as np

from pipeline.analysis.detect.seasonal.stl import bridge, points_of
from pipeline.analysis.published.kdd2018.setups import FourierConfig
from pipeline.analysis.statistics.robust import MAD_TO_DEVIATION, row_medians
from pipeline.model import FloatArray, IntArray
from pipeline.model.units import DAY_S, WEEK_S


def remove_cycles(
    values: FloatArray, weights: FloatArray, resolution_s: float, *, config: FourierConfig | None = None
) -> FloatArray:
    """Return the series without their daily and weekly cycles, level and trend kept: (series, windows).

    Args:
        values: (series, windows); anything where the weight is 0.
        weights: (series, windows).
        resolution_s: Length of a window.
        config: Settings.
    """
    config = config or FourierConfig()
    day = points_of(DAY_S, resolution_s)
    windows = values.shape[1]
    if windows < 2 * day or day < 2 * config.max_daily + 2 or not len(values):
        return values
    trend = daily_trend(values, weights, day, config.smoothing)
    detrended = np.where(weights > 0, values / trend, 0.0)
    weekly = config.max_weekly if windows * resolution_s >= config.min_weeks * WEEK_S else 0
    time = np.arange(windows) * resolution_s
    cycles = [(DAY_S, k) for k in range(1, config.max_daily + 1)]
    cycles += [(WEEK_S, k) for k in range(1, weekly + 1)]
    waves = [w(2 * np.pi * k * time / period) for period, k in cycles for w in (np.sin, np.cos)]
    terms = np.stack([np.ones(windows), *waves], axis=1)
    season = np.zeros(values.shape)
    chosen = _choose_orders(detrended, weights, terms, config.max_daily, weekly)
    for order in np.unique(chosen, axis=0).tolist():
        rows = np.flatnonzero((chosen == order).all(axis=1))
        columns = _columns(order[0], order[1], config.max_daily)
        coefficients = _huber(detrended[rows], weights[rows], terms[:, columns], config)
        season[rows] = coefficients[:, 1:] @ terms[:, columns[1:]].T
    return trend * (np.where(weights > 0, values / trend, 0.0) - season)


def daily_trend(values: FloatArray, weights: FloatArray, day: int, smoothing: float) -> FloatArray:
    """Return daily medians, smoothed by LOESS, for each window; ones where they are not all positive.

    Days count back from the newest window, so that the last one is whole.
    """
    windows = values.shape[1]
    days = -(-windows // day)
    padding = ((0, 0), (days * day - windows, 0))
    holes = np.pad(np.where(weights > 0, values, np.nan), padding, constant_values=np.nan)
    holes = holes.reshape(len(values), days, day)
    has_data = np.isfinite(holes).any(axis=2)
    medians = np.nanmedian(np.where(has_data[:, :, None], holes, 0.0), axis=2)
    for row in np.flatnonzero(~has_data.all(axis=1)).tolist():
        medians[row] = bridge(medians[row], has_data[row])
    smooth = medians @ loess_operator(days, smoothing).T
    smooth[(smooth <= 0).any(axis=1)] = 1.0
    return np.repeat(smooth, day, axis=1)[:, days * day - windows :]


def loess_operator(points: int, share: float) -> FloatArray:
    """Return the matrix that smooths equally spaced points by local lines with tricube weights."""
    positions = np.arange(points, dtype=np.float64)
    near = max(min(points, 3), int(np.ceil(share * points)))
    distance = np.abs(positions[:, None] - positions)
    reach = np.sort(distance, axis=1)[:, near - 1 : near] * (1 + 1e-9) + 1e-9
    weight = np.clip(1 - (distance / reach) ** 3, 0.0, 1.0) ** 3
    total = weight.sum(axis=1, keepdims=True)
    middle = weight @ positions[:, None] / total
    offset = positions - middle
    moment = (weight * offset**2).sum(axis=1, keepdims=True)
    lever = np.divide(positions[:, None] - middle, moment, out=np.zeros(moment.shape), where=moment > 1e-9)
    return np.asarray(weight * (1 / total + lever * offset))


def _columns(daily: int, weekly: int, max_daily: int) -> list[int]:
    week = 1 + 2 * max_daily
    return [*range(1 + 2 * daily), *range(week, week + 2 * weekly)]


def _choose_orders(
    values: FloatArray, weights: FloatArray, terms: FloatArray, max_daily: int, max_weekly: int
) -> IntArray:
    """Return (K, N) of each series with the lowest corrected AIC (Hurvich and Tsai 1989): (series, 2)."""
    orders = [(k, n) for k in range(max_daily + 1) for n in range(max_weekly + 1)]
    normal, right = _normal_equations(values, weights, terms)
    square = (values**2 * weights).sum(axis=1)
    count = (weights > 0).sum(axis=1).astype(np.float64)
    scores = []
    for k, n in orders:
        columns = _columns(k, n, max_daily)
        coefficients = _solve(normal[:, columns][:, :, columns], right[:, columns])
        error = np.maximum(square - (coefficients * right[:, columns]).sum(axis=1), 1e-12 * square)
        parameters = len(columns) + 1.0  # and the variance
        correction = 2 * parameters * (parameters + 1) / np.maximum(count - parameters - 1, 1.0)
        scores.append(count * np.log(np.maximum(error, 1e-300)) + 2 * parameters + correction)
    chosen: IntArray = np.asarray(orders, dtype=np.int64)[np.argmin(scores, axis=0)]
    return chosen


def _huber(values: FloatArray, weights: FloatArray, terms: FloatArray, config: FourierConfig) -> FloatArray:
    """Return coefficients by iteratively reweighted least squares with Huber's loss: (series, terms)."""
    has_data = weights > 0
    # A point's own noise goes with its weight: only standardised residuals can be compared.
    root = np.sqrt(weights)
    trust = np.ones(values.shape)
    coefficients = _solve(*_normal_equations(values, weights, terms))
    for _ in range(config.rounds):
        size = np.abs(values - coefficients @ terms.T) * root
        scale = MAD_TO_DEVIATION * row_medians(np.where(has_data, size, np.nan))
        reach = config.huber * np.maximum(scale, 1e-300)[:, None]
        np.divide(reach, size, out=trust, where=size > 0)
        np.clip(trust, None, 1.0, out=trust)
        coefficients = _solve(*_normal_equations(values, weights * trust, terms))
    return coefficients


def _normal_equations(
    values: FloatArray, weights: FloatArray, terms: FloatArray
) -> tuple[FloatArray, FloatArray]:
    products = (terms[:, :, None] * terms[:, None, :]).reshape(len(terms), -1)
    normal = (weights @ products).reshape(len(values), terms.shape[1], terms.shape[1])
    return normal, (values * weights) @ terms


def _solve(normal: FloatArray, right: FloatArray) -> FloatArray:
    count = normal.shape[1]
    # Gaps may leave terms undetermined; the ridge is far below what matters otherwise.
    ridge = 1e-9 * np.trace(normal, axis1=1, axis2=2) / count + 1e-300
    system = normal + ridge[:, None, None] * np.eye(count)
    return np.asarray(np.linalg.solve(system, right[:, :, None])[:, :, 0])
