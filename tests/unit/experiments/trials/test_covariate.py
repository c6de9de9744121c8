"""Covariates: the error stays, the variance falls by what they explain, and a changed one is not used."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from loadgen.bench.trials.simulate import DISTRIBUTIONS, draw_covariate, draw_sides
from pipeline.experiments.trials import (
    MODELS,
    Bounds,
    Covariate,
    Experiments,
    MetricDecision,
    ModelConfig,
    Sides,
    judge_trials,
)
from pipeline.experiments.trials.covariate import (
    CHANGED,
    Adjusted,
    Use,
    adjust,
    regression_test,
    slope,
    without,
)
from pipeline.experiments.trials.estimate import trial_differences
from pipeline.experiments.trials.history import interval_test
from pipeline.experiments.trials.verdict import MetricVerdict
from tests.support.calibration import calibrated

pytestmark = pytest.mark.filterwarnings("error")

ALPHA = 0.05
COUNT = 1000
MOST = COUNT * ALPHA + 4 * (COUNT * ALPHA * (1 - ALPHA)) ** 0.5  # four standard deviations of chance


def drawn(name: str, shape: tuple[int, int, int], correlation: float) -> tuple[Experiments, np.ndarray]:
    """Return A/A experiments and the differences of a covariate: (experiments, trials)."""
    rng = np.random.default_rng((shape[1], len(name)))
    many = Experiments(*draw_sides(DISTRIBUTIONS[name], rng, (1, 2000, shape[2])))
    found = Experiments(*draw_sides(DISTRIBUTIONS[name], rng, shape))
    return found, draw_covariate(rng, trial_differences(found) / trial_differences(many).std(), correlation)


@pytest.mark.parametrize("name", calibrated(DISTRIBUTIONS, lambda name: name == "lognormal"))
@pytest.mark.parametrize("trials", [5, 12])
@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_equal_sides_differ_no_more_often_than_alpha_by_trials(
    name: str, trials: int, correlation: float
) -> None:
    equal, covariate = drawn(name, (COUNT, trials, 30), correlation)
    found = regression_test(trial_differences(equal), covariate, ALPHA)
    differs = found.p_value <= ALPHA
    assert differs.sum() <= MOST
    assert (differs == ((found.low > 0) | (found.high < 0))).all()


@pytest.mark.parametrize("name", calibrated(DISTRIBUTIONS, lambda name: name == "lognormal"))
@pytest.mark.parametrize("trials", [1, 6])
def test_equal_sides_differ_no_more_often_than_alpha_by_history(name: str, trials: int) -> None:
    """Of ten services, as all experiments of one share what chance is in its history."""
    equal, covariate = drawn(name, (COUNT, trials, 30), 0.8)
    past, usual = drawn(name, (10, 400, 30), 0.8)
    found = dict.fromkeys(("permutation-test-none", "confidence-interval-none", "paired-t-test"), 0)
    for service, rows in enumerate(np.split(np.arange(COUNT), 10)):
        history = Experiments(past.a[[service]], past.b[[service]])
        own = Covariate("x", usual[service])
        learnt = adjust(history, history, own, own, None)
        assert learnt.past
        adjusted = without(
            Experiments(equal.a[rows], equal.b[rows]),
            learnt.by.theta * covariate[rows],
        )
        known = Experiments(adjusted.a, adjusted.b, trial_differences(learnt.past)[0])
        for model in found:
            estimates = MODELS[model].estimate(known, ALPHA)
            differs = estimates.p_value <= ALPHA
            assert (differs == ((estimates.low > 0) | (estimates.high < 0))).all()
            found[model] += int(differs.sum())
    assert max(found.values()) <= MOST


@pytest.mark.parametrize("name", calibrated(["normal", "lognormal"], lambda name: name == "lognormal"))
def test_equal_sides_differ_no_more_often_than_alpha_though_covariates_are_tested(name: str) -> None:
    """A covariate that differs by chance is left out, and then the metric differs by the same chance."""
    equal, covariate = drawn(name, (COUNT, 8, 10), 0.9)
    paired = MODELS["paired-t-test"]
    count = unused = 0
    for number in range(COUNT):
        one = Experiments(equal.a[number : number + 1], equal.b[number : number + 1])
        found = adjust(one, None, Covariate("x", covariate[number]), None, ALPHA)
        unused += found.by.use is Use.CHANGED
        count += (found.estimates or paired.estimate(found.experiments, ALPHA)).p_value[0] <= ALPHA
    assert count <= MOST
    assert unused <= COUNT * CHANGED + 4 * (COUNT * CHANGED) ** 0.5


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_variance_falls_by_the_square_of_the_correlation(correlation: float) -> None:
    equal, covariate = drawn("normal", (COUNT, 20, 30), correlation)
    differences = trial_differences(equal)
    plain = MODELS["paired-t-test"].estimate(equal, ALPHA)
    theta = slope(differences.reshape(1, -1), covariate.reshape(1, -1))
    by_past = MODELS["paired-t-test"].estimate(without(equal, theta * covariate), ALPHA)
    by_trials = regression_test(differences, covariate, ALPHA)
    expected = (1 - correlation**2) ** 0.5
    for found in (by_past, by_trials):
        ratio = np.median(found.high - found.low) / np.median(plain.high - plain.low)
        assert ratio == pytest.approx(expected, rel=0.06)


def test_a_covariate_finds_what_trials_alone_do_not() -> None:
    equal, covariate = drawn("machines", (COUNT, 8, 60), 0.9)
    slower = equal.slower(0.02)
    plain = MODELS["paired-t-test"].estimate(slower, ALPHA)
    adjusted = regression_test(trial_differences(slower), covariate, ALPHA)
    assert (plain.p_value <= ALPHA).mean() < 0.7
    assert (adjusted.p_value <= ALPHA).mean() > 0.95
    assert adjusted.difference.mean() == pytest.approx(0.02, abs=0.001)


def test_regression_is_that_of_scipy() -> None:
    rng = np.random.default_rng(2)
    covariate = rng.normal(0.0, 0.1, 9)
    differences = 0.02 + 0.7 * covariate + rng.normal(0.0, 0.05, 9)
    found = regression_test(differences[None], covariate[None], ALPHA)
    line = stats.linregress(covariate, differences)
    half = stats.t.ppf(1 - ALPHA / 2, 7) * line.intercept_stderr
    assert found.difference[0] == pytest.approx(line.intercept)
    assert (found.low[0], found.high[0]) == pytest.approx((line.intercept - half, line.intercept + half))
    assert found.p_value[0] == pytest.approx(2 * stats.t.sf(abs(line.intercept / line.intercept_stderr), 7))


def test_a_past_of_few_trials_strays_as_much_as_new_ones() -> None:
    """With a slope by twenty trials, these stray less than new ones: each is adjusted by the others."""
    rng = np.random.default_rng(4)
    count = 0
    for _ in range(COUNT):
        x = rng.normal(0.0, 0.01, 21)
        b = 100.0 * (1.0 + x + rng.normal(0.0, 0.005, 21))[None, :, None]
        a = np.full_like(b, 100.0)
        found = adjust(
            Experiments(a[:, :1], b[:, :1]),
            Experiments(a[:, 1:], b[:, 1:]),
            Covariate("x", x[:1]),
            Covariate("x", x[1:]),
            None,
        )
        assert found.past
        history = trial_differences(found.past)[0]
        p_value = interval_test(trial_differences(found.experiments), history, 1 / 21).p_value[0]
        count += p_value <= 1 / 21 + 1e-9
    assert count <= COUNT / 21 + 4 * (COUNT / 21) ** 0.5


NOISE = np.random.default_rng(9)


def trials_of(x: np.ndarray, effect: float = 0.0, follows: float = 1.0) -> Sides:
    """Return trials whose difference follows a covariate."""
    a, b = NOISE.normal(100.0, 0.5, (2, len(x), 30))
    followed = effect + follows * np.where(np.isfinite(x), x, 0.0)
    return Sides(a, b * (1.0 + followed)[:, None], covariate=Covariate("x", x))


def judge(sides: Sides, history: Sides | None = None, config: ModelConfig | None = None) -> MetricVerdict:
    past = {} if history is None else {"m": history}
    (found,) = judge_trials({"m": sides}, {"m": Bounds(0.005)}, past, config or ModelConfig())
    return found


USUAL = NOISE.normal(0.0, 0.02, 400)
NOW = np.array([0.03, -0.01, 0.02, -0.03, -0.02, 0.0, 0.025, -0.02])


@pytest.mark.parametrize(("history", "use"), [(True, Use.HISTORY), (False, Use.TRIALS)])
@pytest.mark.parametrize(("effect", "decision"), [(0.01, MetricDecision.FAIL), (0.0, MetricDecision.PASS)])
def test_verdicts_are_adjusted(history: bool, use: Use, effect: float, decision: MetricDecision) -> None:
    sides = trials_of(NOW, effect)
    found = judge(sides, trials_of(USUAL) if history else None)
    plain = judge(Sides(sides.a, sides.b))
    assert plain.decision is MetricDecision.NOT_ENOUGH
    assert found.decision is decision
    assert found.adjustment
    assert (found.adjustment.use, found.adjustment.covariate) == (use, "x")
    assert found.adjustment.theta == pytest.approx(1.0, abs=0.15)
    assert found.adjustment.variance_fell > 0.9
    assert found.measured.mean_b == plain.measured.mean_b


@pytest.mark.parametrize("history", [True, False])
def test_a_covariate_that_side_b_changes_is_not_used(history: bool) -> None:
    """Side B serves more requests and costs more: who takes out the one takes out the other."""
    found = judge(trials_of(NOW + 0.1), trials_of(USUAL) if history else None)
    assert found.adjustment
    assert (found.adjustment.use, found.adjustment.theta) == (Use.CHANGED, 0.0)
    assert found.adjustment.difference == pytest.approx(NOW.mean() + 0.1)
    assert found.decision is MetricDecision.FAIL


def test_one_trial_is_adjusted_by_the_past() -> None:
    found = judge(trials_of(NOW[:1]), trials_of(USUAL))
    assert found.decision is MetricDecision.PASS
    changed = judge(trials_of(np.array([0.2])), trials_of(USUAL))
    assert changed.adjustment
    assert changed.adjustment.use is Use.CHANGED


@pytest.mark.parametrize(
    ("x", "usual", "use"),
    [
        (np.zeros(8), None, Use.CONSTANT),
        (NOW * 1e-14, None, Use.CONSTANT),  # rounding
        (NOW, np.zeros(400), Use.CHANGED),  # what never differed differs now
        (np.zeros(8), np.zeros(400), Use.CONSTANT),
        (np.full(8, np.nan), None, Use.CONSTANT),
        (NOW[:4], None, Use.FEW),
        (NOW[:4], USUAL[:19], Use.FEW),
        (NOW, USUAL[:19], Use.TRIALS),
        (NOW, np.full(400, np.inf), Use.TRIALS),
        (NOW[:1], None, Use.FEW),
    ],
)
def test_what_explains_nothing_changes_nothing(x: np.ndarray, usual: np.ndarray | None, use: Use) -> None:
    sides = trials_of(x, follows=0.0)
    past = None if usual is None else trials_of(usual, follows=0.0)
    found, plain = (
        judge(one, before)
        for one, before in ((sides, past), (Sides(sides.a, sides.b), past and Sides(past.a, past.b)))
    )
    assert found.adjustment
    assert found.adjustment.use is use
    if use is not Use.TRIALS:
        assert found.measured == plain.measured


@pytest.mark.parametrize("config", [ModelConfig(sequential=True), ModelConfig(model="permutation-test-none")])
def test_other_tests_are_adjusted_by_the_past_alone(config: ModelConfig) -> None:
    sides = trials_of(NOW, 0.03)
    alone, known = judge(sides, None, config), judge(sides, trials_of(USUAL), config)
    assert alone.adjustment
    assert alone.adjustment.use is Use.FEW
    assert known.adjustment
    assert known.adjustment.use is Use.HISTORY
    assert known.measured.high - known.measured.low < alone.measured.high - alone.measured.low


def test_a_covariate_that_explains_more_than_all_leaves_costs_positive() -> None:
    equal = Experiments(np.full((1, 2, 3), 10.0), np.full((1, 2, 3), 10.0))
    found = without(equal, np.array([[3.0, -0.5]]))
    np.testing.assert_array_equal(found.b[0, :, 0], [0.0, 15.0])


def test_differences_that_follow_without_noise_leave_none() -> None:
    x = NOW[None]
    found = regression_test(0.5 * x, x, ALPHA)
    assert (found.difference[0], found.p_value[0]) == (0.0, 1.0)
    shifted = regression_test(0.5 * x + 0.01, x, ALPHA)
    assert shifted.difference[0] == pytest.approx(0.01)
    assert shifted.p_value[0] == 2.0**-6


def test_adjusted_is_what_was_given_where_nothing_is_learnt() -> None:
    equal = Experiments(np.full((1, 2, 3), 10.0), np.full((1, 2, 3), 11.0))
    found = adjust(equal, None, Covariate("x", np.array([0.1, -0.1])), None, ALPHA)
    assert isinstance(found, Adjusted)
    assert found.experiments is equal
    assert found.estimates is None
