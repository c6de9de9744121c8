"""Trials over time: their warm-up, looks after each of them, and how many are needed."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.statistics.always_valid import t_radius
from pipeline.experiments.trials import (
    anytime_valid,
    discard_warm_up,
    half_widths,
    trials_needed,
    warm_up_points,
)

POINTS = 120
ROWS = 1000


def steady(rng: np.random.Generator, points: int = POINTS) -> np.ndarray:
    return rng.normal(100.0, 5.0, (ROWS, points))


def test_a_steady_trial_keeps_its_points() -> None:
    lost = warm_up_points(steady(np.random.default_rng(1)))
    assert np.mean(lost > 0) < 0.12
    assert np.mean(lost == POINTS) < 0.005


@pytest.mark.parametrize(("length", "size"), [(5.0, 60.0), (10.0, 60.0), (10.0, -40.0), (3.0, 200.0)])
def test_warm_up_is_discarded_up_to_where_noise_hides_it(length: float, size: float) -> None:
    course = size * np.exp(-np.arange(POINTS) / length)
    lost = warm_up_points(steady(np.random.default_rng(2)) + course)
    visible = int(np.searchsorted(-np.abs(course), -15.0))  # three deviations of a point
    assert np.quantile(lost, 0.02) >= visible
    assert np.median(lost) < POINTS // 2


def test_a_level_that_still_moves_is_not_stationary() -> None:
    lost = warm_up_points(steady(np.random.default_rng(3)) + 0.5 * np.arange(POINTS))
    assert (lost == POINTS).all()


def test_too_few_points_are_kept() -> None:
    assert not warm_up_points(np.array([[9.0] * 5 + [1.0] * 10])).any()


def test_trials_of_different_length_are_looked_at_by_themselves() -> None:
    rng = np.random.default_rng(4)
    warming = rng.normal(100.0, 1.0, 60) + 50 * np.exp(-np.arange(60) / 4)
    values = np.full((2, 90), np.nan)
    values[0, :60] = warming
    values[1] = rng.normal(100.0, 1.0, 90)
    together = warm_up_points(values)
    assert together[0] == warm_up_points(warming[None])[0] > 5
    assert together[1] == warm_up_points(values[1:])[0]


def test_both_sides_of_a_trial_lose_as_many() -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(100.0, 1.0, (1, 60))
    b = rng.normal(100.0, 1.0, (1, 80)) + 50 * np.exp(-np.arange(80) / 4)
    rest_a, rest_b, lost = discard_warm_up(a, b)
    assert lost[0] > 5
    assert np.isnan(rest_a[0]).sum() == np.isnan(rest_b[0]).sum() == lost[0]


def test_looks_after_every_trial_hold_the_error_together() -> None:
    rng = np.random.default_rng(6)
    differences = rng.standard_t(4, (2000, 60))
    ever = np.zeros(2000, dtype=bool)
    for trials in range(2, 61):
        ever |= anytime_valid(differences[:, :trials], 0.05).p_value <= 0.05
    assert np.mean(ever) < 0.05
    plain = np.abs(differences.mean(axis=1)) / differences.std(axis=1, ddof=1) * 60**0.5
    assert 0.03 < np.mean(plain > 2.0) < 0.07  # one look of a plain test takes all of it


def test_looks_find_a_regression_and_their_interval_agrees() -> None:
    rng = np.random.default_rng(7)
    found = anytime_valid(rng.normal(0.02, 0.01, (500, 20)), 0.05)
    assert (found.p_value <= 0.05).all()
    assert ((found.low > 0) == (found.p_value <= 0.05)).all()
    unsure = anytime_valid(rng.normal(0.004, 0.01, (500, 8)), 0.05)
    assert (((unsure.low > 0) | (unsure.high < 0)) == (unsure.p_value <= 0.05)).all()


def test_one_trial_says_nothing() -> None:
    found = anytime_valid(np.array([[0.5]]), 0.05)
    assert (found.low[0], found.high[0], found.p_value[0]) == (-np.inf, np.inf, 1.0)


@pytest.mark.parametrize(("threshold", "trials"), [(0.02, 1), (0.01, 4), (0.001, 386), (1e-5, None)])
def test_trials_needed(threshold: float, trials: int | None) -> None:
    history = np.tile([0.01, -0.01], 500)  # a deviation of 1 %
    needed = trials_needed(history, threshold)
    assert needed == trials
    if needed:
        assert half_widths(history, np.array([needed]))[0] <= threshold


def test_trials_needed_for_absurd_thresholds() -> None:
    history = np.tile([0.01, -0.01], 500)
    with np.errstate(all="raise"):
        assert [trials_needed(history, threshold) for threshold in (5e-324, 1e-308, 1e308)] == [None, None, 1]


@pytest.mark.parametrize("level", [0.1, 0.11, 7.0, 0.0])
def test_a_trial_without_noise_is_steady(level: float) -> None:
    values = np.full((2, 60), level)
    values[1, 3] += 1.0  # a rare event: what comes before its average has gone is warm-up
    lost = warm_up_points(values)
    assert lost[0] == 0
    assert 3 < lost[1] < 30


def test_a_tiny_alpha_leaves_the_interval_open() -> None:
    with np.errstate(all="raise"):
        found = anytime_valid(np.array([[0.5, 0.4, 0.5]]), 1e-300)
    assert (found.low[0], found.high[0]) == (-np.inf, np.inf)
    assert 0 < found.p_value[0] < 1


def test_trials_needed_by_who_looks_after_every_trial() -> None:
    history = np.tile([0.01, -0.01], 500)
    needed = trials_needed(history, 0.01, sequential=True)
    assert needed
    half = t_radius(np.array([needed - 1, needed]), 0.05) * 0.01 / np.sqrt([needed - 1, needed])
    assert half[1] <= 0.01 < half[0]
    assert trials_needed(history, 1e-9, sequential=True) is None


@pytest.mark.parametrize("alpha", [1e-300, 0.05, 0.5])
def test_without_a_spread_the_first_interval_is_enough(alpha: float) -> None:
    with np.errstate(all="raise", under="ignore"):
        assert trials_needed(np.zeros(9), 0.01, alpha) == (1 if alpha > 1e-9 else None)
        needed = trials_needed(np.zeros(9), 0.01, alpha, sequential=True)
    assert needed
    equal = [anytime_valid(np.full((1, trials), 0.5), alpha).p_value[0] for trials in (needed - 1, needed)]
    assert equal[1] <= alpha < equal[0]
