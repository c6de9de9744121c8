"""Seasons that repeat through a series: found with their period and shape, and not where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.offline.season import find_seasons
from pipeline.model import FloatArray

WEEK = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 7.0, 7.0])
TIME = np.arange(210)


def noise(points: int, seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).standard_normal(points)


def wandering(points: int, seed: int) -> FloatArray:
    return np.cumsum(noise(points, seed))


@pytest.mark.parametrize(
    ("signal", "period", "cycle"),
    [
        pytest.param(np.resize(WEEK, 210), 7.0, np.resize(WEEK - 2, 210), id="weeks, their mean taken off"),
        pytest.param(5 * np.sin(2 * np.pi * TIME / 30), 30.0, 5 * np.sin(2 * np.pi * TIME / 30), id="a wave"),
        pytest.param(
            5 * np.cos(2 * np.pi * TIME / 30) + 0.1 * TIME,
            30.0,
            5 * np.cos(2 * np.pi * TIME / 30),
            id="a wave on a line",
        ),
        pytest.param(
            np.resize(WEEK, 210) + 20 * (TIME >= 100), 7.0, np.resize(WEEK - 2, 210), id="weeks with a step"
        ),
        pytest.param((-1.0) ** TIME * 4, 2.0, (-1.0) ** TIME * 4, id="every other point"),
    ],
)
def test_period_and_shape(signal: FloatArray, period: float, cycle: FloatArray) -> None:
    seasons = find_seasons(signal + 0.5 * noise(210), bound=3.0)
    right = [season for season in seasons if season.period == pytest.approx(period, rel=0.01)]
    assert min(float(np.abs(season.component - cycle).mean()) for season in right) < 0.3
    for season in seasons:
        assert float(season.component.mean()) == pytest.approx(0.0, abs=1e-9)


def test_a_season_takes_half_a_logarithm_a_coefficient_and_two_for_its_period() -> None:
    for season in find_seasons(np.resize(WEEK, 210) + 0.5 * noise(210), bound=3.0):
        assert season.nats == pytest.approx((0.5 * 6 + 2) * np.log(210))  # three sines and three cosines


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "signal",
    [
        pytest.param(0.0 * TIME, id="nothing"),
        pytest.param(6.0 * (TIME >= 100), id="a step"),
        pytest.param(0.1 * TIME, id="a line"),
    ],
)
def test_noise_holds_no_season(signal: FloatArray, seed: int) -> None:
    assert find_seasons(signal + noise(210, seed), bound=3.0) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_wandering_level_holds_no_season(seed: int) -> None:
    assert find_seasons(wandering(210, seed), bound=3.0) == []


@pytest.mark.parametrize(
    "values", [np.zeros(0), np.resize([0.0, 9.0], 11), np.full(50, 3.0)], ids=["none", "few", "constant"]
)
def test_where_none_can_be_reported(values: FloatArray) -> None:
    assert find_seasons(values, bound=3.0) == []


def test_twice_may_be_chance() -> None:
    assert not [
        season
        for season in find_seasons(5 * np.sin(2 * np.pi * TIME / 105) + 0.5 * noise(210), bound=3.0)
        if season.period > 75
    ]
