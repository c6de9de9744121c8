"""Throughput of the detect stage in series a second, of its screen alone, and of a naive CUSUM."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

from loadgen.bench.profile_fleet import draw_profile_fleet
from loadgen.harness import BenchResult
from pipeline.analysis.detect.change_point import log_odds_span, p_values, signed_roots, split_sums
from pipeline.analysis.detect.expected import Normalised, normalise
from pipeline.analysis.detect.search import SearchConfig, find_change_points
from pipeline.analysis.detect.short_term import CHUNK_ROWS, WindowIndexes, find_candidates
from pipeline.model import FloatArray, IntArray, MetricKind, SeriesMatrix

SERIES = 4000
ROUNDS = 5
KINDS: tuple[MetricKind, ...] = ("subroutine",)
SAMPLES = 40_000  # of a service in a window

_STEPS = SearchConfig(("short_term",), absolute=0.00005)

GEOMETRIES = (
    (WindowIndexes(analysis=440, extended=464, end=500), 1800.0),  # nine days, 12 and 18 hours of half hours
    (
        WindowIndexes(analysis=1440, extended=1464, end=1500),
        600.0,
    ),  # ten days, four and six hours of ten minutes
)


def measure_detect(advance: Callable[[], None], *, profile: Path | None = None) -> list[BenchResult]:
    """Measure the screen, the whole detector and a naive CUSUM on the same series; the median time counts.

    Args:
        advance: Called after each round of each geometry, ``parts_of(profile)`` times.
        profile: A profile file, for a fleet of its call tree besides the one of steady noise.

    Raises:
        ConfigError: the profile cannot be read, or holds no stack.
    """
    rng = np.random.default_rng(1)
    results = []
    for windows, resolution_s in GEOMETRIES:
        counts, totals = draw_counts(rng, SERIES, windows.end)
        matrix = SeriesMatrix(0.0, resolution_s, KINDS * SERIES, ("",) * SERIES, counts, totals)
        series = normalise(
            matrix,
            history=windows.analysis,
            longest=windows.end - windows.analysis,
            apart=windows.analysis // 2,
        )
        runs: dict[str, Callable[[], object]] = {
            "detect, screen alone": lambda s=series, w=windows: screen(s, w),  # type: ignore[misc]
            "detect, everything": lambda m=matrix, w=windows: find_candidates(m, w),  # type: ignore[misc]
            "naive CUSUM of numpy": lambda m=matrix: naive_cusum(m.samples),  # type: ignore[misc]
        }
        results += _time(runs, SERIES, windows, advance)
    if profile is None:
        return results
    for windows, resolution_s in GEOMETRIES:
        fleet = draw_profile_fleet(profile, windows, resolution_s)
        runs = {
            "detect, fleet of a profile": lambda m=fleet, w=windows: find_change_points(m, w, _STEPS),  # type: ignore[misc]
            "naive CUSUM, fleet of a profile": lambda m=fleet: naive_cusum(m.samples),  # type: ignore[misc]
        }
        results += _time(runs, len(fleet.names), windows, advance)
    return results


def parts_of(profile: Path | None) -> int:
    """Return the number of parts of ``measure_detect``."""
    return ROUNDS * len(GEOMETRIES) * (2 if profile else 1)


def _time(
    runs: dict[str, Callable[[], object]], series: int, windows: WindowIndexes, advance: Callable[[], None]
) -> list[BenchResult]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began = time.process_time()
            run()
            times[name].append(time.process_time() - began)
        advance()
    setup = {"series": float(series), "windows": float(windows.end), "rounds": float(ROUNDS)}
    return [
        BenchResult(f"{name}, {windows.end} points", {"series/s": series / float(np.median(seconds))}, setup)
        for name, seconds in times.items()
    ]


def draw_counts(rng: np.random.Generator, series: int, windows: int) -> tuple[FloatArray, FloatArray]:
    """Draw a service without changes: counts (series, windows), and the samples of each window.

    Shares have a Pareto tail from a millionth on, as those of subroutines do; counts are binomial.
    """
    shares = 1e-6 * (1 + rng.pareto(0.6, (series, 1))).clip(1, 3e5)
    counts = rng.binomial(SAMPLES, shares, (series, windows)).astype(np.float64)
    return counts, np.full(windows, float(SAMPLES))


def screen(series: Normalised, windows: WindowIndexes) -> tuple[IntArray, FloatArray]:
    """Return each series' best split in the analysis window and its p-value: CUSUM and test, vectorised.

    Args:
        series: Series with their expected values and their noise.
        windows: Where to search, with all of the history as the baseline.
    """
    splits, chances = [], []
    searched = {"first": windows.analysis, "last": windows.extended - 1}
    for first in range(0, len(series.observed), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        sums = split_sums(series.observed[rows], series.exposure[rows], **searched)
        roots = signed_roots(sums, series.family) / np.sqrt(series.variance[rows])[:, None]
        best = np.abs(roots).argmax(axis=1)
        everywhere = np.ones(roots.shape, dtype=np.bool_)
        largest = roots[np.arange(len(roots)), best]
        span = log_odds_span(sums, everywhere)
        splits.append(best + windows.analysis)
        chances.append(p_values(largest, series.degrees_of_freedom[rows], span, everywhere.sum(axis=1)))
    return np.concatenate(splits), np.concatenate(chances)


def naive_cusum(values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the largest CUSUM's index and the chi-squared p-value of two means: the naive implementation."""
    windows = values.shape[1]
    sums = np.cumsum(values - values.mean(axis=1, keepdims=True), axis=1)[:, :-1]
    split = np.abs(sums).argmax(axis=1)
    after = np.arange(windows) > split[:, None]
    mean = np.where(
        after,
        ((values * after).sum(axis=1) / after.sum(axis=1))[:, None],
        ((values * ~after).sum(axis=1) / (~after).sum(axis=1))[:, None],
    )
    variance, split_variance = (
        np.maximum(values.var(axis=1), 1e-300),
        np.maximum(((values - mean) ** 2).mean(axis=1), 1e-300),
    )
    return split + 1, stats.chi2.sf(windows * np.log(variance / split_variance), 1)
