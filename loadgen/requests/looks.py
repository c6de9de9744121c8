"""Looks at a new release: how often they report it, and after how many periods, by preset, rise and share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from loadgen.harness import median, ratio_of
from loadgen.requests.simulate import PRESETS, simulate
from pipeline.model import FloatArray, SeriesMatrix
from pipeline.releases.requests import LooksMade, ReleasePeriods, RequestRollout, look, next_look

_WIDTH_S = 30.0


@dataclass(frozen=True, slots=True)
class LooksRow:
    """Reports of all looks at releases of one kind.

    Args:
        preset: Its name.
        share: Rise of the metric at the old release's load; 0 of equal releases.
        beside: Share of the requests that the new release gets, beside the old one; 1 alone.
        found: Share of the releases of which some look reports a rise.
        named: Of those, the share in which the true type is among those named.
        periods: Median number of periods of the new release until the report.
        judged: Share of the looks that could judge.
    """

    preset: str
    share: float
    beside: float
    found: float
    named: float
    periods: float
    judged: float


def measure_looks(name: str, share: float, beside: float, cases: int, seed: int) -> LooksRow:
    """Return the reports of looks at ``cases`` releases, each look at the periods up to it."""
    periods: list[int] = []
    named = judged = looks = 0
    for number in range(cases):
        rollout, metrics, type_ = _rollout(name, share, beside, (seed, number))
        made = LooksMade()
        while (end := next_look(rollout.new_ends, len(rollout.types), made)) is not None:
            seen = rollout.until(end)
            decision = look(seen, metrics)
            made = LooksMade(end, made.many + (decision.compared > 0), bool(decision.candidates))
            looks += 1
            judged += decision.compared > 0
            if decision.candidates:
                periods.append(int(seen.has_new.sum()))
                named += any(type_ in request.types for request in decision.candidates[0].costlier_requests)
    return LooksRow(
        name,
        share,
        beside,
        found=len(periods) / cases,
        named=ratio_of(named, len(periods)),
        periods=median(periods),
        judged=judged / looks,
    )


def _rollout(
    name: str, share: float, beside: float, seed: tuple[int, int]
) -> tuple[RequestRollout, SeriesMatrix, str]:
    """Draw two releases; once the new one runs, it gets the share ``beside`` of each type's requests."""
    preset = replace(PRESETS[name], new=480)
    # The same load and noise twice, with the rise and without: a share of the requests makes as much of it.
    risen, equal = (simulate(preset, np.random.default_rng(seed), rise) for rise in (share, 0.0))
    old, new = risen.releases.old, risen.releases.new
    metric = np.concatenate([old.metric, beside * new.metric + (1.0 - beside) * equal.releases.new.metric])
    counts = np.concatenate([old.counts, new.counts])
    own = np.concatenate([np.zeros_like(old.counts), beside * new.counts])
    starts = np.asarray(_WIDTH_S * np.arange(len(counts)), np.float64)
    types = risen.releases.types
    times = np.concatenate([_times(old), _times(new)])
    rollout = RequestRollout(
        "old", "new", float(starts[len(old)]), _WIDTH_S, starts, types, counts, own, times
    )
    ones = np.ones(len(starts))
    return rollout, SeriesMatrix(0.0, _WIDTH_S, ("service",), ("cpu",), metric[None], ones), risen.type


def _times(periods: ReleasePeriods) -> FloatArray:
    return np.full(periods.counts.shape, np.nan) if periods.times is None else periods.times
