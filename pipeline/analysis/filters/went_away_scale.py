"""Scale of the went-away predicate: levels, noise and the length of a block (FBDetect §5.4.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.analysis.statistics.blocks import (
    RunningSums,
    mean_between,
    means_at,
    moving_starts,
    sum_between,
)
from pipeline.analysis.statistics.robust import quantile_deviations, row_quantiles
from pipeline.model import FloatArray, IntArray

_FEW_STEPS = 8
"""Differences from which a deviation can be estimated."""


@dataclass(frozen=True, slots=True)
class WentAwayConfig:
    """Settings of the predicate."""

    buckets: int = 20  # N, §5.4.3
    valid_share: float = 0.03  # X, §5.4.3
    most: float = 0.5  # "most letters", §5.4.3
    after_quantile: float = 0.90  # §5.4.3
    historical_quantile: float = 0.95  # §5.4.3
    previous_day_quantile: float = 0.90  # §5.4.3
    coefficient: float = 1.5  # §5.4.3
    normality: float = 1.4826  # §5.4.3: a median absolute deviation as a standard deviation
    trend_significance: float = 0.05  # of the Mann-Kendall test, one-sided; the usual level
    gone_significance: float = 0.05  # a lasting change taken for gone, which the next scan looks at again
    glitch: int = 2  # windows that must not decide about a return: two points fit nearly any level
    letter_certainty: float = 0.975  # of each letter after a change that the block size is chosen for
    min_blocks: int = 3  # after the change: "most" of fewer is one or all
    trend_points: int = 32  # on either side of the change; more cost their square and show no more


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows turned so that a rise is the regression, and where their windows are."""

    values: FloatArray  # (rows, windows)
    weights: FloatArray  # (rows, windows)
    change: IntArray  # (rows,)
    history: IntArray  # (rows,) where the historical window ends
    extended: int  # the extended window begins
    is_extended: bool  # whether there is one, with data or without
    day: int  # windows of a day, since there is data

    @property
    def end(self) -> IntArray:
        """(rows,) where the series ends."""
        return np.full(len(self.values), self.values.shape[1])

    @property
    def after(self) -> IntArray:
        """(rows,) windows after the change."""
        return self.end - self.change


@dataclass(frozen=True, slots=True)
class Level:
    """The change and the noise of each row."""

    before: FloatArray
    delta: FloatArray
    error: FloatArray  # standard error of delta
    noise: FloatArray  # of one window, by the means of blocks: what neighbours share is in it
    block: IntArray  # windows a block


def measure(frame: Frame, sums: RunningSums, config: WentAwayConfig) -> Level:
    """Measure the change and its noise, and choose the blocks that distinguish one from the other."""
    white = _white_noise(frame)
    longest = np.maximum(np.minimum(frame.after, frame.history) // config.min_blocks, 1)
    span = np.maximum(frame.day, frame.after)
    end = np.maximum(frame.extended, frame.change + 1)
    level_after = mean_between(sums, frame.change, end)
    level_after = np.where(np.isnan(level_after), mean_between(sums, frame.change, frame.end), level_after)

    def before(block: IntArray) -> FloatArray:
        starts = moving_starts(np.maximum(frame.change - span, 0), frame.change, block)
        level: FloatArray = row_quantiles(means_at(sums, starts, block), (0.5,))[0]
        return level

    # The longest blocks give a first idea of the change, also where most windows count nothing at all.
    delta = level_after - before(longest)
    ratio = np.divide(white, delta, out=np.full_like(white, np.inf), where=delta > 0)
    needed = (letters_apart(config) * ratio) ** 2
    block = np.clip(np.ceil(np.minimum(needed, longest)), 1, longest).astype(np.int64)
    noise: FloatArray = np.fmax(white, _shared_noise(frame, sums, block))
    usual = before(block)
    baseline = np.fmax(usual, _risen(frame, usual, noise, config))
    points = np.maximum(sum_between(sums.has_data, frame.change, end), 1)
    return Level(baseline, level_after - baseline, noise / np.sqrt(points), noise, block)


def _risen(frame: Frame, usual: FloatArray, noise: FloatArray, config: WentAwayConfig) -> FloatArray:
    """Return (rows,) the level just before the change if it had risen before that for long; else NaN.

    What rose within the day before stands where it rose to: back there is back. For long means in either half
    of as much time as follows the change, since a spike there is no level.
    """
    half = np.maximum(frame.after // 2, 1)
    recent = np.full(len(half), np.inf)
    for start, end in ((frame.change - 2 * half, frame.change - half), (frame.change - half, frame.change)):
        positions = np.maximum(start, 0)[:, None] + np.arange(int(half.max()))
        inside = (positions < end[:, None]) & (start[:, None] >= 0)
        taken = np.take_along_axis(frame.values, np.minimum(positions, frame.values.shape[1] - 1), 1)
        recent = np.minimum(recent, row_quantiles(np.where(inside, taken, np.nan), (0.5,))[0])
    error = noise * np.sqrt(1 / half + 1 / np.maximum(frame.day, frame.after))
    risen: FloatArray = np.where(recent - usual > letters_apart(config) * error, recent, np.nan)
    return risen


def _white_noise(frame: Frame) -> FloatArray:
    """Return (rows,) deviations of one window from its neighbours."""
    columns = np.arange(1, frame.values.shape[1])
    steps = np.diff(frame.values, axis=1)
    change = frame.change[:, None]
    old = quantile_deviations(np.where(columns < change, steps, np.nan))
    new = np.where(columns > change, steps, np.nan)[:, int(frame.change.min()) :]
    # A level that rose from nearly nothing has most of its noise behind the change; few points show nothing.
    enough = (~np.isnan(new)).sum(axis=1) >= _FEW_STEPS
    larger: FloatArray = np.fmax(old, np.where(enough, quantile_deviations(new), 0.0))
    return larger / math.sqrt(2)


def _shared_noise(frame: Frame, sums: RunningSums, block: IntArray) -> FloatArray:
    """Return (rows,) deviations of a window from those of neighbouring blocks, with autocorrelation."""
    means = means_at(sums, moving_starts(np.zeros_like(block), frame.history, block), block)
    columns = np.arange(means.shape[1]) + block[:, None]
    following = np.take_along_axis(means, np.minimum(columns, means.shape[1] - 1), 1)
    steps = np.where(columns < means.shape[1], following - means, np.nan)
    deviation: FloatArray = quantile_deviations(steps) * np.sqrt(block / 2)
    return deviation


def letters_apart(config: WentAwayConfig) -> float:
    """Return the deviations of a block that distinguish a letter from the history's valid letters."""
    return float(special.ndtri(config.letter_certainty) - special.ndtri(config.valid_share))
