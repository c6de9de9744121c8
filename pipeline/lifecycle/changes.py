"""What becomes of a regression after it was reported: has it gone, has it grown?

In the paper a regression's task is tagged FIXED once a revert or a revised change goes with it, and RESOLVED
where the regression is gone and nobody knows why (FBDetect §5.5.2, AutoLabeler); how either is found out is
not said. Here the series tells: a regression is *resolved* when its series has returned to the level before
it and stayed there, and *updated* when the level goes further beyond.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import special

from pipeline.detect.seasonal.daily import DAY_S
from pipeline.model import Candidate, Change, FloatArray

WEEK_S = 7 * DAY_S


UpdateKind = Literal["updated", "resolved"]

Series = tuple[str, str]
"""Kind and name of a series."""


@dataclass(frozen=True, slots=True)
class OpenRegression:
    """A regression that was reported and has not been resolved since."""

    id: str
    candidate: Candidate  # as it was reported, with its group
    told: Mapping[Series, float] = field(default_factory=dict)  # levels that later updates told

    def member(self, series: Series) -> Candidate | None:
        """Return what was reported of one of its series; None if it is none of them."""
        every = (self.candidate, *self.candidate.group)
        return next((c for c in every if (c.metric_kind, c.metric) == series), None)

    def last_level(self, series: Series) -> float | None:
        """Return the level of one of its series that was told last."""
        member = self.member(series)
        return self.told.get(series, member.after) if member else None


@dataclass(frozen=True, slots=True)
class Update:
    """What has become of a regression, as one scan found it."""

    kind: UpdateKind
    regression: OpenRegression
    service: str
    workload: str
    time: float  # end of the scan, epoch seconds
    change_time: float  # when the series grew or returned
    level: float  # of the regression's own metric now
    grown: Candidate | None = None  # updated: the series that grew; ``before`` is the level told last
    joined: tuple[Candidate, ...] = ()  # updated: series that rise with it, found by this scan
    changes: tuple[Change, ...] = ()  # resolved: what may have fixed it, the latest first

    @property
    def share_remaining(self) -> float:
        """How much of the regression there is now: 1 as it was reported, 0 at the level before it."""
        reported = self.regression.candidate
        return (self.level - reported.before) / reported.delta if reported.delta else 1.0


@dataclass(frozen=True, slots=True)
class ReturnConfig:
    """When a series counts as returned. A share is 1 at the level after it, 0 at the one before it."""

    remaining: float = 0.5  # nearer to the level before than to the one after, as in §5.4.3
    lowest: float = -1.0  # as far below the level before as the regression lay above: something else moved it
    drop: float = 0.5  # of the regression that must have gone at one time
    level: float = (
        0.00135  # one-sided chance of calling a level below the bound that is not: 3 standard errors
    )
    blocks: int = 10  # of consecutive windows, whose means' spread gives the standard error
    parts: int = 3  # the return must hold in each third of the span
    min_known: float = 0.5  # share of the span's windows that must have data: no data is no return


@dataclass(frozen=True, slots=True)
class Return:
    """Whether a series has returned. ``statistic`` below ``bound`` says so, unless ``reason`` objects."""

    returned: bool
    level: float  # of the span, in the series' own unit; NaN without data
    share_remaining: float
    statistic: float  # the share that remains, at the upper end of its uncertainty
    bound: float
    reason: str = ""


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

    A level is only comparable at the same time of the day and of the week. ``expected`` is the course of
    the same span as it was before the regression, a whole number of periods earlier. What it tells is asked
    for as well, and the spread is then the smaller of both, since season is no uncertainty.

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
    known = weights > 0
    if after == before or known.sum() < max(config.min_known * len(values), 2 * config.parts):
        return Return(False, float("nan"), 1.0, 1.0, bound, "too little data to tell")
    level = float(np.average(values[known], weights=weights[known]))
    plain = _Share((values - before) / (after - before), np.where(known, weights, 0.0))
    share = (level - before) / (after - before)
    shares = [plain.without_extreme()]
    if share < config.lowest and level != 0:  # a subroutine that has gone altogether took its cost along
        return Return(False, level, share, share, config.lowest, "far beyond the level before")
    if shares[0].mean() >= bound:
        return Return(False, level, share, shares[0].mean(), bound, "nearer to the level of the regression")
    if expected is not None and (paired := known & np.isfinite(expected)).sum() >= 2 * config.parts:
        course = (values - np.where(paired, expected, 0.0)) / (after - before)
        shares.append(_Share(course, np.where(paired, weights, 0.0)).without_extreme())
    error = min(share.standard_error(config.blocks) for share in shares)
    blocks = min(config.blocks, int(known.sum()) // 2)
    upper = shares[0].mean() + float(-special.stdtrit(blocks - 1, config.level)) * error
    worst = max(shares[-1].mean(), *shares[-1].part_means(config.parts))
    reason = ""
    if upper >= bound:
        reason = "too noisy to tell from the level of the regression"
    elif worst >= bound:
        reason = "not throughout the span, compared with the same time before the regression"
    return Return(not reason, level, share, upper, bound, reason)


@dataclass(frozen=True, slots=True)
class _Share:
    """How much of a regression remains, by window."""

    values: FloatArray  # (windows,)
    weights: FloatArray  # (windows,); 0 where nothing is known

    def mean(self) -> float:
        """Return the weighted mean; no data is no return."""
        known = self.weights > 0
        return float(np.average(self.values[known], weights=self.weights[known])) if known.any() else 1.0

    def part_means(self, parts: int) -> list[float]:
        """Return the means of consecutive parts, those without data left out."""
        pieces = np.array_split(np.arange(len(self.values)), parts)
        cut = [_Share(self.values[piece], self.weights[piece]) for piece in pieces]
        return [share.mean() for share in cut if (share.weights > 0).any()]

    def standard_error(self, blocks: int) -> float:
        """Return the standard error of the mean from the spread of block means."""
        known = np.flatnonzero(self.weights > 0)
        blocks = min(blocks, len(known) // 2)
        if blocks < 2:
            return float("inf")
        means = [_Share(self.values[b], self.weights[b]).mean() for b in np.array_split(known, blocks)]
        return float(np.std(means, ddof=1) / np.sqrt(blocks))

    def without_extreme(self) -> _Share:
        """Leave out the window that speaks most for the regression."""
        known = self.weights > 0
        extreme = int(np.argmax(np.where(known, self.values, -np.inf)))
        weights = self.weights.copy()
        weights[extreme] = 0.0
        return _Share(self.values, weights)


def find_drop(values: FloatArray, weights: FloatArray, *, span: int) -> tuple[int, float]:
    """Find where a series fell most: the mean of a span up to there against that of a span from there on.

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
    places = np.arange(1, len(values) - span // 2 + 1)
    known = weights > 0
    mass = np.concatenate([[0.0], np.cumsum(np.where(known, weights, 0.0))])
    moment = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0) * weights)])
    first, last = np.maximum(places - span, 0), np.minimum(places + span, len(values))
    left, right = mass[places] - mass[first], mass[last] - mass[places]
    usable = (left > 0) & (right > 0)
    if not usable.any():
        return 0, 0.0
    left, right = np.where(usable, left, 1.0), np.where(usable, right, 1.0)
    drop = (moment[places] - moment[first]) / left - (moment[last] - moment[places]) / right
    # In units of its own error, up to a factor: not all sides are equally long.
    clear = np.where(usable, drop * np.sqrt(left * right / (left + right)), -np.inf)
    best = int(clear.argmax())
    return int(places[best]), float(drop[best])


