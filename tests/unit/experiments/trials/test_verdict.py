"""Verdicts on metrics that have no level, no history, or too few trials."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.experiments.trials import (
    Bounds,
    MetricDecision,
    MetricVerdict,
    ModelConfig,
    Sides,
    judge_trials,
)

pytestmark = pytest.mark.filterwarnings("error")

RNG = np.random.default_rng(1)


def noisy(trials: int, points: int = 10) -> Sides:
    return Sides(*RNG.normal(100.0, 1.0, (2, trials, points)))


def rare(trials: int) -> Sides:
    """Return counts of which most trials have none on side A."""
    return Sides(*RNG.poisson(0.05, (2, trials, 10)).astype(float))


def moving(trials: int) -> Sides:
    return Sides(*(RNG.normal(100.0, 1.0, (2, trials, 60)) + 3.0 * np.arange(60)))


def judge(sides: Sides, history: Sides | None = None, model: str | None = None) -> MetricVerdict:
    past = {} if history is None else {"m": history}
    (found,) = judge_trials({"m": sides}, {"m": Bounds(0.01)}, past, ModelConfig(model=model))
    return found


def test_a_side_that_is_zero_after_its_warm_up_is_not_decided() -> None:
    a, b = np.zeros((2, 6, 60))
    a[:, :4], b[:] = 100.0, 1.0
    found = judge(Sides(a, b))
    assert (found.decision, found.trials, found.model) == (MetricDecision.NOT_ENOUGH, 0, "none")


@pytest.mark.parametrize("points", [0, 30])
def test_trials_of_which_all_is_warm_up_are_not_decided(points: int) -> None:
    found = judge(Sides(*np.full((2, 6, points), np.nan)))
    assert (found.decision, found.trials, found.model) == (MetricDecision.NOT_ENOUGH, 0, "none")
    assert np.isnan(found.measured.mean_a)


@pytest.mark.parametrize("trials", [1, 2])
def test_experiments_of_a_history_without_a_level_choose_nothing(trials: int) -> None:
    sides = rare(trials)
    sides.a[0, 0] = 1.0
    found = judge(sides, rare(400))
    assert found.choice
    assert all(np.isfinite(score.false_positives) for score in found.choice.scores)


@pytest.mark.parametrize(
    "history", [moving(300), noisy(1, 1), noisy(2), Sides(*np.full((2, 300, 10), 100.0))]
)
def test_a_history_that_says_little_is_no_hindrance(history: Sides) -> None:
    assert judge(noisy(6, 100), history).decision is MetricDecision.PASS


def test_trials_needed_are_more_than_there_are_unless_that_is_decided() -> None:
    # A permutation test of five trials decides nothing, however quiet these are.
    assert judge(Sides(*np.full((2, 5, 10), 100.0)), model="permutation-test-none").trials_needed is None
    found = judge(Sides(*RNG.normal(100.0, 5.0, (2, 6, 10))))
    assert found.decision is MetricDecision.NOT_ENOUGH
    assert found.trials_needed
    assert found.trials_needed > found.trials


def test_trials_needed_know_that_a_mean_was_taken_from_few_trials() -> None:
    a = np.full((1, 3, 1), 100.0)[0]
    b = a * np.array([[1.0], [1.01], [1.02]])  # differences with a deviation of 1 %
    found = judge(Sides(a, b), model="t-test-none")
    assert found.trials_needed == int(np.ceil(4.3026528**2))  # Student, two degrees
