"""Correction of a change by the change at the same time of the week before.

Ten days of history hold one earlier weekend, which is too little to decompose, but enough to compare with. A
level that rose by as much at the same hour of last week has not regressed. If the history is too short to
hold last week's change, last week's level must at least have been different. In the first week nothing can be
compared, since the first weekend looks like a change of everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from pipeline.analysis.detect.change_point import (
    Family,
    SideSums,
    both_sides,
    ratio,
    signed_roots,
    split_sums,
)
from pipeline.model import BoolArray, FloatArray, IntArray

SAME_DAYS = 2.0
"""A baseline of more days than these may hold a weekend of which a part of it holds none."""


@dataclass(frozen=True, slots=True)
class WeekSpan:
    """The compared and searched columns as indexes, (series,) each but the splits."""

    low: IntArray  # of the windows that are compared
    high: IntArray
    first: IntArray  # of each one's splits
    last: IntArray
    splits: IntArray  # (splits,) all that any of them asks for, none within the first week
    day: float  # windows


def beyond_last_week(
    plain: SideSums,
    series: tuple[FloatArray, FloatArray],
    earlier: tuple[FloatArray, FloatArray],
    deviation: FloatArray,
    family: Family,
    *,
    span: WeekSpan,
    doubt: float,
) -> tuple[FloatArray, SideSums]:
    """Return the roots of splits beyond the same splits a week earlier, and the sums with that change.

    Args:
        plain: What lies on both sides of the splits, (series, splits).
        series: What is observed and its exposure, 0 where there is no data: (series, windows) each.
        earlier: The same, of which last week is read.
        deviation: (series, 1) of noise.
        family: What is observed.
        span: What is compared and searched.
        doubt: See roots_against_week.
    """
    week = round(7 * span.day)
    begin, end = int(min(span.low.min(), span.splits[0])), int(span.high.max())
    before = slice(max(begin - week, 0), end - week)
    at = {
        "first": int(span.splits[0]) - week - before.start,
        "last": int(span.splits[-1]) - week - before.start,
    }
    index = np.arange(before.start, before.stop) + week
    within = (index >= span.low[:, None]) & (index < span.high[:, None])
    has_data = (earlier[1][:, before] > 0) & within
    whole_week = np.asarray((span.low >= week) & (has_data == within).all(axis=1))
    sums = [part[:, before] if within.all() else part[:, before] * within for part in earlier]
    week_ago = split_sums(sums[0], sums[1], **at)
    now, (observed, exposure) = slice(before.start + week, end), series
    complete = bool(whole_week.all())
    again = plain if complete else split_sums(observed[:, now] * has_data, exposure[:, now] * has_data, **at)
    left, right = both_sides(has_data.astype(np.float64), **at)
    half = right >= (span.high - span.last)[:, None] / 2
    older = left >= round(span.day) / 2
    whole = half & older
    against = partial(roots_against_week, week_ago=week_ago, again=again, deviation=deviation, family=family)
    roots, beyond = against(plain, whole=whole, half=half, older=older, doubt=doubt)
    partly = ~whole_week & (span.first - span.low > SAME_DAYS * span.day)
    if partly.any():
        # Of a baseline that may hold a weekend, last week's may hold but a day: only the same hours count.
        same_hours, _ = against(again, whole=whole, half=half, older=older, doubt=doubt)
        roots = np.where(whole & partly[:, None], _smaller_root(same_hours, roots), roots)
    return roots, beyond


def roots_against_week(
    sums: SideSums,
    week_ago: SideSums,
    again: SideSums,
    deviation: FloatArray,
    family: Family,
    *,
    whole: BoolArray,
    half: BoolArray,
    older: BoolArray,
    doubt: float = 2.0,
) -> tuple[FloatArray, SideSums]:
    """Return standardised roots of changes beyond last week's, and the sums with that change.

    Only what went the same way last week is taken out, and no more than there is: what changed then and does
    not do so again is no change of this week.

    Last week's change is noisy too; taking all of it out would make every comparison so. It is shrunk by the
    positive-part James-Stein factor 1 - doubt / z², z its own root: nothing of what may be chance, nearly all
    of what is certain.

    Args:
        sums: On both sides of each split, (series, splits).
        week_ago: The same, a week earlier.
        again: Those of this week's windows that have data a week earlier.
        deviation: (series, 1) of noise.
        family: What is observed.
        whole: (series, 1) whether there is enough data on both sides a week earlier.
        half: (series, 1) whether there is enough after the split.
        older: (series, 1) whether there is enough before it: if there is no more than that, a gap hides last
            week, and the change stands by itself. Without any of the three the root is 0.
        doubt: Squared roots below which a change counts for nothing.
    """
    way = np.sign(sums.right * sums.left_exposure - sums.left * sums.right_exposure)
    earlier = signed_roots(week_ago, family) / deviation
    same = whole & (np.sign(earlier) == way)
    lasting = np.where(same, np.maximum(0.0, 1 - doubt / np.maximum(earlier**2, 1e-300)), 0.0)
    lasting = lasting * _undone(sums, week_ago, family, way)
    beyond = _without(sums, week_ago, lasting, family)
    roots = signed_roots(beyond, family) / (deviation * np.sqrt(1 + lasting**2))
    roots = np.where(np.sign(roots) == way, roots, 0.0)
    last_week = SideSums(week_ago.right, week_ago.right_exposure, again.right, again.right_exposure)
    level = signed_roots(last_week, family) / deviation
    either = np.where(half, _smaller_root(level, roots), 0.0)
    return np.where(whole | (older & ~half), roots, either), beyond


def _smaller_root(second: FloatArray, roots: FloatArray) -> FloatArray:
    """Return the root nearer to 0 where both have one sign, 0 elsewhere."""
    size = np.where(np.sign(second) == np.sign(roots), np.minimum(np.abs(second), np.abs(roots)), 0.0)
    return np.asarray(np.sign(roots) * size)


def _undone(sums: SideSums, week_ago: SideSums, family: Family, way: FloatArray) -> FloatArray:
    """Return how much of last week's change was gone again before this week's, from 0 to 1.

    A step that lasted is none that comes back every week. Of what went the other way there is nothing.
    """
    left, right, now = (
        ratio(*side) if family == "values" else np.log((side[0] + 0.5) / np.maximum(side[1], 0.5))
        for side in (
            (week_ago.left, week_ago.left_exposure),
            (week_ago.right, week_ago.right_exposure),
            (sums.left, sums.left_exposure),
        )
    )
    change = right - left
    undone = np.divide(right - now, change, out=np.zeros(change.shape), where=change * way > 0)
    return np.asarray(np.clip(undone, 0.0, 1.0))


def _without(sums: SideSums, week_ago: SideSums, lasting: FloatArray, family: Family) -> SideSums:
    """Remove a share of last week's change from the right side: from values, or from the expectation."""
    if family == "values":
        left = ratio(week_ago.left, week_ago.left_exposure)
        right = ratio(week_ago.right, week_ago.right_exposure)
        moved = sums.right - lasting * (right - left) * sums.right_exposure
        return SideSums(sums.left, sums.left_exposure, moved, sums.right_exposure)
    # Half a count more keeps what was not seen at all from weighing infinitely.
    left = (week_ago.left + 0.5) / np.maximum(week_ago.left_exposure, 0.5)
    right = (week_ago.right + 0.5) / np.maximum(week_ago.right_exposure, 0.5)
    return SideSums(
        sums.left, sums.left_exposure, sums.right, sums.right_exposure * (right / left) ** lasting
    )
