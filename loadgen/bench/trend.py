"""Trend of a series: the Theil-Sen slope of medians, with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from pipeline.model import FloatArray
from pipeline.model.units import HOUR_S


@dataclass(frozen=True, slots=True)
class TrendConfig:
    """Settings for judging a slope."""

    block_s: float = 60.0
    """Medians are taken over blocks: neighbouring samples are nearly the same and would count as many."""
    warm_up: float = 0.5
    """Share of the span, at its beginning, that is left out: what is kept for days of event time fills up."""
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Trend:
    """A slope per hour with its interval; ``flat`` unless all of the interval lies above the tolerance."""

    first: float
    last: float
    most: float
    slope: float
    low: float
    high: float
    tolerance: float
    flat: bool


def trend(
    seconds: FloatArray, values: FloatArray, *, tolerance: float, config: TrendConfig = TrendConfig()
) -> Trend:
    """Return the slope of a series per hour, with its interval.

    Args:
        seconds: (n,) time of each value, ascending.
        values: (n,) values, at least one.
        tolerance: Rise an hour that does not matter.
        config: Blocks, warm-up and confidence.
    """
    span_s = float(seconds[-1] - seconds[0])
    steady = seconds >= seconds[0] + config.warm_up * span_s
    block = ((seconds[steady] - seconds[0]) // config.block_s).astype(int)
    blocks = np.unique(block)
    medians = np.array([np.median(values[steady][block == number]) for number in blocks])
    most = float(values.max())
    if len(blocks) < 3:
        middle = float(medians[-1])
        return Trend(middle, middle, most, 0.0, -np.inf, np.inf, tolerance, flat=True)
    hours = blocks * config.block_s / HOUR_S
    slope, _, low, high = (float(x) for x in stats.theilslopes(medians, hours, config.confidence))
    first, last = float(medians[0]), float(medians[-1])
    return Trend(first, last, most, slope, low, high, tolerance, flat=low <= tolerance)
