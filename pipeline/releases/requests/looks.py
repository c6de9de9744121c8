"""Looks at a rollout as its periods arrive: their times and decisions.

Repeated testing inflates false positives, so at most LOOKS looks compare anything, each when the new release
has run for about twice as many periods as at the look before, and each has its share of the level: the chance
that a release that costs the same is reported is at most ``alpha`` over all looks, however much they have in
common (Bonferroni; a spending function with as much for each, Lan and DeMets 1983). Within a look, chances
hold for all types of requests together (see ``costs``), and are adjusted for the number of metrics (Benjamini
and Hochberg 1995): of several metrics, that share is the one of false ones among those found. After a look
that finds something there is none.

While both releases run side by side, the metric is that of both. What is looked for is then what the requests
of the new release cost more than the same of the old one: see ``Periods.own``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.model import Candidate, CostlierRequests, Decision, Dropped, FloatArray, SeriesMatrix
from pipeline.model.step_codes import RELEASE_COSTS as STEP
from pipeline.releases.requests.compare import ReleaseComparison, RequestCompareConfig, compare_releases
from pipeline.releases.requests.costs import CostChange, spelt
from pipeline.releases.requests.periods import NotCompared, ReleasePeriods, Releases
from pipeline.releases.requests.resolution import merged, periods_a_point
from pipeline.releases.requests.rollout import RequestRollout

LOOKS = 5
FIRST_PERIODS = 30
"""Periods of the new release at the first look; with many types, as many as a fit of them needs."""

MOST_NAMED = 5
"""Largest number of other types that are named for one change."""


@dataclass(frozen=True, slots=True)
class LookConfig:
    """Settings of a look.

    Args:
        alpha: Chance that a release that costs the same is reported, over all its looks.
        least_share: Smallest share of the metric that matters.
    """

    alpha: float = 0.01
    least_share: float = 0.005


@dataclass(frozen=True, slots=True)
class Looked:
    """Result of a look: regressions, and the metrics that were not judged or whose change does not matter.

    ``compared`` is of how many metrics.
    """

    candidates: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...]
    compared: int


@dataclass(frozen=True, slots=True)
class LooksMade:
    """Looks at a new release so far.

    Args:
        last: End of the last one, epoch seconds.
        many: How many compared anything: only those take their share of the level.
        found: Whether one found a regression.
    """

    last: float = 0.0
    many: int = 0
    found: bool = False

    @property
    def done(self) -> bool:
        """Whether the looks are over."""
        return self.found or self.many >= LOOKS


def next_look(new_ends: FloatArray, types: int, made: LooksMade) -> float | None:
    """Return the end of the due look, epoch seconds; None if no look is due.

    Args:
        new_ends: (periods,) ends of the new release's periods so far, ascending.
        types: How many types of requests came.
        made: Looks so far.
    """
    periods = _next_periods(new_ends, types, made)
    return None if made.done or len(new_ends) < periods else float(new_ends[periods - 1])


def periods_ahead(new_ends: FloatArray, types: int, made: LooksMade, begun: int = 0) -> int:
    """Return a lower bound on the periods until a look is due, at this release or at the next.

    ``begun`` is in how many of them the next has run so far.
    """
    until_next = FIRST_PERIODS - begun
    left = _next_periods(new_ends, types, made) - len(new_ends)
    return until_next if made.done else max(1, min(until_next, left))


def look_periods(types: int) -> list[int]:
    """Return after how many periods of a new release there is a look, if each look can compare."""
    return [_first_periods(types) * 2**look for look in range(LOOKS)]


def _first_periods(types: int) -> int:
    return max(FIRST_PERIODS, 2 * (types + 2))


def _next_periods(new_ends: FloatArray, types: int, made: LooksMade) -> int:
    """Return how many periods of the new release the next look takes: about twice those of the last."""
    before = int(np.searchsorted(new_ends, made.last, side="right"))
    periods = _first_periods(types)
    while 2 * periods < 3 * before:  # late periods and new types make it somewhat more or less
        periods *= 2
    return periods


def look(rollout: RequestRollout, metrics: SeriesMatrix, config: LookConfig = LookConfig()) -> Looked:
    """Decide, by each metric, whether requests cost more in the new release.

    Args:
        rollout: Up to the look.
        metrics: By windows of the rollout's periods, which begin with one of them; NaN without points.
        config: How.
    """
    releases = {
        name: _releases(rollout, values, metrics.start)
        for name, values in zip(metrics.names, metrics.samples, strict=True)
    }
    if not releases:
        return Looked((), (Dropped(_candidate(rollout, "cpu", None), _not_judged(rollout, "no_metric")),), 0)
    comparisons = compare_releases(releases, RequestCompareConfig(config.alpha / LOOKS))
    return _decided(rollout, comparisons, config)


def _releases(rollout: RequestRollout, values: FloatArray, start: float) -> Releases:
    """Return both releases with a metric whose ``values`` are of windows of one period."""
    starts, width_s, new = rollout.starts, rollout.width_s, rollout.has_new
    metric = values[np.rint((starts - start) / width_s).astype(np.int64)]
    many = periods_a_point(width_s, width_s * np.flatnonzero(np.isfinite(values)).astype(np.float64))
    before = ReleasePeriods(rollout.counts[~new], metric[~new], None, rollout.times[~new], starts[~new])
    after = ReleasePeriods(
        rollout.counts[new], metric[new], rollout.own[new], rollout.times[new], starts[new]
    )
    return Releases(rollout.types, merged(before, width_s, many), merged(after, width_s, many))


def _decided(
    rollout: RequestRollout, comparisons: Mapping[str, ReleaseComparison | NotCompared], config: LookConfig
) -> Looked:
    candidates: list[Candidate] = []
    dropped: list[Dropped] = []
    for name, comparison in comparisons.items():
        if isinstance(comparison, NotCompared):
            decision = _not_judged(rollout, comparison.code, comparison.value, comparison.bound)
            dropped.append(Dropped(_candidate(rollout, name, None), decision))
            continue
        share = sum(change.share for change in comparison.costs.changes)
        if not comparison.slower or share <= 0.0:
            continue
        candidate = _candidate(rollout, name, comparison)
        if share < config.least_share:
            small = Decision(STEP, False, share, config.least_share, "small", (rollout.new, rollout.old))
            dropped.append(Dropped(candidate, small))
        else:
            candidates.append(candidate)
    compared = sum(isinstance(comparison, ReleaseComparison) for comparison in comparisons.values())
    return Looked(tuple(candidates), tuple(dropped), compared)


def _candidate(rollout: RequestRollout, metric: str, comparison: ReleaseComparison | None) -> Candidate:
    """Return a candidate: levels are those of the new release's load, with its costs and without."""
    after = float(comparison.compared.new.metric.mean()) if comparison else 0.0
    changes = comparison.costs.changes if comparison else ()
    rises = [change for change in changes if change.change > 0]
    share = sum(change.share for change in changes)
    return Candidate(
        metric_kind="service",
        metric=metric,
        kind="short_term",
        change_time=rollout.begun,
        before=after * (1.0 - share),
        after=after,
        p_value=comparison.p if comparison else 1.0,
        statistic=max((_wald(change) for change in rises), default=0.0),
        passed=tuple(_dearer(rollout, change) for change in rises),
        change_time_interval=(rollout.begun, rollout.begun + rollout.width_s),
    )


def _wald(change: CostChange) -> float:
    return float((change.change / change.error) ** 2) if change.error > 0.0 else 0.0


def _dearer(rollout: RequestRollout, change: CostChange) -> Decision:
    """Return the decision that requests of a type cost more, or of a type that it may be instead."""
    alternatives = [type_ for type_ in change.likely if type_ != change.type][:MOST_NAMED]
    return CostlierRequests(
        type=spelt(change.type),
        release=rollout.new,
        former_release=rollout.old,
        share=change.share,
        share_error=change.share_error,
        or_types=tuple(map(spelt, alternatives)),
        chances=tuple(change.likely[type_] for type_ in (change.type, *alternatives)),
    ).decision()


def _not_judged(rollout: RequestRollout, code: str, value: float = 0.0, bound: float = 0.0) -> Decision:
    return Decision(STEP, False, value, bound, code, (rollout.new, rollout.old))
