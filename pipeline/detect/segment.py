"""Every change point of one series, offline: optimal partitioning with robust noise and a test of each.

1. Outliers are clipped to three standard deviations around a running median of seven points, so that up to
   three odd points in a row pull no level (a majority of the window is needed to move it).
2. The noise is estimated from differences, which a few changes of level hardly touch: its size from
   neighbours, and its long-run variance, which decides how far the mean of a segment strays, from the lag-2
   differences of an AR(1) process (Chakar et al., Bernoulli 2017) and from means of blocks (Wu and Zhao,
   JRSSB 2007), whichever is larger.
3. Segments minimise the squared error plus 2 log(n) long-run variances a change: Schwarz's price for two
   parameters, a level and a place (Yao 1988). The minimum is exact (optimal partitioning).
4. From the least significant on, a change that does not reject "one level" at the significance level, with
   the search for its place accounted for (Šidák), is taken out and its neighbours are placed anew.

The settings are fixed: offline a person looks at the result, and a tuned one cannot be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage, stats

from pipeline.model import FloatArray

_NEARBY = 30
"""Points on either side of a change that tell how noisy the series is just there."""


@dataclass(frozen=True, slots=True)
class SegmentConfig:
    """Settings of the segmentation; the command line does not offer them."""

    significance: float = 0.001  # of each change point, the search for its place included
    min_points: int = 4  # of a segment: fewer may be outliers
    penalty: float = 2.0  # times log(points): the price of a change in long-run variances
    outlier: float = 3.0  # standard deviations around the running median
    max_places: int = 3000  # beyond so many points, changes are first looked for on a coarser grid


@dataclass(frozen=True, slots=True)
class LevelShift:
    """One change of level: ``index`` is the first point of the new regime, levels are up to the next one."""

    index: int
    before: float
    after: float
    p_value: float


@dataclass(frozen=True, slots=True)
class _Noise:
    variance: float
    inflation: float  # long-run variance / variance, at least 1


def segment(values: FloatArray, *, config: SegmentConfig | None = None) -> tuple[LevelShift, ...]:
    """Find every change of level of a series, up or down, in order.

    Args:
        values: (points,) finite, equally spaced or nearly so.
        config: Settings.
    """
    config = config or SegmentConfig()
    spread = float(np.ptp(values)) if len(values) else 0.0
    if len(values) < 2 * config.min_points or spread <= 0 or not np.isfinite(spread):
        return ()
    scaled = (values - np.median(values)) / spread  # so that no unit and no offset changes a digit
    variance = _scale(np.diff(scaled)) ** 2 / 2
    clean = _clip_outliers(scaled, np.sqrt(variance), config.outlier)
    noise = _Noise(variance, _inflation(clean, variance))
    running = np.concatenate([[0.0], np.cumsum(clean)])
    changes = _partition(running, config, noise)
    changes = _place_anew(running, changes, config)
    changes = _keep_significant(clean, running, changes, config, noise)
    bounds = [0, *changes, len(values)]
    levels = [
        float(np.median(values)) + spread * _mean(running, a, b)
        for a, b in zip(bounds, bounds[1:], strict=False)
    ]
    return tuple(
        LevelShift(
            index, levels[i], levels[i + 1], _p_value(clean, bounds[i], index, bounds[i + 2], noise, config)
        )
        for i, index in enumerate(changes)
    )


def _scale(differences: FloatArray) -> float:
    """Return the standard deviation of most differences: the larger of two quantiles' estimates.

    The median alone is 0 where most values repeat, as with counts; then the upper quantile speaks, and at
    last the plain deviation.
    """
    size = np.abs(differences)
    median, upper = np.quantile(size, [0.5, 0.8])
    robust = max(float(median) / 0.6745, float(upper) / 1.2816)
    return robust if robust > 0 else float(np.sqrt(np.mean(size**2)))


def _clip_outliers(values: FloatArray, deviation: float, bound: float) -> FloatArray:
    middle = ndimage.median_filter(values, size=7, mode="reflect")
    clipped: FloatArray = np.clip(values, middle - bound * deviation, middle + bound * deviation)
    return clipped


def _inflation(values: FloatArray, variance: float) -> float:
    """Return how much autocorrelation inflates the variance of a long mean."""
    one, two = (_scale(values[lag:] - values[:-lag]) ** 2 for lag in (1, 2))
    correlation = min(max(two / one - 1, 0.0), 0.9) if one > 0 else 0.0
    found = [1.0, (1 + correlation) / (1 - correlation)]
    width = 4
    while len(values) // width >= 24:
        blocks = values[: len(values) // width * width].reshape(-1, width).mean(axis=1)
        middle = float(np.median(np.abs(np.diff(blocks)))) / 0.6745
        found.append(width * middle**2 / 2 / variance)
        width *= 2
    return max(found)


def _partition(running: FloatArray, config: SegmentConfig, noise: _Noise) -> list[int]:
    """Return the changes whose segments have the least squared error plus penalties."""
    points = len(running) - 1
    step = max(1, -(-points // config.max_places))
    places = np.append(np.arange(0, points, step), points)
    apart = -(-config.min_points // step)
    sums = running[places]
    price = config.penalty * np.log(points) * noise.variance * noise.inflation
    # The squares are the same for every partition: gain is what segments' means explain, less the prices.
    best = np.full(len(places), -np.inf)
    best[0] = 0.0
    last = np.zeros(len(places), dtype=np.int64)
    for end in range(apart, len(places)):
        starts = slice(0, end - apart + 1)
        explained = (sums[end] - sums[starts]) ** 2 / (places[end] - places[starts])
        gain = best[starts] + explained
        last[end] = int(np.argmax(gain))
        best[end] = gain[last[end]] - price
    changes = []
    at = int(last[-1])
    while at > 0:
        changes.append(int(places[at]))
        at = int(last[at])
    return changes[::-1]


def _place_anew(running: FloatArray, changes: list[int], config: SegmentConfig) -> list[int]:
    """Put each change where it explains most between its neighbours, until none moves."""
    changes = list(changes)
    for _ in range(5):
        before = list(changes)
        bounds = [0, *changes, len(running) - 1]
        for i in range(len(changes)):
            first, end = bounds[i], bounds[i + 2]
            at = np.arange(first + config.min_points, end - config.min_points + 1)
            if len(at):
                left = (running[at] - running[first]) ** 2 / (at - first)
                right = (running[end] - running[at]) ** 2 / (end - at)
                bounds[i + 1] = int(at[np.argmax(left + right)])
        changes = bounds[1:-1]
        if changes == before:
            break
    return changes


def _keep_significant(
    values: FloatArray, running: FloatArray, changes: list[int], config: SegmentConfig, noise: _Noise
) -> list[int]:
    while changes:
        bounds = [0, *changes, len(values)]
        p_values = [
            _p_value(values, a, b, c, noise, config)
            for a, b, c in zip(bounds, bounds[1:], bounds[2:], strict=False)
        ]
        worst = int(np.argmax(p_values))
        if p_values[worst] < config.significance:
            break
        changes = _place_anew(running, changes[:worst] + changes[worst + 1 :], config)
    return changes


def _p_value(
    values: FloatArray, first: int, change: int, end: int, noise: _Noise, config: SegmentConfig
) -> float:
    """Return how often one level throughout [first, end) would show so large a step at its best place.

    Each side's own variance counts, drawn by five points' worth towards that of the points around (at least
    the series'): four points alone may lie close together by chance.
    """
    left, right = values[first:change], values[change:end]
    nearby = _scale(np.diff(values[max(0, change - _NEARBY) : change + _NEARBY])) ** 2 / 2
    around = max(noise.variance, nearby)
    error = noise.inflation * sum(_variance(side, around) / len(side) for side in (left, right))
    if error <= 0:
        return 0.0
    statistic = abs(float(right.mean() - left.mean())) / np.sqrt(error)
    single = float(2 * stats.t.sf(statistic, len(left) + len(right) - 2))
    splits = max(1, end - first - 2 * config.min_points + 1)
    return float(-np.expm1(splits * np.log1p(-single))) if single < 1 else 1.0


def _variance(side: FloatArray, around: float, worth: float = 5.0) -> float:
    squares = float(((side - side.mean()) ** 2).sum())
    return (squares + worth * around) / (len(side) - 1 + worth)


def _mean(running: FloatArray, first: int, end: int) -> float:
    return float(running[end] - running[first]) / (end - first)
