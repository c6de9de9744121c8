from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.seasonal.stl import carry_on, decompose, find_periods, fold
from pipeline.model import FloatArray

RESOLUTION_S = 600.0
DAY = 144
WEEK = 7 * DAY
T = np.arange(10 * DAY)


def noise(seed: int, rows: int = 1, windows: int = len(T)) -> FloatArray:
    return np.random.default_rng(seed).normal(0.0, 1.0, (rows, windows))


def wandering(seed: int, correlation: float, rows: int = 40) -> FloatArray:
    """Stationary noise in which neighbours are similar."""
    rng = np.random.default_rng(seed)
    values = np.empty((rows, len(T)))
    values[:, 0] = rng.normal(0.0, 1.0, rows)
    for at in range(1, len(T)):
        fresh = rng.normal(0.0, np.sqrt(1 - correlation**2), rows)
        values[:, at] = correlation * values[:, at - 1] + fresh
    return values


DAILY = {
    "sine": np.sin(2 * np.pi * T / DAY),
    "two waves a day": np.sin(4 * np.pi * T / DAY),
    "two hours of each day": np.where((T - 500) % DAY < 12, 2.0, 0.0),
    "sine with a level step": np.sin(2 * np.pi * T / DAY) + np.where(T > 900, 6.0, 0.0),
    "sine with outliers": np.sin(2 * np.pi * T / DAY) + np.where(T % 311 == 5, 300.0, 0.0),
}


@pytest.mark.parametrize("season", [pytest.param(s, id=name) for name, s in DAILY.items()])
def test_a_daily_cycle_is_found(season: FloatArray) -> None:
    found = find_periods(noise(1) + season, np.ones(len(T)), RESOLUTION_S)
    assert found.daily.tolist() == [True]
    assert found.weekly.tolist() == [False]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(noise(2, rows=40), id="white noise"),
        pytest.param(wandering(3, 0.9), id="noise of hours"),
        pytest.param(wandering(4, 0.99), id="noise of days"),
        pytest.param(np.cumsum(noise(5, rows=40), axis=1), id="random walk"),
        pytest.param(noise(6, rows=40) + np.where(T > 900, 5.0, 0.0), id="level step"),
        pytest.param(noise(7, rows=40) + 0.01 * T, id="slope"),
        pytest.param(np.random.default_rng(8).poisson(0.05, (40, len(T))).astype(np.float64), id="rare"),
        pytest.param(np.random.default_rng(9).standard_t(2.5, (40, len(T))), id="heavy tails"),
    ],
)
def test_what_has_no_cycle_has_none(values: FloatArray) -> None:
    found = find_periods(values, np.ones(len(T)), RESOLUTION_S)
    assert found.daily.sum() <= 2  # 1 % nominal of 40


@pytest.mark.parametrize(
    "values",
    [pytest.param(np.full((1, len(T)), 0.1), id="constant"), pytest.param(np.zeros((1, len(T))), id="zeros")],
)
def test_a_constant_series_has_no_season(values: FloatArray) -> None:
    assert not find_periods(values, np.ones(len(T)), RESOLUTION_S).daily[0]


def test_a_weekly_cycle_is_found_beside_a_daily_one() -> None:
    t = np.arange(28 * 24)
    daily, weekly = np.sin(2 * np.pi * t / 24), np.where(t % 168 >= 120, 2.0, 0.0)
    values = np.stack([daily, weekly, daily + weekly]) + noise(10, 3, len(t)) / 2
    found = find_periods(values, np.ones(len(t)), 3600.0)
    assert found.daily.tolist() == [True, False, True]
    assert found.weekly.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("windows", "resolution_s"),
    [
        pytest.param(DAY + 100, RESOLUTION_S, id="less than two days"),
        pytest.param(50, 1.0, id="seconds"),
        pytest.param(100, 6 * 3600.0, id="too coarse for a day"),
    ],
)
def test_too_little_data_for_a_season(windows: int, resolution_s: float) -> None:
    values = np.sin(2 * np.pi * np.arange(windows) * resolution_s / 86_400.0)[None, :]
    assert not find_periods(values, np.ones(windows), resolution_s).daily[0]


def test_windows_without_data_are_not_looked_at() -> None:
    values = noise(11) + DAILY["sine"]
    weights = np.ones((1, len(T)))
    weights[0, 300:500] = 0.0
    weights[0, ::7] = 0.0
    holes = np.where(weights > 0, values, np.nan)
    plain = np.where(weights > 0, values, 1e9)
    assert find_periods(holes, weights, RESOLUTION_S).daily[0]
    assert find_periods(plain, weights, RESOLUTION_S).daily[0]


def test_scale_and_offset_change_no_season() -> None:
    values = noise(12, rows=40) + 0.15 * DAILY["sine"]
    plain = find_periods(values, np.ones(len(T)), RESOLUTION_S).daily
    moved = find_periods(values * 1e-5 + 0.02, np.ones(len(T)) * 4000, RESOLUTION_S).daily
    assert 0 < plain.sum() < len(plain)
    np.testing.assert_array_equal(moved, plain)


def test_the_season_is_the_season() -> None:
    season = 0.15 * np.sin(2 * np.pi * T / DAY)
    values = 1.0 + 1e-4 * T + season + 0.05 * noise(13)[0]
    parts = decompose(values[None, :], np.ones(len(T)), [DAY])
    assert np.abs(parts.seasonal[0] - season).std() < 0.05 * 0.5  # ten days average it to a third
    assert parts.trend[0, -200] == pytest.approx(1.0 + 1e-4 * T[-200], abs=0.03)


def test_an_outlying_day_does_not_make_the_season() -> None:
    season = np.sin(2 * np.pi * T / DAY)
    odd = season + np.where((T >= 700) & (T < 760), 20.0, 0.0) + 0.1 * noise(14)[0]
    parts = decompose(odd[None, :], np.ones(len(T)), [DAY])
    assert np.abs(parts.seasonal[0] - season).max() < 0.5


def test_a_week_is_found_in_what_the_day_leaves_over() -> None:
    t = np.arange(28 * 24)
    season = np.sin(2 * np.pi * t / 24) + np.where(t % 168 >= 120, 2.0, 0.0)
    parts = decompose((season + 0.2 * noise(15, 1, len(t))[0])[None, :], np.ones(len(t)), [24, 168])
    left = parts.seasonal[0] - season
    assert left.std() < 0.3


def test_gaps_are_bridged() -> None:
    weights = np.ones((1, len(T)))
    weights[0, 200:220] = 0.0
    values = np.where(weights > 0, DAILY["sine"], np.nan)
    parts = decompose(values, weights, [DAY])
    assert np.isfinite(parts.seasonal).all()
    assert np.isfinite(parts.trend).all()


def test_a_season_is_carried_on_from_its_last_cycle() -> None:
    carried = carry_on(np.array([[9.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0]]), 3, 12)
    assert carried[0, 7:].tolist() == [1.0, 2.0, 4.0, 1.0, 2.0]


def test_fold_is_the_mean_of_each_phase() -> None:
    folded = fold(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), np.array([[1.0, 1.0, 1.0, 1.0, 0.0]]), 2)
    np.testing.assert_allclose(folded, [[-0.5, 0.5, -0.5, 0.5, -0.5]])
