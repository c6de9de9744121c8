"""Changes of benchmarks: change points of their series, and the commits at which each may lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from agents.experiments.benchmarks.series import BenchmarkSeries
from agents.experiments.benchmarks.units import Better
from pipeline.analysis.detect.change_interval import likeliest, posterior, split_profile
from pipeline.analysis.detect.offline.segment import LevelShift, SegmentConfig, segment
from pipeline.experiments.bisection import suspect_range
from pipeline.model import FloatArray

_MOST_CORRELATED = 0.9
"""Largest autocorrelation (lag 1) that is used: few points estimate it badly."""


_ZERO = 1e-12
"""Share of the largest value below which a level is the rounding of 0."""

LEAST_COMMITS = 2 * SegmentConfig().min_points
"""Fewest measured commits in which a change is seen."""


@dataclass(frozen=True, slots=True)
class BenchmarkChange:
    """One change of one benchmark.

    Args:
        series: The benchmark.
        index: The commit with which the new level most likely begins.
        first: The last commit that certainly has the old level; the change lies after it.
        last: The first commit that certainly has the new level.
        before: The level before, up to the change before.
        after: The level after, up to the next change.
        p_value: Adjusted for all benchmarks (Benjamini and Hochberg 1995).
        posterior: (commits,) probability that each measured commit begins the new level; 0 of others.
        suspected: The last commit of the old level and the first of the new one by percentiles (FBDetect
            §6.2), widened so that ``first`` and ``last`` lie within: in a slow rise some commits have points
            between both levels.
    """

    series: BenchmarkSeries
    index: int
    first: int
    last: int
    before: float
    after: float
    p_value: float
    posterior: FloatArray
    suspected: tuple[int, int]

    @property
    def relative(self) -> float:
        """Change of the level, as a ratio to the level before; infinite if that is 0."""
        return (self.after - self.before) / self.before if self.before else float("inf")

    @property
    def worse(self) -> bool:
        """True if the change is a regression."""
        return (self.after < self.before) == (self.series.better is Better.HIGHER)


def newest_seen(series: Sequence[BenchmarkSeries]) -> int:
    """Return how many measured commits a change must have behind it to be seen, its own among them."""
    return SegmentConfig().shortest_level(max((len(item.levels) for item in series), default=0))


def is_long(series: BenchmarkSeries) -> bool:
    """True if a benchmark was measured at enough commits to see a change."""
    return int(np.count_nonzero(~np.isnan(series.levels))) >= LEAST_COMMITS


def is_judged(series: BenchmarkSeries) -> bool:
    """True if a benchmark was measured at enough commits, and it is known in which direction it improves."""
    return is_long(series) and series.better is not Better.UNKNOWN


def find_changes(
    series: Sequence[BenchmarkSeries],
    *,
    alpha: float = 0.05,
    threshold: float = 0.0,
    confidence: float = 0.95,
) -> list[BenchmarkChange]:
    """Return the changes of the benchmarks that are judged, by commit, largest first.

    Controls the false discovery rate at ``alpha``, since a suite tests many benchmarks.

    Args:
        series: All benchmarks over the same commits.
        alpha: False discovery rate.
        threshold: Relative change that matters.
        confidence: Probability that the change lies between its first and last commit.
    """
    shifts = [(item, segment(item.levels)) for item in series if is_judged(item)]
    p_values = [shift.p_value for _, shifts_found in shifts for shift in shifts_found]
    without = sum(not shifts_found for _, shifts_found in shifts)
    adjusted = iter(stats.false_discovery_control(p_values + [1.0] * without).tolist() if p_values else ())
    changes = [
        _change(item, shifts_found, number, next(adjusted), confidence)
        for item, shifts_found in shifts
        for number in range(len(shifts_found))
    ]
    significant = [item for item in changes if item.p_value <= alpha and abs(item.relative) >= threshold]
    return sorted(significant, key=lambda item: (item.index, -abs(item.relative), item.series.name))


def _change(
    series: BenchmarkSeries, shifts: Sequence[LevelShift], number: int, p_value: float, confidence: float
) -> BenchmarkChange:
    shift = shifts[number]
    begin = shifts[number - 1].index if number else 0
    end = shifts[number + 1].index if number + 1 < len(shifts) else len(series.levels)
    measured = begin + np.flatnonzero(~np.isnan(series.levels[begin:end]))
    values = series.levels[measured]
    split = int(np.searchsorted(measured, shift.index))
    noise = _noise(values, split)
    # A change lies between two commits; the posterior says which commit begins the new level.
    allowed = np.ones(len(values) - 1, dtype=np.bool_)
    profile = split_profile(values, np.ones(len(values)), allowed, "values", first=1)
    mass = posterior(profile.deviance, *noise)
    likely = 1 + likeliest(mass, confidence)
    first, last = min(int(likely.min()), split) - 1, max(int(likely.max()), split)
    of_commits = np.zeros(len(series.levels))
    of_commits[measured[1:]] = mass
    old, new = suspect_range(values, split, up=shift.after > shift.before)
    before, after = (
        level if abs(level) > _ZERO * values.max() else 0.0 for level in (shift.before, shift.after)
    )
    return BenchmarkChange(
        series,
        shift.index,
        int(measured[first]),
        int(measured[last]),
        before,
        after,
        p_value,
        of_commits,
        (int(measured[min(first, old)]), int(measured[max(last, new)])),
    )


def _noise(values: FloatArray, split: int) -> tuple[float, float]:
    """Return the long-run variance around both levels, assuming AR(1) noise, and its degrees of freedom."""
    left = np.concatenate([part - np.median(part) for part in (values[:split], values[split:])])
    spread = float(np.median(np.abs(left))) * 1.4826
    if not spread:
        spread = float(left.std())
    clipped = np.clip(left, -3 * spread, 3 * spread)
    squares = float((clipped**2).sum())
    follows = float((clipped[1:] * clipped[:-1]).sum()) / squares if squares else 0.0
    correlation = min(max(follows, 0.0), _MOST_CORRELATED)
    degrees = max(len(values) - 2, 1)
    variance = squares / degrees * (1 + correlation) / (1 - correlation)
    return max(variance, 1e-18 * float(np.square(values).max())), float(degrees)
