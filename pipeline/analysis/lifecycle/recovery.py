"""Recovery: the return of a series to the level before a regression, and the time of its drop.

In the paper a regression's task is tagged FIXED once a revert or a revised change goes with it, and RESOLVED
where the regression is gone and nobody knows why (FBDetect §5.5.2, AutoLabeler); how either is found out is
not said. Here the series decides: a regression is *resolved* when its series has returned to the level before
it and stayed there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from pipeline.model import FloatArray
from pipeline.model.units import DAY_S, WEEK_S

ReturnCode = Literal[
    "returned", "too_little_data", "below_all", "above_middle", "too_noisy", "not_throughout"
]
"""Why a series counts as returned, or does not: there is too little data; it is far beyond the level
before; nearer to the level of the regression; too noisy to distinguish them; or not for all of the span."""


@dataclass(frozen=True, slots=True)
class ReturnConfig:
    """Criteria of a return. Shares are 1 at the level after a regression, 0 at the level before it."""

    remaining: float = 0.5  # nearer to the level before than to the one after, as in §5.4.3
    lowest: float = -1.0  # as far below the level before as the regression lay above: another cause
    drop: float = 0.5  # share of the regression that must have gone at one time
    level: float = (
        0.00135  # one-sided chance of calling a level below the bound that is not: 3 standard errors
    )
    blocks: int = 10  # blocks of consecutive windows: the spread of their means gives the standard error
    parts: int = 3  # the return must hold in each third of the span
    min_known: float = 0.5  # share of the span's windows that must have data: missing data is no return


@dataclass(frozen=True, slots=True)
class Return:
    """Return of a series: ``statistic`` is below ``bound``, unless ``code`` gives a reason against it."""

    code: ReturnCode
    level: float  # of the span, in the series' own unit; NaN without data
    share_remaining: float
    statistic: float  # upper confidence bound of the share that remains
    bound: float

    @property
    def returned(self) -> bool:
        """Whether the series has returned."""
        return self.code == "returned"


def judge_returned(
    values: FloatArray,
    weights: FloatArray,
    *,
    before: float,
    after: float,
    expected: FloatArray | None = None,
    config: ReturnConfig | None = None,
) -> Return:
    """Judge whether a series has returned to the level before a regression, for all of a span.

    The mean over the span must lie below the middle between both levels by three standard errors (Student's
    t over block means, so that neither over-dispersed counts nor autocorrelation pass for certainty), and
    each third of the span must lie below the middle. The one window that speaks most for the regression is
    left out everywhere, so that one odd window cannot hold an end back.

    A level is only comparable at the same time of the day and of the week. ``expected`` is the course of the
    same span as it was before the regression, a whole number of periods earlier. The same criteria must hold
    relative to it, and the spread is then the smaller of both, since season is no uncertainty.

    Args:
        values: (windows,) of the span; NaN where the weight is 0.
        weights: (windows,).
        before: Level before the regression, as reported.
        after: Level after it, as reported.
        expected: (windows,) the course before the regression, NaN where unknown; None if there is none.
        config: Settings.
    """
    config = config or ReturnConfig()
    bound = config.remaining
    measured = weights > 0
    if after == before or measured.sum() < max(config.min_known * len(values), 2 * config.parts):
        return Return("too_little_data", float("nan"), 1.0, 1.0, bound)
    level = float(np.average(values[measured], weights=weights[measured]))
    plain = _Share((values - before) / (after - before), np.where(measured, weights, 0.0))
    share = (level - before) / (after - before)
    shares = [plain.without_extreme()]
    if share < config.lowest and level != 0:  # a subroutine that disappeared took its cost along
        return Return("below_all", level, share, share, config.lowest)
    if shares[0].mean() >= bound:
        return Return("above_middle", level, share, shares[0].mean(), bound)
    if expected is not None and (paired := measured & np.isfinite(expected)).sum() >= 2 * config.parts:
        course = (values - np.where(paired, expected, 0.0)) / (after - before)
        shares.append(_Share(course, np.where(paired, weights, 0.0)).without_extreme())
    error = min(share.standard_error(config.blocks) for share in shares)
    blocks = min(config.blocks, int(measured.sum()) // 2)
    upper = shares[0].mean() + float(-special.stdtrit(blocks - 1, config.level)) * error
    worst = max(shares[-1].mean(), *shares[-1].part_means(config.parts))
    code: ReturnCode = "returned"
    if upper >= bound:
        code = "too_noisy"
    elif worst >= bound:
        code = "not_throughout"
    return Return(code, level, share, upper, bound)


@dataclass(frozen=True, slots=True)
class _Share:
    """Share of a regression that remains, by window."""

    values: FloatArray  # (windows,)
    weights: FloatArray  # (windows,); 0 where nothing is known

    def mean(self) -> float:
        """Return the weighted mean; missing data counts as no return."""
        measured = self.weights > 0
        return (
            float(np.average(self.values[measured], weights=self.weights[measured]))
            if measured.any()
            else 1.0
        )

    def part_means(self, parts: int) -> list[float]:
        """Return the means of consecutive parts, without parts that have no data."""
        pieces = np.array_split(np.arange(len(self.values)), parts)
        cut = [_Share(self.values[piece], self.weights[piece]) for piece in pieces]
        return [share.mean() for share in cut if (share.weights > 0).any()]

    def standard_error(self, blocks: int) -> float:
        """Return the standard error of the mean from the spread of block means."""
        rows = np.flatnonzero(self.weights > 0)
        blocks = min(blocks, len(rows) // 2)
        if blocks < 2:
            return float("inf")
        means = [_Share(self.values[b], self.weights[b]).mean() for b in np.array_split(rows, blocks)]
        return float(np.std(means, ddof=1) / np.sqrt(blocks))

    def without_extreme(self) -> _Share:
        """Leave out the window with the strongest evidence for the regression."""
        measured = self.weights > 0
        extreme = int(np.argmax(np.where(measured, self.values, -np.inf)))
        weights = self.weights.copy()
        weights[extreme] = 0.0
        return _Share(self.values, weights)


def find_drop(values: FloatArray, weights: FloatArray, *, span: int) -> tuple[int, float]:
    """Find the largest drop of a series: the mean of a span before it against that of a span after it.

    A level can also slide back by itself: a share of the CPU shrinks while the rest of the service grows.
    What was fixed, rolled back or went away falls within hours.

    Args:
        values: (windows,) from the regression's change point to now; NaN where the weight is 0. A series
            whose regression is a fall comes with its sign turned.
        weights: (windows,).
        span: Windows that are compared on either side; fewer next to the change point and to the end.

    Returns:
        The first window after the drop, at least half a span before the end, and the size of the drop; a size
        of 0 if there is no such window.
    """
    positions = np.arange(1, len(values) - span // 2 + 1)
    measured = weights > 0
    mass = np.concatenate([[0.0], np.cumsum(np.where(measured, weights, 0.0))])
    moment = np.concatenate([[0.0], np.cumsum(np.where(measured, values, 0.0) * weights)])
    first, last = np.maximum(positions - span, 0), np.minimum(positions + span, len(values))
    left, right = mass[positions] - mass[first], mass[last] - mass[positions]
    usable = (left > 0) & (right > 0)
    if not usable.any():
        return 0, 0.0
    left, right = np.where(usable, left, 1.0), np.where(usable, right, 1.0)
    drop = (moment[positions] - moment[first]) / left - (moment[last] - moment[positions]) / right
    # In units of its own error, up to a factor: sides may differ in length.
    clear = np.where(usable, drop * np.sqrt(left * right / (left + right)), -np.inf)
    best = int(clear.argmax())
    return int(positions[best]), float(drop[best])


def span_s(scan_s: float, historical_s: float) -> float:
    """Return the span over which a return must hold: that of a rise, in whole days.

    The level of a part of a day says little about a series that rises and falls with the load. A workload
    whose history is shorter than two days sees no such course, and needs no whole day.
    """
    return float(np.ceil(scan_s / DAY_S) * DAY_S) if historical_s >= 2 * DAY_S else scan_s


def reference_shift_s(span_start: float, end: float, change_time: float, earliest: float) -> float | None:
    """Return the shift that puts a span wholly before a regression.

    Whole weeks if there is data that far back, else whole days; None if there is neither.

    Args:
        span_start: Start of the span, epoch seconds.
        end: End of the span.
        change_time: Start of the regression.
        earliest: How far back there may be data.
    """
    for period_s in (WEEK_S, DAY_S):
        shift_s = float(np.ceil((end - change_time) / period_s) * period_s)
        if span_start - shift_s >= earliest:
            return shift_s
    return None
