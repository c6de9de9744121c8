"""Models of trials: each holds its errors, and its interval says what its p-value says."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from loadgen.bench.trials.simulate import DISTRIBUTIONS, draw_sides
from pipeline.experiments.trials import (
    MODELS,
    Bounds,
    ChoiceConfig,
    Estimates,
    Experiments,
    MetricDecision,
    Model,
    choose,
    decide,
)
from pipeline.experiments.trials.estimate import trial_differences
from pipeline.experiments.trials.history import interval_test
from pipeline.experiments.trials.permutation import permutation_test
from pipeline.experiments.trials.student import t_test, trimmed_means
from tests.support.calibration import calibrated

ALPHA = 0.05
COUNT = 1000
MOST = COUNT * ALPHA + 4 * (COUNT * ALPHA * (1 - ALPHA)) ** 0.5  # four standard deviations of chance


@cache
def experiments(name: str, trials: int, count: int = COUNT, regression: float = 0.0) -> Experiments:
    rng = np.random.default_rng((trials, len(name)))
    past = Experiments(*draw_sides(DISTRIBUTIONS[name], rng, (400, 1, 60)))
    sides = draw_sides(DISTRIBUTIONS[name], rng, (count, trials, 60), regression)
    match = np.broadcast_to(np.arange(60), (count, trials, 60))  # as if both served the same requests
    return Experiments(*sides, trial_differences(past)[:, 0], match)


OVER_POINTS = {"t-test-none", "t-test-sqrt", "t-test-outlier-elim", "t-test-outlier-cap"}
"""Models that take what differs between trials for noise of points."""

OF_ONE_TRIAL = {(1, "paired-by-request"), (1, "paired-by-request-trimmed")}
"""They do so of a single trial."""

HELD = [
    (distribution, trials, model)
    for distribution in DISTRIBUTIONS
    for trials in (1, 6)
    for model in MODELS
    if not (model in OVER_POINTS and distribution in {"correlated", "machines", "warm-up", "disturbed"})
    and not ((trials, model) in OF_ONE_TRIAL and distribution in {"machines", "warm-up", "disturbed"})
]


@pytest.mark.parametrize(
    ("distribution", "trials", "model"), calibrated(HELD, lambda case: case[:2] == ("normal", 6))
)
def test_equal_sides_differ_no_more_often_than_alpha(distribution: str, trials: int, model: str) -> None:
    found = MODELS[model].estimate(experiments(distribution, trials), ALPHA)
    assert np.sum(found.p_value <= ALPHA) <= MOST


@pytest.mark.parametrize("distribution", ["correlated", "machines"])
def test_what_differs_between_trials_misleads_a_test_of_points(distribution: str) -> None:
    found = MODELS["t-test-none"].estimate(experiments(distribution, 6), ALPHA)
    assert np.sum(found.p_value <= ALPHA) > MOST


def test_ranks_find_more_where_some_trials_are_disturbed() -> None:
    given = experiments("disturbed", 20, 300, 0.005)
    ranks, mean = (MODELS[name].estimate(given, ALPHA) for name in ("signed-rank", "paired-t-test"))
    assert np.mean(ranks.p_value <= ALPHA) > np.mean(mean.p_value <= ALPHA) + 0.2
    assert np.median(ranks.high - ranks.low) < 0.6 * np.median(mean.high - mean.low)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("trials", [1, 2, 6, 20])
@pytest.mark.parametrize("regression", [0.0, 0.03])
def test_interval_and_p_value_agree(model: str, trials: int, regression: float) -> None:
    found = MODELS[model].estimate(experiments("normal", trials, 200, regression), ALPHA)
    significant = found.p_value <= ALPHA
    excluded = (found.low > 0) | (found.high < 0)
    assert (significant == excluded).all()
    assert (found.low <= found.difference).all()
    assert (found.difference <= found.high).all()


@pytest.mark.parametrize("model", MODELS)
def test_a_large_regression_is_found_and_measured(model: str) -> None:
    found = MODELS[model].estimate(experiments("normal", 8, 100, 0.10), ALPHA)
    assert (found.p_value <= ALPHA).all()
    assert np.median(found.difference) == pytest.approx(0.10, abs=0.01)


@pytest.mark.parametrize("model", MODELS)
def test_equal_constants_do_not_differ(model: str) -> None:
    sides = np.full((1, 6, 30), 7.0)
    found = MODELS[model].estimate(Experiments(sides, sides.copy(), np.zeros(50)), ALPHA)
    assert found.difference[0] == 0
    assert found.p_value[0] == 1


def test_t_test_is_that_of_scipy() -> None:
    a, b = np.random.default_rng(1).normal(10, 1, (2, 5, 40))
    found = t_test(Experiments(a[:, None], b[:, None]), ALPHA)
    plain = stats.ttest_ind(b, a, axis=1, equal_var=False)
    interval = plain.confidence_interval(1 - ALPHA)
    mean = a.mean(axis=1)
    np.testing.assert_allclose(found.p_value, plain.pvalue)
    np.testing.assert_allclose(found.low, interval.low / mean)
    np.testing.assert_allclose(found.high, interval.high / mean)


def test_points_that_are_missing_count_as_none() -> None:
    values = np.array([[3.0, 1.0, 2.0, np.nan, np.nan]])
    means = trimmed_means(values, 0.0)
    assert (means.mean[0], means.degrees[0]) == (2.0, 2.0)
    assert means.variance[0] == pytest.approx(1.0 / 3.0)


def test_trimmed_mean_leaves_out_the_largest() -> None:
    means = trimmed_means(np.array([[1.0, 2.0, 3.0, 100.0]]), 0.25)
    assert means.mean[0] == 2.0
    # winsorised: 1, 2, 3, 3 around 2.25; squares 2.75 over h (h - 1) = 6
    assert means.variance[0] == pytest.approx(2.75 / 6)


@example([0.682, -0.682, 0.0, 1.0])
@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=2, max_size=7))
def test_subsets_give_the_p_value_of_flipped_signs(values: list[float]) -> None:
    """The slow reference: every flip of signs, and those that reach the observed sum or beyond."""
    differences = np.array(values)
    sums = [float(np.dot(signs, differences)) for signs in itertools.product((1.0, -1.0), repeat=len(values))]
    observed = float(differences.sum())
    above = sum(each >= observed - 1e-12 for each in sums)
    beneath = sum(each <= observed + 1e-12 for each in sums)
    found = permutation_test(differences[None], ALPHA)
    assert found.p_value[0] == pytest.approx(min(1.0, 2 * min(above, beneath) / len(sums)))


def test_five_trials_never_suffice_for_five_percent() -> None:
    found = permutation_test(np.full((1, 5), 0.3), ALPHA)
    assert found.p_value[0] == pytest.approx(2 / 32)
    assert (found.low[0], found.high[0]) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("observed", "p_value"),
    [(0.0, 1.0), (0.5, (1 + 15) / 20), (-0.5, (1 + 15) / 20), (1.9, 2 / 20), (5.0, 1 / 20)],
)
def test_one_trial_is_ranked_among_the_history(observed: float, p_value: float) -> None:
    history = np.arange(1, 20) / 10.0 * np.where(np.arange(19) % 2, 1, -1)
    assert interval_test(np.array([[observed]]), history, ALPHA).p_value[0] == pytest.approx(p_value)


def test_without_a_history_nothing_is_significant() -> None:
    found = interval_test(np.array([[9.0]]), np.empty(0), ALPHA)
    assert (found.p_value[0], found.low[0], found.high[0]) == (1.0, -np.inf, np.inf)


@pytest.mark.parametrize(
    ("difference", "low", "high", "p_value", "direction", "decision"),
    [
        (0.02, 0.005, 0.035, 0.01, "up", MetricDecision.FAIL),
        (0.02, -0.001, 0.041, 0.06, "up", MetricDecision.NOT_ENOUGH),
        (0.008, 0.005, 0.011, 0.001, "up", MetricDecision.NOT_ENOUGH),
        (0.005, 0.002, 0.008, 0.001, "up", MetricDecision.PASS),
        (0.0, -0.004, 0.004, 1.0, "up", MetricDecision.PASS),
        (-0.05, -0.06, -0.04, 0.001, "up", MetricDecision.PASS),
        (-0.05, -0.06, -0.04, 0.001, "down", MetricDecision.FAIL),
        (0.05, 0.04, 0.06, 0.001, "down", MetricDecision.PASS),
        (0.0, -np.inf, np.inf, 1.0, "up", MetricDecision.NOT_ENOUGH),
        (0.0, -np.inf, np.inf, 1.0, "down", MetricDecision.NOT_ENOUGH),
    ],
)
def test_decisions(
    difference: float, low: float, high: float, p_value: float, direction: str, decision: MetricDecision
) -> None:
    estimates = Estimates(*(np.array([value]) for value in (difference, low, high, p_value)))
    bounds = Bounds(0.01, ALPHA, "down" if direction == "down" else "up")
    assert decide(estimates, bounds) == [decision]


def test_choice_takes_the_model_that_finds_most_and_holds_its_bound() -> None:
    # Points of trials whose machines differ: tests of points call equal sides different.
    chosen = choose(experiments("machines", 6, 300), ChoiceConfig(regression=0.03))
    held = {score.model for score in chosen.scores if score.holds}
    assert not held & OVER_POINTS
    assert chosen.model in held
    best = min(score.false_negatives for score in chosen.scores if score.holds)
    assert next(s for s in chosen.scores if s.model == chosen.model).false_negatives <= best + 0.05


def test_regressions_that_production_found_after_a_pass_change_the_choice() -> None:
    tried = experiments("normal", 6, 40)
    config = ChoiceConfig(regression=0.05)
    first = choose(tried, config)
    assert first.model
    before = next(score for score in first.scores if score.model == first.model)
    second = choose(tried, replace(config, missed={first.model: 40}))
    after = next(score for score in second.scores if score.model == first.model)
    assert after.false_negatives == pytest.approx((40 * before.false_negatives + 40) / 80)
    assert second.model != first.model


def test_choice_leaves_the_history_out_where_there_is_none() -> None:
    equal = experiments("normal", 6, 40)
    chosen = choose(Experiments(equal.a, equal.b), ChoiceConfig(regression=0.05))
    assert "confidence-interval-none" not in {score.model for score in chosen.scores}


@pytest.mark.parametrize(
    ("points", "p_value", "half"),
    [(1, 1.0, np.inf), (2, 2 / 16, np.inf), (3, 2 / 64, 0.0), (60, 2 / 4**60, 0.0)],
)
def test_constant_sides_that_differ_are_significant_from_three_points_on(
    points: int, p_value: float, half: float
) -> None:
    """Of a coin, n heads and then n tails, or the reverse: 2 / 4^n."""
    found = t_test(Experiments(np.full((1, 1, points), 100.0), np.full((1, 1, points), 125.0)), ALPHA)
    assert found.p_value[0] == pytest.approx(p_value)
    assert (found.low[0], found.high[0]) == (0.25 - half, 0.25 + half)


def test_points_of_a_coin_differ_no_more_often_than_alpha() -> None:
    for points in (2, 3, 4, 10):
        sides = 1.0 + np.random.default_rng(points).integers(0, 2, (2, 4000, 1, points))
        assert np.mean(t_test(Experiments(*sides), ALPHA).p_value <= ALPHA) < ALPHA + 0.015


@pytest.mark.parametrize(("outliers", "rare"), [("elim", 9), ("cap", 2)])
def test_a_side_without_its_outliers_may_be_zero(outliers: Literal["elim", "cap"], rare: int) -> None:
    a, b = np.zeros((2, 1, 1, 40))
    a[0, 0, 0] = b[0, 0, :rare] = 1.0
    with np.errstate(all="raise"):
        found = t_test(Experiments(a, b), ALPHA, outliers)
    assert (found.p_value[0], found.low[0], found.high[0]) == (1.0, -np.inf, np.inf)


def test_subsets_of_many_trials_are_drawn_in_parts() -> None:
    rng = np.random.default_rng(1)
    few, many = (rng.normal(0.02, 0.2, (1, trials)) for trials in (900, 3000))
    for differences in (few, many):
        found = permutation_test(differences, ALPHA)
        usual = t_interval(differences[0])
        assert (found.low[0], found.high[0]) == pytest.approx(usual, abs=0.001)


def t_interval(values: np.ndarray) -> tuple[float, float]:
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(1 - ALPHA)
    return float(low), float(high)


def test_a_history_of_many_trials_is_drawn_in_parts() -> None:
    history = np.random.default_rng(1).normal(0.0, 0.1, 500)
    halves = [interval_test(np.zeros((1, trials)), history, ALPHA).high[0] for trials in (900, 3600)]
    assert halves[0] == pytest.approx(2 * halves[1], rel=0.1)


@pytest.mark.parametrize("trials", range(2, 9))
@pytest.mark.parametrize("difference", [0.0, 0.05, -0.3])
def test_equal_differences_are_as_improbable_as_their_signs(trials: int, difference: float) -> None:
    """The noise of a few differences without a spread is not known: three of them are not certain."""
    a = np.full((1, trials, 4), 0.1) * np.linspace(1.0, 1.3, 4)
    found = MODELS["paired-t-test"].estimate(Experiments(a, a * (1.0 + difference)), ALPHA)
    assert found.p_value[0] == (2.0 ** (1 - trials) if difference else 1.0)
    assert (found.low[0] > 0 or found.high[0] < 0) == (found.p_value[0] <= ALPHA)


def test_a_model_that_misses_all_regressions_is_not_chosen_if_another_finds_some() -> None:
    def answers(p_equal: float, found: int) -> Model:
        def estimate(experiments: Experiments, alpha: float) -> Estimates:
            count = len(experiments.a)
            slower = bool(experiments.b.mean() > 100.2)
            p_value = np.full(count, 1.0)
            p_value[: found if slower else int(p_equal * count)] = 0.01
            return Estimates(np.full(count, 0.01), np.zeros(count), np.ones(count), p_value)

        return Model(f"{p_equal}/{found}", "", estimate)

    blind, seeing = answers(0.0, 0), answers(0.05, 2)
    equal = np.full((100, 1, 4), 100.0)
    config = ChoiceConfig(regression=0.01)
    assert choose(Experiments(equal, equal), config, [blind, seeing]).model == seeing.name
    assert choose(Experiments(equal, equal), config, [blind]).model == blind.name
