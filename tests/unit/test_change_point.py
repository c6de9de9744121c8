from __future__ import annotations

import numpy as np
import pytest

from pipeline.detect.change_point import ChangePointConfig, ChangePoints, find_change_points
from pipeline.model import FloatArray

NOISE = np.random.default_rng(20).normal(0.0, 1.0, 120)


def find(series: FloatArray, weights: FloatArray | None = None, **kwargs: int) -> ChangePoints:
    points = series.shape[-1]
    limits = {"first": 3, "last": points - 3} | kwargs
    return find_change_points(
        np.atleast_2d(series), np.ones(points) if weights is None else weights, **limits
    )


def step(at: int, size: float, points: int = 120) -> FloatArray:
    return NOISE[:points] + np.where(np.arange(points) >= at, size, 0.0)


@pytest.mark.parametrize(
    ("series", "index"),
    [
        pytest.param(step(60, 5.0), 60, id="step up in the middle"),
        pytest.param(step(60, -5.0), 60, id="step down"),
        pytest.param(step(110, 5.0), 110, id="step near the end"),
        pytest.param(step(8, 5.0), 8, id="step near the start"),
        pytest.param(step(60, 5.0) * 1e-6 + 1e-3, 60, id="tiny values"),
        pytest.param(step(60, 5.0) * 1e9, 60, id="huge values"),
    ],
)
def test_finds_a_clear_step_where_it_is(series: FloatArray, index: int) -> None:
    found = find(series)
    assert found.index.tolist() == [index]
    assert found.p_value[0] < 1e-9
    assert found.before[0] == pytest.approx(series[:index].mean())
    assert found.after[0] == pytest.approx(series[index:].mean())


@pytest.mark.parametrize(
    "series",
    [
        pytest.param(np.full(50, 0.1), id="constant that has no exact float"),
        pytest.param(np.zeros(50), id="zeros"),
        pytest.param(np.full(50, 1e15) / 3, id="large constant"),
    ],
)
def test_a_constant_series_has_no_significant_change(series: FloatArray) -> None:
    found = find(series)
    assert found.statistic.tolist() == [0.0]
    assert found.p_value.tolist() == [1.0]


def test_a_step_without_noise_is_certain_and_finite() -> None:
    found = find(np.repeat([1.0, 2.0], 30))
    assert found.index.tolist() == [30]
    assert np.isfinite(found.statistic[0])
    assert found.p_value[0] < 1e-100


@pytest.mark.parametrize("falling", [False, True], ids=["from nothing", "to nothing"])
def test_the_level_of_zeros_is_exactly_zero(falling: bool) -> None:
    series = np.concatenate([np.zeros(33), np.random.default_rng(4).uniform(0.05, 0.08, 17)])
    found = find(series[::-1] if falling else series)
    assert (found.after if falling else found.before).tolist() == [0.0]


def test_is_the_split_of_maximum_likelihood() -> None:
    rng = np.random.default_rng(3)
    series = rng.normal(0, 1, (100, 60)) + np.where(np.arange(60) >= 40, 0.8, 0.0)
    weights = rng.uniform(0.5, 2.0, 60)

    def error(row: FloatArray, at: int) -> float:
        return sum(
            float((w * (x - np.average(x, weights=w)) ** 2).sum())
            for x, w in ((row[:at], weights[:at]), (row[at:], weights[at:]))
        )

    expected = [min(range(3, 58), key=lambda at, row=row: error(row, at)) for row in series]  # type: ignore[misc]
    assert find(series, weights).index.tolist() == expected


def test_looks_only_between_first_and_last() -> None:
    series = step(20, 8.0)
    assert find(series, first=50, last=100).index[0] >= 50
    assert find(series, first=3, last=15).index[0] <= 15


def test_windows_without_data_count_for_nothing() -> None:
    series, weights = step(60, 5.0), np.ones(120)
    weights[::4] = 0.0
    holes = np.where(weights > 0, series, np.nan)
    found = find(holes, weights)
    kept = weights[:60] > 0
    assert found.index[0] in (60, 61)  # window 60 has no data: the change lies at it or right after it
    assert found.before[0] == pytest.approx(series[:60][kept].mean())


def test_heavier_points_decide() -> None:
    series = np.array([1.0, 1.1, 0.9, 1.0, 9.0, 2.0, 2.1, 1.9, 2.0, 2.0])
    weights = np.ones(10) * 100
    weights[4] = 0.01  # an outlier from a window of hardly any samples
    assert find(series, weights, first=2, last=8).index.tolist() in ([4], [5])
    assert find(series, weights, first=2, last=8).after[0] == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize(
    ("points", "first", "last"), [(4, 1, 3), (0, 1, 0), (10, 8, 2)], ids=["too short", "empty", "no room"]
)
def test_too_few_points_give_no_change_point(points: int, first: int, last: int) -> None:
    found = find_change_points(np.ones((2, points)), np.ones(points), first=first, last=last)
    assert found.index.tolist() == [-1, -1]
    assert found.p_value.tolist() == [1.0, 1.0]


def test_no_series_gives_no_answers() -> None:
    assert len(find_change_points(np.empty((0, 9)), np.ones(9), first=1, last=8).index) == 0


def test_many_series_at_once_equal_one_at_a_time() -> None:
    series = np.random.default_rng(5).normal(0, 1, (1200, 40))
    together = find(series)
    assert together.index.tolist() == [int(find(row).index[0]) for row in series]


def test_min_points_holds_on_both_sides() -> None:
    series = np.zeros(20)
    series[-1] = 100.0
    config = ChangePointConfig(min_points=4)
    found = find_change_points(series[None, :], np.ones(20), first=1, last=19, config=config)
    assert 4 <= found.index[0] <= 16


def test_on_noise_the_significance_level_is_kept_despite_the_search() -> None:
    noise = np.random.default_rng(7).normal(0, 1, (4000, 200))
    found = find_change_points(noise, np.ones(200), first=150, last=197)
    assert (found.p_value < 0.01).mean() < 0.01
    assert (found.p_value < 0.01).mean() > 0.0005  # and not by never finding anything
