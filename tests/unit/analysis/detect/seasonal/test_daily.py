from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from pipeline.analysis.detect.seasonal.daily import WindowGrid, draw_cycle, fit_daily_waves
from pipeline.model import FloatArray, IntArray
from pipeline.model.units import DAY_S

DAY, DAYS = 144, 10
HISTORY, END = DAY * DAYS, DAY * DAYS + 60
START = 1_700_000_000.0
POSITION = np.arange(END)
HOUR = 24 * ((START + 600.0 * POSITION) % DAY_S) / DAY_S
RNG = np.random.default_rng(3)
NOISE = RNG.standard_normal((200, END))


def fit(
    values: FloatArray,
    weights: FloatArray | None = None,
    *,
    variance: float = 1.0,
    resolution_s: float = 600.0,
) -> FloatArray:
    history = min(HISTORY, values.shape[1])
    weights = np.ones(history) if weights is None else weights
    return cycle_of(values[:, :history], weights, WindowGrid(START, resolution_s, END), variance)


@dataclass
class Noise:
    variance: float
    least: FloatArray | float = 0.0

    def most(self, rows: IntArray) -> FloatArray:
        return np.full(len(rows), np.inf)

    def exact(self, rows: IntArray) -> FloatArray:
        return np.full(len(rows), self.variance)


def cycle_of(values: FloatArray, weights: FloatArray, grid: WindowGrid, variance: float = 1.0) -> FloatArray:
    return draw_cycle(fit_daily_waves(values, weights, Noise(variance), grid), grid)


def wave(size: float, hour: float = 15.0) -> FloatArray:
    return size * np.cos(2 * np.pi * (HOUR - hour) / 24)


@pytest.mark.parametrize(
    "cycle",
    [
        pytest.param(wave(1.0), id="a sine as large as the noise"),
        pytest.param(wave(0.3), id="a small one"),
        pytest.param(wave(3.0) + 1.5 * np.cos(2 * np.pi * HOUR / 8), id="with a harmonic"),
    ],
)
def test_the_cycle_is_found_and_carried_on(cycle: FloatArray) -> None:
    found = fit(NOISE + cycle + 7.0)
    error = found - cycle
    assert found.shape == NOISE.shape
    assert np.sqrt(np.mean(error[:, :HISTORY] ** 2)) < 0.12
    assert np.sqrt(np.mean(error[:, HISTORY:] ** 2)) < 0.12


def test_the_hour_counts_and_not_the_position_in_the_history() -> None:
    values = NOISE[:1] + wave(2.0)
    whole = fit(values)
    grid = WindowGrid(START + 50 * 600.0, 600.0, END - 50)
    later = cycle_of(values[:, 50:HISTORY], np.ones(HISTORY - 50), grid)
    np.testing.assert_allclose(later, whole[:, 50:], atol=0.4)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(NOISE, id="white noise"),
        pytest.param(NOISE + np.where(POSITION >= 1000, 5.0, 0.0), id="a step"),
        pytest.param(
            NOISE + np.where((POSITION >= 700) & (POSITION < 760), 20.0, 0.0), id="one day's trouble"
        ),
        pytest.param(NOISE + POSITION / HISTORY, id="a slow drift"),
        pytest.param(
            NOISE
            + np.where(POSITION // DAY == 4, wave(8.0), 0.0)
            + np.where(POSITION // DAY == 8, wave(8.0), 0.0),
            id="two similar days",
        ),
        pytest.param(np.full((200, END), 0.1), id="constant"),
        pytest.param(np.zeros((200, END)), id="zeros"),
    ],
)
def test_what_does_not_come_back_every_day_is_no_cycle(values: FloatArray) -> None:
    assert (fit(values) != 0).any(axis=1).mean() <= 0.03


def test_a_step_does_not_distort_the_cycle() -> None:
    found = fit(NOISE + wave(1.0) + np.where(POSITION >= 1000, 20.0, 0.0))
    assert np.abs(found - wave(1.0)).mean() < 0.2


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param(RNG.random(HISTORY) < 0.3, id="single windows"),
        pytest.param((POSITION[:HISTORY] >= 600) & (POSITION[:HISTORY] < 700), id="most of a day"),
        pytest.param(POSITION[:HISTORY] < 400, id="the first days"),
    ],
)
def test_windows_without_data_are_not_looked_at(missing: FloatArray) -> None:
    values = NOISE + wave(2.0)
    values[:, :HISTORY][:, missing] = np.nan
    found = fit(values, np.where(missing, 0.0, 1.0))
    assert np.isfinite(found).all()
    assert np.sqrt(np.mean((found - wave(2.0)) ** 2)) < 0.35


def test_noise_of_a_larger_variance_hides_a_cycle() -> None:
    values = NOISE + wave(0.3)
    assert (fit(values) != 0).any(axis=1).mean() > 0.9
    assert (fit(values, variance=30.0) != 0).any(axis=1).mean() < 0.1
    assert (fit(values, np.full(HISTORY, 30.0), variance=30.0) != 0).any(axis=1).mean() > 0.9


@pytest.mark.parametrize(
    ("points", "resolution_s"),
    [
        pytest.param(2 * DAY, 600.0, id="two days only"),
        pytest.param(HISTORY, 6 * 3600.0, id="four points a day"),
        pytest.param(HISTORY, 7 * 60.0, id="a day is no whole number of points"),
        pytest.param(HISTORY, 2 * DAY_S, id="a point is two days"),
        pytest.param(0, 600.0, id="no history"),
    ],
)
def test_where_no_cycle_can_be_known_there_is_none(points: int, resolution_s: float) -> None:
    found = fit(5 * (NOISE + wave(3.0))[:, :points], np.ones(points), resolution_s=resolution_s)
    assert found.shape == NOISE.shape
    assert not found.any()


def test_no_series() -> None:
    assert fit(np.empty((0, HISTORY))).shape == (0, END)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda x: x + 1000.0, id="shift"),
        pytest.param(lambda x: x[::-1], id="order"),
    ],
)
def test_only_the_shape_of_each_series_matters(change: Callable[[FloatArray], FloatArray]) -> None:
    values = NOISE[:20] + wave(0.4)
    expected = fit(values) if change(values)[0, 0] > 500 else change(fit(values))
    np.testing.assert_allclose(fit(change(values)), expected, atol=1e-9)


def test_scale_only_scales() -> None:
    values = NOISE[:20] + wave(0.4)
    np.testing.assert_allclose(fit(1e-6 * values, variance=1e-12), 1e-6 * fit(values), atol=1e-15)
