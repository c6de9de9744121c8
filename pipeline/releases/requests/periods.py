"""Periods of two releases: how often each type of request came, and what the service used meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray, is_time_column, time_column

FEWEST_PERIODS = 20
"""Fewest periods of each release that are compared."""


NotComparedCode = Literal["few_periods", "constant", "no_common_type", "nothing_varies", "unseen_load"]


class NotCompared(ValueError):
    """Two releases cannot be compared; the text gives the reason in one line.

    Args:
        text: The line.
        code: The same for programs.
        value: What there is.
        bound: How much of it would do.
    """

    def __init__(self, text: str, code: NotComparedCode, value: float = 0.0, bound: float = 0.0) -> None:
        super().__init__(text)
        self.code = code
        self.value = value
        self.bound = bound


@dataclass(frozen=True, slots=True)
class ReleasePeriods:
    """The periods of one release, in the order of time.

    Args:
        counts: (periods, types) requests of each type.
        metric: (periods,) mean of the metric, in its unit.
        own: (periods, types) how many of the requests the release got itself; None: all. Others got the rest,
            and the metric is that of all.
        times: (periods, types) response times of those, as the mean of their logarithm, of seconds; NaN where
            there is none; None: not known.
        starts: (periods,) when they begin, epoch seconds; None: not known.
    """

    counts: FloatArray
    metric: FloatArray
    own: FloatArray | None = None
    times: FloatArray | None = None
    starts: FloatArray | None = None

    @property
    def served(self) -> FloatArray:
        """Requests that the release got itself: (periods, types)."""
        return self.counts if self.own is None else self.own

    @property
    def share(self) -> FloatArray:
        """Share of the requests that the release got itself: (periods,)."""
        if self.own is None:
            return np.ones(len(self))
        return np.asarray(self.own.sum(axis=1) / np.maximum(self.counts.sum(axis=1), 1.0))

    def __len__(self) -> int:
        return len(self.metric)

    def at(self, chosen: BoolArray | IntArray | slice) -> ReleasePeriods:
        """Return the selected periods."""
        starts = None if self.starts is None else self.starts[chosen]
        return replace(self._with(lambda array: array[chosen], self.metric[chosen]), starts=starts)

    def of_types(self, columns: IntArray) -> ReleasePeriods:
        """Return the periods with the selected types."""
        return self._with(lambda array: array[:, columns], self.metric)

    def _with(self, part: Callable[[FloatArray], FloatArray], metric: FloatArray) -> ReleasePeriods:
        own, times = (None if array is None else part(array) for array in (self.own, self.times))
        return ReleasePeriods(part(self.counts), metric, own, times, self.starts)


@dataclass(frozen=True, slots=True)
class Releases:
    """An old and a new release of one service, by the same types."""

    types: tuple[str, ...]
    old: ReleasePeriods
    new: ReleasePeriods

    def of_types(self, columns: IntArray) -> Releases:
        """Return the same periods with some of the types."""
        old, new = (periods.of_types(columns) for periods in (self.old, self.new))
        return Releases(tuple(self.types[column] for column in columns), old, new)

    def readable(self) -> Releases:
        """Return the periods of which every number is finite, and the types that came at all.

        Raises:
            NotCompared: a release has too few periods, a metric that never changes, or no type in common.
        """
        old, new = (
            periods.at(np.isfinite(periods.metric) & np.isfinite(periods.counts).all(axis=1))
            for periods in (self.old, self.new)
        )
        for name, periods in (("old", old), ("new", new)):
            if len(periods) < FEWEST_PERIODS:
                text = f"the {name} release has {len(periods)} periods, fewer than {FEWEST_PERIODS}"
                raise NotCompared(text, "few_periods", len(periods), FEWEST_PERIODS)
            if np.ptp(periods.metric) == 0.0:
                raise NotCompared(f"the metric is constant in the {name} release", "constant")
        came_old, came_new = ((periods.served > 0).any(axis=0) for periods in (old, new))
        if not (came_old & came_new).any():
            raise NotCompared("the releases have no type of request in common", "no_common_type")
        return Releases(self.types, old, new).of_types(np.flatnonzero(came_old | came_new))


def align(starts: FloatArray, width_s: float, times: FloatArray, values: FloatArray) -> FloatArray:
    """Return the mean of a metric's points in each period (§5, step 1): (periods,); NaN where there is none.

    Args:
        starts: (periods,) ascending, epoch seconds.
        width_s: Of a period.
        times: (points,) epoch seconds.
        values: (points,) NaN where there is no value.
    """
    period = np.searchsorted(starts, times, side="right") - 1
    inside = (period >= 0) & np.isfinite(values)
    inside[inside] &= times[inside] < starts[period[inside]] + width_s
    many = np.bincount(period[inside], minlength=len(starts))
    sums = np.bincount(period[inside], weights=values[inside], minlength=len(starts))
    result: FloatArray = np.divide(sums, many, out=np.full(len(starts), np.nan), where=many > 0)
    return result


def joined(
    starts: FloatArray, columns: Mapping[str, FloatArray], metric: FloatArray, types: tuple[str, ...]
) -> ReleasePeriods:
    """Return periods with these types in this order; a type that never came has counts of 0.

    Args:
        starts: (periods,) epoch seconds.
        columns: Of a table by name: (periods,) counts of each type, and maybe response times, in seconds.
        metric: (periods,)
        types: Of requests.
    """
    counts = np.column_stack([columns.get(name, np.zeros(len(metric))) for name in types])
    if not any(map(is_time_column, columns)):
        return ReleasePeriods(counts, metric, starts=starts)
    unknown = np.full(len(metric), np.nan)
    seconds = np.column_stack([columns.get(time_column(name), unknown) for name in types])
    times = np.log(seconds, out=np.full(seconds.shape, np.nan), where=seconds > 0.0)
    return ReleasePeriods(counts, metric, times=times, starts=starts)
