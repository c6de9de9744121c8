"""Forecast of the periods after which a rise of a type's cost is seen in the next release.

The next release is taken to get load as different as that of both halves of this one. A change of a type's
cost between those, which is none, has a standard error (see ``costs``). That of o periods of this release and
n of the next one is s √(1/o + 1/n). A rise is seen in 90 of 100 cases if it is (b + z) of these, b being the
bound at a look's share of the level for all types and metrics (Bonferroni), z the normal quantile of the
power.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.model import SeriesMatrix
from pipeline.releases.requests.compare import (
    POWER,
    ReleaseComparison,
    RequestCompareConfig,
    compare_releases,
)
from pipeline.releases.requests.looks import LOOKS, LookConfig, look_periods
from pipeline.releases.requests.periods import FEWEST_PERIODS, NotCompared, ReleasePeriods, Releases
from pipeline.releases.requests.rollout import ReleaseRun

_PARTS = (2, 4, 8)
"""Numbers of parts into which a run is cut; every second part stands for the next release.

More of them have more similar load. They are tried where the load of fewer cannot be compared, such as of day
and night.
"""


@dataclass(frozen=True, slots=True)
class TypeOutlook:
    """Detectability of one type of request.

    Args:
        type: Of request.
        cost: Of one request, in the metric's unit; negative ones are 0 within their noise.
        share: Of the metric, that all of them cost.
        error: Of a change of the cost, if each release had one period.
    """

    type: str
    cost: float
    share: float
    error: float


@dataclass(frozen=True, slots=True)
class RequestOutlook:
    """Detectability by one metric.

    Args:
        types: Those that cost most first.
        periods: Of this release.
        bound: How many standard errors a change has to be.
        least_share: Of the metric, that a change must be to be an event.
        r_squared: How much of the metric's variance the costs explain.
    """

    types: tuple[TypeOutlook, ...]
    periods: int
    bound: float
    least_share: float
    r_squared: float

    def rise_after(self, one: TypeOutlook, periods: int, beside: float = 1.0) -> float | None:
        """Return the relative rise of a type's cost that `periods` periods of the next release show.

        None of a type whose cost is not known to be above 0, or that cannot be kept apart.

        Args:
            one: Of ``types``.
            periods: Of the next release.
            beside: Share of the requests that it gets, beside this one.
        """
        if not one.cost > 0.0 or not math.isfinite(one.error):
            return None
        error = one.error * math.sqrt(1.0 / self.periods + 1.0 / periods)
        return self.bound * error / (one.cost * beside)

    def periods_for(self, one: TypeOutlook, rise: float, beside: float = 1.0) -> int | None:
        """Return the periods of the next release that show such a rise; None: no number of periods does."""
        if not one.cost > 0.0 or not one.error > 0.0:
            return None
        inverse = (rise * one.cost * beside / (self.bound * one.error)) ** 2 - 1.0 / self.periods
        return max(FEWEST_PERIODS, math.ceil(1.0 / inverse)) if inverse > 0.0 else None

    def look_for(self, one: TypeOutlook, rise: float, beside: float = 1.0) -> int | None:
        """Return the number of periods at the look that reports such a rise; None: no look does."""
        needed = self.periods_for(one, rise, beside)
        if needed is None or self.is_small(one, rise, beside):
            return None
        return next((count for count in look_periods(len(self.types)) if count >= needed), None)

    def is_small(self, one: TypeOutlook, rise: float, beside: float = 1.0) -> bool:
        """Return whether such a rise is too small a share of the metric to be an event."""
        return rise * one.share * beside < self.least_share


def foresee(
    run: ReleaseRun, metrics: SeriesMatrix, config: LookConfig
) -> dict[str, RequestOutlook | NotCompared]:
    """Return by metric how small a rise the next release can show, or why the metric cannot be compared.

    Args:
        run: Of the release that runs now.
        metrics: In windows of the run's width that begin where its periods do; NaN where a metric has no
            point.
        config: How looks decide.
    """
    column = np.rint((run.starts - metrics.start) / run.width_s).astype(np.int64)
    alpha = config.alpha / LOOKS
    outlooks: dict[str, RequestOutlook | NotCompared] = {}
    for name, values in zip(metrics.names, metrics.samples, strict=True):
        comparison = _against_itself(run, ReleasePeriods(run.counts, values[column]), alpha)
        outlooks[name] = (
            comparison
            if isinstance(comparison, NotCompared)
            else _outlook(comparison, alpha / len(metrics.names), config.least_share)
        )
    return outlooks


def _against_itself(
    run: ReleaseRun, periods: ReleasePeriods, alpha: float
) -> ReleaseComparison | NotCompared:
    measured = periods.at(np.isfinite(periods.metric))
    for parts in _PARTS:
        second = np.arange(len(measured)) * parts // max(1, len(measured)) % 2 == 1
        halves = Releases(run.types, measured.at(~second), measured.at(second))
        comparison = compare_releases({"": halves}, RequestCompareConfig(alpha))[""]
        if isinstance(comparison, ReleaseComparison) or comparison.code != "unseen_load":
            break
    return comparison


def _outlook(comparison: ReleaseComparison, alpha: float, least_share: float) -> RequestOutlook:
    costs, halves = comparison.costs, (comparison.compared.old, comparison.compared.new)
    level = abs(float(np.concatenate([half.metric for half in halves]).mean())) or 1.0
    load = np.concatenate([half.counts for half in halves]).mean(axis=0)
    scale = math.sqrt(sum(1.0 / len(half) for half in halves))
    types = [
        TypeOutlook(type_, costs.old[type_], costs.old[type_] * many / level, costs.errors[type_] / scale)
        for type_, many in zip(comparison.compared.types, load.tolist(), strict=True)
    ]
    return RequestOutlook(
        types=tuple(sorted(types, key=lambda outlook: (-outlook.share, outlook.type))),
        periods=sum(map(len, halves)),
        bound=float(special.ndtri(1.0 - alpha / 2.0 / len(costs.errors)) + special.ndtri(POWER)),
        least_share=least_share,
        r_squared=costs.r_squared,
    )