def fixing_changes(
    changes: tuple[Change, ...], series: frozenset[str], *, most: int = 3
) -> tuple[Change, ...]:
    """Return the changes that may have ended a regression, the latest first.

    Only those that modify a subroutine of the regression: recency alone credits nobody.
    """
    credited = [change for change in changes if series & set(change.subroutines)]
    return tuple(sorted(credited, key=lambda change: (-change.time, change.id))[:most])


def has_grown(
    candidate: Candidate, *, before: float, told: float, absolute: float | None, relative: float | None
) -> bool:
    """Tell whether a level goes beyond the one that was told last, by enough to tell it again.

    Enough is the detection threshold at least, and half of all that was told of the regression so far: both
    levels are estimates, and what grows day after day should be told a few times, not with every scan.

    Args:
        candidate: A change point further up in the same series.
        before: The level of this series before the regression.
        told: The level that was told last.
        absolute: The workload's absolute threshold, or None.
        relative: The workload's relative threshold, or None.
    """
    threshold = absolute if absolute is not None else (relative or 0.0) * abs(told)
    sign = 1.0 if told > before else -1.0
    return sign * (candidate.after - told) >= max(threshold, abs(told - before) / 2) * (1 - 1e-9)


def span_s(scan_s: float, historical_s: float) -> float:
    """Return over which time a return must hold: as long as a rise is looked at, in whole days.

    The level of a part of a day says little about a series that rises and falls with the load. A workload
    whose history is shorter than two days sees no such course, and needs no whole day.
    """
    return float(np.ceil(scan_s / DAY_S) * DAY_S) if historical_s >= 2 * DAY_S else scan_s


def reference_shift_s(span_start: float, end: float, change_time: float, earliest: float) -> float | None:
    """Return by how much to shift a span back so that it lies wholly before a regression.

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
