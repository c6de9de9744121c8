"""Test of foreseen rises, which 90 of 100 looks should find: preset × periods of the next release."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from loadgen.harness import mean, median
from loadgen.requests.simulate import PRESETS, ReleasePair, simulate
from pipeline.model import SeriesMatrix
from pipeline.releases.requests import (
    LookConfig,
    NotCompared,
    ReleaseRun,
    RequestCompareConfig,
    compare_releases,
    foresee,
)
from pipeline.releases.requests.looks import LOOKS

_WIDTH_S = 30.0


@dataclass(frozen=True, slots=True)
class OutlookRow:
    """Rate at which rises of the foreseen size are found.

    Args:
        preset: Its name.
        periods: Periods of the next release.
        rise: Median of the foreseen rises of the type's cost.
        share: Median of the same rises as shares of the metric.
        found: Share of the cases in which a rise of that size is found.
        half: The same for half the size.
        foreseen: Share of the cases in which a size was foreseen at all.
    """

    preset: str
    periods: int
    rise: float
    share: float
    found: float
    half: float
    foreseen: float


def measure_outlook(name: str, periods: int, cases: int, seed: int) -> OutlookRow:
    """Return how often one look at the next release finds a rise that the release before it foresaw."""
    rows = []
    for number in range(cases):
        foreseen = foreseen_rise(name, periods, (seed, number))
        if foreseen is not None:
            rise, share = foreseen
            seen = [is_found(name, periods, (seed, number), times * rise * share) for times in (1.0, 0.5)]
            rows.append((rise, rise * share, *seen))
    rises, shares, whole, half = np.array(rows, np.float64).reshape(-1, 4).T
    return OutlookRow(
        name, periods, median(rises), median(shares), mean(whole), mean(half), len(rows) / cases
    )


def foreseen_rise(name: str, periods: int, seed: tuple[int, int]) -> tuple[float, float] | None:
    """Return the foreseen detectable rise of a type's cost, and the type's share of the metric."""
    case = _drawn(name, periods, seed, 0.0)
    old = case.releases.old
    starts = np.asarray(_WIDTH_S * np.arange(len(old)), np.float64)
    run = ReleaseRun("old", _WIDTH_S, starts, case.releases.types, old.counts)
    metric = SeriesMatrix(0.0, _WIDTH_S, ("service",), ("cpu",), old.metric[None], np.ones(len(old)))
    forecast = foresee(run, metric, LookConfig())["cpu"]
    if isinstance(forecast, NotCompared):
        return None
    slow_type = next(candidate for candidate in forecast.types if candidate.type == case.type)
    rise = forecast.rise_after(slow_type, periods)
    return None if rise is None else (rise, slow_type.share)


def is_found(name: str, periods: int, seed: tuple[int, int], share: float) -> bool:
    """Return whether a look finds that the release costs more by ``share``."""
    case = _drawn(name, periods, seed, share)
    comparison = compare_releases({"cpu": case.releases}, RequestCompareConfig(LookConfig().alpha / LOOKS))[
        "cpu"
    ]
    return not isinstance(comparison, NotCompared) and comparison.slower


def _drawn(name: str, periods: int, seed: tuple[int, int], share: float) -> ReleasePair:
    return simulate(replace(PRESETS[name], new=periods), np.random.default_rng(seed), share)
