"""Wilcoxon's signed-rank test: as scipy computes it, with an interval that agrees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.experiments.trials import signed_rank
from pipeline.experiments.trials.signed_rank import EXACT_UP_TO, signed_rank_test
from pipeline.experiments.trials.student import paired_t_test

ALPHA = 0.05


@pytest.mark.parametrize("trials", [1, 2, 5, 6, 7, 24, EXACT_UP_TO, EXACT_UP_TO + 1])
def test_it_is_that_of_scipy(trials: int) -> None:
    values = np.random.default_rng(trials).normal(0.3, 1.0, (20, trials))
    found = signed_rank_test(values, ALPHA)
    way = "exact" if trials <= EXACT_UP_TO else "asymptotic"
    plain = [stats.wilcoxon(row, method=way, correction=way == "asymptotic").pvalue for row in values]
    np.testing.assert_allclose(found.p_value, plain)
    excluded = (found.low > 0) | (found.high < 0)
    assert (excluded == (found.p_value <= ALPHA)).all()
    assert np.isfinite(found.low).all() == (trials >= 6)


def test_the_interval_moves_with_the_differences() -> None:
    values = np.random.default_rng(1).normal(0.0, 1.0, (50, 12))
    found, moved = signed_rank_test(values, ALPHA), signed_rank_test(3.0 + 2.0 * values, ALPHA)
    for one, other in zip(found.figures()[:3], moved.figures()[:3], strict=True):
        np.testing.assert_allclose(3.0 + 2.0 * one, other)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_equal_sides_differ_no_more_often_than_alpha(alpha: float) -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(0.0, 1.0, (2000, 12)) * np.where(rng.random((2000, 12)) < 0.3, 10.0, 1.0)
    share = np.mean(signed_rank_test(values, alpha).p_value <= alpha)
    assert 0.5 * alpha < share < alpha + 3.0 * np.sqrt(alpha / 2000)


def test_a_few_trials_that_are_disturbed_hide_nothing() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0.01, 0.003, (500, 24)) + np.where(
        rng.random((500, 24)) < 0.2, rng.normal(0, 0.1, (500, 24)), 0.0
    )
    ranks, mean = signed_rank_test(values, ALPHA), paired_t_test(values, ALPHA)
    assert np.mean(ranks.p_value <= ALPHA) > 2.0 * np.mean(mean.p_value <= ALPHA)
    assert np.median(ranks.high - ranks.low) < np.median(mean.high - mean.low) / 3.0


def test_trials_without_a_difference_do_not_count() -> None:
    values = np.random.default_rng(4).normal(0.5, 1.0, (4, 10))
    holes = np.insert(values, [0, 4, 10], np.nan, axis=1)
    nothing = np.full((1, 13), np.nan)
    found = signed_rank_test(np.concatenate([holes, nothing]), ALPHA)
    for one, other in zip(found.figures(), signed_rank_test(values, ALPHA).figures(), strict=True):
        np.testing.assert_array_equal(one[:4], other)
    assert [float(figure[4]) for figure in found.figures()] == [0.0, -np.inf, np.inf, 1.0]


def test_differences_that_cancel_are_no_difference() -> None:
    one = 0.1 + 0.2 - 0.3  # rounding
    found = signed_rank_test(np.array([[0.1, -0.1, 0.2, -0.2, 0.3, -0.3, one]]), ALPHA)
    assert found.difference[0] == 0.0
    assert found.p_value[0] == 1.0


def test_experiments_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).normal(0.0, 1.0, (30, 8))
    whole = signed_rank_test(values, ALPHA)
    monkeypatch.setattr(signed_rank, "_MOST_KEPT", 128)
    for one, other in zip(signed_rank_test(values, ALPHA).figures(), whole.figures(), strict=True):
        np.testing.assert_array_equal(one, other)
