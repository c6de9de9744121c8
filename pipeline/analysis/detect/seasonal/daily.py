"""The daily cycle of many series at once: the waves that each day of the history repeats.

A service's mix follows its users' day. What the day explains is neither noise nor change, so the detector
compares a series with what it does at these hours. Each day of the history is fitted by itself, around its
own mean, and the cycle is what most days have in common: neither a step nor a trouble of one day makes a
cycle, and a slow drift is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from pipeline.analysis.statistics.robust import MAD_TO_DEVIATION
from pipeline.model import FloatArray, IntArray
from pipeline.model.units import DAY_S


@dataclass(frozen=True, slots=True)
class CycleConfig:
    """Settings of the daily cycle."""

    harmonics: int = 3  # of the day: enough for a level over hours, few enough to be known from ten days
    significance: float = 0.01  # of the cycle as a whole, against the noise of single windows
    consistency: float = 0.05  # of the same, against how much the days differ
    min_days: int = 3  # of history: fewer do not distinguish a cycle from a coincidence
    min_points: int = 8  # a day, so that three harmonics are not fitted to as many points
    trimmed: float = 0.2  # share of days with the largest, and with the smallest waves, that do not count


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """Start times of windows."""

    start: float  # of the first, epoch seconds
    resolution_s: float
    windows: int

    def times(self) -> FloatArray:
        """Return the start of each window: (windows,)."""
        return np.asarray(self.start + self.resolution_s * np.arange(self.windows))


class PointNoise(Protocol):
    """The variance of points, as bounds and exactly: (rows,) for the rows asked for."""

    least: FloatArray | float  # (series,)

    def most(self, rows: IntArray) -> FloatArray:
        """Return an upper bound of the variance."""

    def exact(self, rows: IntArray) -> FloatArray:
        """Return the variance."""


def fit_daily_waves(
    values: FloatArray,
    weights: FloatArray,
    noise: PointNoise,
    grid: WindowGrid,
    config: CycleConfig | None = None,
) -> FloatArray:
    """Return the coefficients of each series' daily waves around its level: (series, waves).

    Args:
        values: (series, history); what has weight 0 is not looked at.
        weights: (history,) or (series, history): a point's variance is the series' / weight.
        noise: Of a point of weight 1.
        grid: Of the values, and how far to carry the cycle on, the history included.
        config: Settings.

    Returns:
        0 for series without a significant cycle, and for all where the history is too short or too coarse, or
        a day is no whole number of points.
    """
    config = config or CycleConfig()
    day = round(DAY_S / grid.resolution_s)
    days = values.shape[1] // max(day, 1)
    uneven = abs(day * grid.resolution_s - DAY_S) > 1e-6
    if uneven or day < config.min_points or days < config.min_days or not len(values):
        return np.zeros((len(values), 2 * config.harmonics))
    newest = slice(values.shape[1] - days * day, values.shape[1])
    has_data = np.atleast_2d(weights > 0)[:, newest].reshape(-1, days, day)  # one row if all have the same
    by_day = values[:, newest].reshape(len(values), days, day)
    complete = bool(has_data.all())
    points = has_data.sum(axis=2)
    by_day = by_day if complete else np.where(has_data, by_day, 0.0)
    by_day = by_day - (by_day.sum(axis=2) / np.maximum(points, 1))[:, :, None]
    by_day = by_day if complete else np.where(has_data, by_day, 0.0)
    # Waves of a whole day are orthogonal: projections are the least squares fit.
    # Those of a day with gaps fall short by the share that is missing.
    waves = _waves(grid, config.harmonics)[newest][:day]
    daily = (by_day.reshape(-1, day) @ (waves * 2.0)).reshape(len(values), days, -1)
    daily /= np.maximum(points, 1)[:, :, None]
    return _common(daily, points >= day / 2, noise, weights, config, day)


def draw_cycle(coefficients: FloatArray, grid: WindowGrid) -> FloatArray:
    """Return waves as windows: (series, waves) coefficients → (series, windows)."""
    waves = _waves(grid, coefficients.shape[1] // 2).T
    cyclic = np.flatnonzero(coefficients.any(axis=1))
    if 2 * len(cyclic) > len(coefficients):
        return np.asarray(coefficients @ waves)
    cycle = np.zeros((len(coefficients), grid.windows))
    cycle[cyclic] = coefficients[cyclic] @ waves
    return cycle


def _waves(grid: WindowGrid, harmonics: int) -> FloatArray:
    """Return sines and cosines of the day: (windows, waves)."""
    angles = 2 * np.pi * (grid.times() % DAY_S) / DAY_S
    return np.stack([wave(k * angles) for k in range(1, harmonics + 1) for wave in (np.sin, np.cos)], axis=1)


def _common(
    daily: FloatArray,
    enough: np.ndarray,
    noise: PointNoise,
    weights: FloatArray,
    config: CycleConfig,
    day: int,
) -> FloatArray:
    """Return the coefficients that most days share, 0 where they are not significant: (series, waves)."""
    days, terms = daily.shape[1:]
    if not enough.all():
        # A day with gaps has a distorted wave; it stands in with the middle of the others.
        daily = np.where(enough[:, :, None], daily, np.median(daily, axis=1, keepdims=True))
    daily = np.ascontiguousarray(daily.transpose(0, 2, 1))  # or sorting jumps about in memory
    cut, ordered = int(config.trimmed * days), np.sort(daily, axis=2)
    common: FloatArray = ordered[:, :, cut : days - cut].mean(axis=2)
    weight = np.where(weights > 0, weights, 0.0).sum(axis=-1) / np.maximum((weights > 0).sum(axis=-1), 1)
    # Of a mean wave, by the variance of one point.
    sampling = 1.0 / np.maximum(weight, 1e-300) * 2 / (day * days)
    power = (common**2).sum(axis=1)
    bound = special.chdtri(terms, config.significance)
    # How noisy a point is costs far more than to say between what its noise lies.
    cyclic = np.flatnonzero(power > bound * (noise.least * sampling))
    away = np.abs(daily[cyclic] - _middles(ordered[cyclic])[:, :, None])
    spread = _middles(np.sort(away, axis=2))
    differing = ((spread * MAD_TO_DEVIATION) ** 2).mean(axis=1) / days
    cyclic = cyclic[
        power[cyclic] > terms * special.fdtri(terms, days - 1, 1 - config.consistency) * differing
    ]
    sampling = np.broadcast_to(sampling, power.shape)
    unclear = cyclic[power[cyclic] <= bound * (noise.most(cyclic) * sampling[cyclic])]
    result = np.zeros(common.shape)
    result[cyclic] = common[cyclic]
    if len(unclear):
        significant = power[unclear] > bound * (noise.exact(unclear) * sampling[unclear])
        result[unclear[~significant]] = 0.0
    return result


def _middles(ordered: FloatArray) -> FloatArray:
    """Return the medians along the last axis of sorted values."""
    values = ordered.shape[-1]
    return np.asarray((ordered[..., (values - 1) // 2] + ordered[..., values // 2]) / 2)
