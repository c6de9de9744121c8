"""The daily cycle of many series at once: the waves that each day of the history repeats.

A service's mix follows its users' day. What the day explains is neither noise nor change, so the detector
compares a series with what it does at these hours. Each day of the history is fitted by itself, around its
own mean, and the cycle is what most days have in common: neither a step nor a trouble of one day makes a
cycle, and a slow drift is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.model import FloatArray
from pipeline.robust import MAD_TO_DEVIATION
from pipeline.units import DAY_S


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
    """When windows begin."""

    start: float  # of the first, epoch seconds
    resolution_s: float
    windows: int

    def times(self) -> FloatArray:
        """Return the start of each window: (windows,)."""
        return np.asarray(self.start + self.resolution_s * np.arange(self.windows))


def fit_daily_cycle(
    values: FloatArray,
    weights: FloatArray,
    variance: FloatArray,
    grid: WindowGrid,
    config: CycleConfig | None = None,
) -> FloatArray:
    """Return each series' daily cycle around its level, carried on beyond the history: (series, windows).

    Args:
        values: (series, history); what has weight 0 is not looked at.
        weights: (history,) or (series, history): a point's variance is ``variance`` / weight.
        variance: (series,) of a point of weight 1.
        grid: Of the values, and how far to carry the cycle on, the history included.
        config: Settings.

    Returns:
        What to subtract from a value; 0 for series without a significant cycle, and for all where the
        history is too short or too coarse, or a day is no whole number of points.
    """
    config = config or CycleConfig()
    cycle = np.zeros((len(values), grid.windows))
    day = round(DAY_S / grid.resolution_s)
    days = values.shape[1] // max(day, 1)
    uneven = abs(day * grid.resolution_s - DAY_S) > 1e-6
    if uneven or day < config.min_points or days < config.min_days or not len(values):
        return cycle
    newest = slice(values.shape[1] - days * day, values.shape[1])
    known = np.atleast_2d(weights > 0)[:, newest].reshape(-1, days, day)  # one row if all have the same
    by_day = np.where(known, values[:, newest].reshape(len(values), days, day), 0.0)
    points = known.sum(axis=2)
    means = by_day.sum(axis=2) / np.maximum(points, 1)
    by_day = np.where(known, by_day - means[:, :, None], 0.0)
    angles = 2 * np.pi * (grid.times() % DAY_S) / DAY_S
    waves = np.stack(
        [wave(k * angles) for k in range(1, config.harmonics + 1) for wave in (np.sin, np.cos)], axis=1
    )
    # Waves of a whole day are orthogonal: projections are the least squares fit.
    # Those of a day with gaps fall short by the share that is missing.
    daily = by_day @ (waves[newest][:day] * 2.0) / np.maximum(points, 1)[:, :, None]
    waves_of_rows = _common(daily, points >= day / 2, variance, weights, config, day)
    cyclic = np.flatnonzero(waves_of_rows.any(axis=1))
    cycle[cyclic] = waves_of_rows[cyclic] @ waves.T
    return cycle


def _common(
    daily: FloatArray,
    enough: np.ndarray,
    variance: FloatArray,
    weights: FloatArray,
    config: CycleConfig,
    day: int,
) -> FloatArray:
    """Return the coefficients that most days share, 0 where they are not significant: (series, waves)."""
    days, terms = daily.shape[1:]
    # A day with gaps has a distorted wave; it stands in with the middle of the others.
    daily = np.where(enough[:, :, None], daily, np.median(daily, axis=1, keepdims=True))
    cut = int(config.trimmed * days)
    ordered = np.sort(daily, axis=1)[:, cut : days - cut]
    common: FloatArray = ordered.mean(axis=1)
    spread = np.median(np.abs(daily - np.median(daily, axis=1, keepdims=True)), axis=1) * MAD_TO_DEVIATION
    weight = np.where(weights > 0, weights, 0.0).sum(axis=-1) / np.maximum((weights > 0).sum(axis=-1), 1)
    sampling = variance / np.maximum(weight, 1e-300) * 2 / (day * days)
    power = (common**2).sum(axis=1)
    significant = power > special.chdtri(terms, config.significance) * sampling
    differing = (spread**2).mean(axis=1) / days
    consistent = power > terms * special.fdtri(terms, days - 1, 1 - config.consistency) * differing
    return np.where((significant & consistent)[:, None], common, 0.0)
