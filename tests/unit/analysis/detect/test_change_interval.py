"""How often the interval of the change time holds the moment of the change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from scipy.signal import lfilter

from pipeline.analysis.detect.change_interval import posterior, split_intervals, split_profile, step_interval
from pipeline.analysis.detect.long_term import find_long_term
from pipeline.analysis.detect.short_term import WindowIndexes, find_candidates
from pipeline.model import FloatArray, MetricKind, SeriesMatrix

WINDOWS = WindowIndexes(analysis=1440, extended=1464, end=1500)  # of frontfaas-small
SERIES = 250
START, RESOLUTION_S = 1_700_000_000.0, 600.0
TOTAL = 1_000_000.0

Draw = Callable[[Generator, FloatArray], FloatArray]
"""Draws series with a change: of each window the share after the change is given, (series, windows)."""


def values(factor: float, step: float) -> Draw:
    """AR(1) of variance 1 and a step of so many of its standard deviations."""

    def draw(rng: Generator, after: FloatArray) -> FloatArray:
        shocks = rng.standard_normal((len(after), after.shape[1] + 300)) * np.sqrt(1 - factor**2)
        noise: FloatArray = lfilter([1], [1, -factor], shocks, axis=1)[:, 300:]
        return noise + step * after

    return draw


def counts(mean: float, times: float, wander: float = 0.0) -> Draw:
    """Poisson counts whose rate is multiplied; ``wander`` is the deviation of an AR(0.8) in its logarithm."""

    def draw(rng: Generator, after: FloatArray) -> FloatArray:
        shocks = rng.standard_normal((len(after), after.shape[1] + 100)) * wander * 0.6
        slow = lfilter([1], [1, -0.8], shocks, axis=1)[:, 100:]
        drawn = rng.poisson(mean * (1 + (times - 1) * after) * np.exp(slow))
        return np.asarray(drawn, dtype=np.float64)

    return draw


def scanned(samples: FloatArray, kind: MetricKind) -> SeriesMatrix:
    names = tuple(map(str, range(len(samples))))
    totals = np.full(samples.shape[1], 1.0 if kind == "service" else TOTAL)
    return SeriesMatrix(START, RESOLUTION_S, (kind,) * len(samples), names, samples, totals)


@pytest.mark.parametrize(
    ("kind", "draw", "widest"),
    [
        pytest.param("service", values(0.0, 1.0), 30, id="white-faint"),
        pytest.param("service", values(0.0, 2.0), 8, id="white"),
        pytest.param("service", values(0.0, 4.0), 2, id="white-clear"),
        pytest.param("service", values(0.6, 1.5), 60, id="ar-faint"),
        pytest.param("service", values(0.6, 3.0), 8, id="ar"),
        pytest.param("service", values(0.9, 6.0), 3, id="ar-long-clear"),
        pytest.param("subroutine", counts(0.5, 3.0), 30, id="rare-counts"),
        pytest.param("subroutine", counts(3.0, 2.0), 15, id="low-counts"),
        pytest.param("subroutine", counts(300.0, 1.5), 2, id="many-counts"),
        pytest.param("subroutine", counts(300.0, 1.5, 0.1), 6, id="counts-that-wander"),
    ],
)
def test_it_holds_the_moment_of_the_change(kind: MetricKind, draw: Draw, widest: float) -> None:
    rng = np.random.default_rng(17)
    moments = WINDOWS.analysis + rng.uniform(1, 23, SERIES)  # a change does not wait for a window to begin
    after = np.clip(np.arange(WINDOWS.end) + 1 - moments[:, None], 0.0, 1.0)
    found = find_candidates(scanned(draw(rng, after), kind), WINDOWS)
    intervals = np.array([candidate.change_time_interval for candidate in found])
    changes = START + RESOLUTION_S * moments[[int(candidate.metric) for candidate in found]]
    holds = (intervals[:, 0] <= changes) & (changes <= intervals[:, 1])
    assert len(found) > SERIES / 2
    # 95 % less two standard errors of so many.
    assert holds.mean() >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / len(found))
    assert np.median(intervals[:, 1] - intervals[:, 0]) <= widest * RESOLUTION_S
    for candidate in found:
        assert candidate.change_time_interval is not None
        assert candidate.change_time_interval[0] <= candidate.change_time <= candidate.change_time_interval[1]


def test_of_a_slow_rise_it_holds_the_beginning() -> None:
    rng = np.random.default_rng(5)
    begins = rng.uniform(1000, 1150, 60)
    slope = np.clip((np.arange(1500) - begins[:, None]) / 300, 0.0, 1.0)
    matrix = scanned(rng.standard_normal((60, 1500)) + 3 * slope, "service")
    found = find_long_term(matrix, WINDOWS)
    intervals = np.array([candidate.change_time_interval for candidate in found])
    changes = START + RESOLUTION_S * begins[[int(candidate.metric) for candidate in found]]
    holds = (intervals[:, 0] <= changes) & (changes <= intervals[:, 1])
    assert len(found) > 50
    assert holds.mean() >= 0.9
    assert np.median(intervals[:, 1] - intervals[:, 0]) < 150 * RESOLUTION_S


def test_a_window_of_both_levels_holds_the_change() -> None:
    values = np.repeat([0.0, 1.0], 20)
    values[20] = 0.5
    assert step_interval(values, np.ones(40), (0.01, 100.0), 20) == (20.0, 21.0)


def test_no_noise_leaves_the_windows_on_both_sides() -> None:
    values = np.repeat([0.0, 1.0], 20)
    assert step_interval(values, np.ones(40), (1e-12, 100.0), 20) == (19.0, 21.0)


def test_what_is_reported_is_within() -> None:
    values = np.repeat([0.0, 1.0], 20)
    assert step_interval(values, np.ones(40), (0.01, 100.0), 25) == (19.0, 25.0)


def test_without_an_allowed_split_it_is_all_that_was_searched() -> None:
    profile = split_profile(np.ones(9), np.ones(9), np.zeros(5, dtype=np.bool_), "values", first=2)
    found = split_intervals([profile], lambda *_: (np.ones(1), np.ones(1)), np.array([3]))
    assert found.tolist() == [[0.0, 4.0]]


def test_the_posterior_is_students() -> None:
    mass = posterior(np.array([10.0, 4.0, -np.inf]), 2.0, 5.0)
    assert mass[1] / mass[0] == pytest.approx((1 + 3 / 5) ** -2.5)
    assert mass[2] == 0
