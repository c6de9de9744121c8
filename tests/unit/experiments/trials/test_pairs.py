"""Pairs of the same request: matched, held to their error, narrower by what requests share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.bench.trials.simulate import DISTRIBUTIONS, draw_sides
from pipeline.experiments.trials import (
    MODELS,
    Bounds,
    Estimates,
    Experiments,
    MetricDecision,
    ModelConfig,
    Sides,
    judge_trials,
)
from pipeline.experiments.trials.models import BY_REQUEST
from pipeline.experiments.trials.pairs import match_requests, paired_by_request, request_differences
from pipeline.experiments.trials.verdict import MetricVerdict
from tests.support.calibration import calibrated

pytestmark = pytest.mark.filterwarnings("error")

ALPHA = 0.05
COUNT = 1000
MOST = COUNT * ALPHA + 4 * (COUNT * ALPHA * (1 - ALPHA)) ** 0.5  # four standard deviations of chance


def served(rng: np.random.Generator, shape: tuple[int, int, int], share: float) -> np.ndarray:
    """Return a match of sides that serve the same requests in the same order, but for a share at random."""
    return np.where(rng.random(shape) < share, np.arange(shape[2]), -1)


def significant(found: Estimates) -> int:
    """Return how many experiments differ significantly; intervals must say the same."""
    differs = found.p_value <= ALPHA
    assert (differs == ((found.low > 0) | (found.high < 0))).all()
    assert ((found.low <= found.difference) & (found.difference <= found.high)).all()
    return int(differs.sum())


def correlated_pairs(correlation: float, points: int, effect: float = 0.0) -> Experiments:
    rng = np.random.default_rng(7)
    shared, *own = rng.standard_normal((3, COUNT, 1, points))
    sides = [100.0 + 10.0 * (correlation**0.5 * shared + (1 - correlation) ** 0.5 * one) for one in own]
    match = np.broadcast_to(np.arange(points), shared.shape)
    return Experiments(sides[0], sides[1] * (1.0 + effect), match=match)


REQUESTS = st.lists(st.lists(st.integers(-1, 4), min_size=4, max_size=4), min_size=2, max_size=2)


@given(REQUESTS, st.lists(st.lists(st.integers(-1, 4), min_size=6, max_size=6), min_size=2, max_size=2))
def test_requests_are_matched_as_one_by_one(a: list[list[int]], b: list[list[int]]) -> None:
    expected = []
    for of_a, of_b in zip(a, b, strict=True):
        free = list(enumerate(of_b))
        row = []
        for request in of_a:
            first = next((each for each in free if request >= 0 and each[1] == request), None)
            row.append(-1 if first is None else first[0])
            if first is not None:
                free.remove(first)
        expected.append(row)
    assert match_requests(np.array(a), np.array(b)).tolist() == expected


STEADY = [name for name in DISTRIBUTIONS if name not in {"machines", "warm-up", "disturbed"}]
"""In which nothing is about a trial that its pairs do not show."""


# Twenty points, of which each follows the last, do not show for how long.
@pytest.mark.parametrize(
    ("name", "points"),
    calibrated(
        [
            (name, points)
            for name in STEADY
            for points in (20, 60, 300)
            if (name, points) != ("correlated", 20)
        ],
        lambda case: case[1] == 60,
    ),
)
def test_equal_sides_of_one_trial_differ_no_more_often_than_alpha(name: str, points: int) -> None:
    rng = np.random.default_rng(points)
    sides = draw_sides(DISTRIBUTIONS[name], rng, (COUNT, 1, points))
    match = served(rng, (COUNT, 1, points), 1.0 if name == "correlated" else 0.8)
    assert significant(paired_by_request(Experiments(*sides, match=match), ALPHA)) <= MOST


@pytest.mark.parametrize("name", calibrated(DISTRIBUTIONS, lambda name: name == "lognormal"))
@pytest.mark.parametrize("trials", [2, 6])
def test_equal_sides_of_several_trials_differ_no_more_often_than_alpha(name: str, trials: int) -> None:
    rng = np.random.default_rng(trials)
    sides = draw_sides(DISTRIBUTIONS[name], rng, (COUNT, trials, 30))
    found = paired_by_request(Experiments(*sides, match=served(rng, (COUNT, trials, 30), 0.5)), ALPHA)
    assert significant(found) <= MOST


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("points", [60, 1000])
def test_the_variance_is_that_of_pairs(correlation: float, points: int) -> None:
    """Of 2 s² / n for independent points, 1 - correlation is left."""
    pairs = correlated_pairs(correlation, points)
    by_pairs, by_points = (MODELS[name].estimate(pairs, ALPHA) for name in (BY_REQUEST, "t-test-none"))
    ratio = np.median(by_pairs.high - by_pairs.low) / np.median(by_points.high - by_points.low)
    # The lag's chance widens it by a few percent, and half of the degrees are gone.
    assert (1 - correlation) ** 0.5 <= ratio <= 1.12 * (1 - correlation) ** 0.5


def test_pairs_find_what_points_do_not() -> None:
    pairs = correlated_pairs(0.9, 60, 0.02)
    by_pairs, by_points = (MODELS[name].estimate(pairs, ALPHA) for name in (BY_REQUEST, "t-test-none"))
    assert (by_pairs.p_value <= ALPHA).mean() > 0.85
    assert (by_points.p_value <= ALPHA).mean() < 0.15
    assert by_pairs.difference.mean() == pytest.approx(0.02, abs=0.001)


def test_requests_of_one_side_do_not_count_in_several_trials() -> None:
    """Sides that serve different requests differ by their costs: pairs do not."""
    rng = np.random.default_rng(3)
    shape = (200, 6, 100)
    cost = rng.lognormal(0.0, 1.5, (*shape[:2], 150))
    a, b = (cost[:, :, part] * rng.normal(1.0, 0.02, shape) for part in (slice(100), slice(50, 150)))
    match = np.broadcast_to(np.where(np.arange(100) < 50, -1, np.arange(100) - 50), shape)
    pairs = Experiments(a, 1.02 * b, match=match)
    by_pairs, by_trials = (MODELS[name].estimate(pairs, ALPHA) for name in (BY_REQUEST, "paired-t-test"))
    assert (by_pairs.p_value <= ALPHA).mean() > 0.9
    assert (by_trials.p_value <= ALPHA).mean() < 0.1


UNBOUNDED = (1.0, -np.inf, np.inf)


def one(a: list[float], b: list[float], match: list[int] | None) -> tuple[float, float, float, float]:
    given = None if match is None else np.array(match)[None, None]
    found = paired_by_request(
        Experiments(np.array(a)[None, None], np.array(b)[None, None], match=given), ALPHA
    )
    significant(found)
    return tuple(float(figure[0]) for figure in found.figures())  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("match", "difference"), [(None, 0.0), ([-1, -1, -1], 0.0), ([-1, 0, -1], -0.5), ([2, -1, -1], 0.5)]
)
def test_no_pair_and_one_pair_say_nothing(match: list[int] | None, difference: float) -> None:
    found = one([2.0, 2.0, 2.0], [1.0, 2.0, 3.0], match)
    assert found == (difference, -np.inf, np.inf, 1.0)


def test_two_pairs_leave_a_wide_interval() -> None:
    difference, low, high, p_value = one([10.0, 10.0], [11.0, 12.0], [0, 1])
    assert difference == pytest.approx(0.15)
    assert (low, high) == pytest.approx((0.15 - 12.706 * 0.05, 0.15 + 12.706 * 0.05), abs=1e-4)
    assert p_value == pytest.approx(2 * np.arctan(1 / 3) / np.pi)


def test_pairs_that_cost_nothing_say_nothing() -> None:
    assert one([0.0, 0.0, 5.0], [1.0, 2.0, 5.0], [0, 1, -1])[1:] == (-np.inf, np.inf, 1.0)


@pytest.mark.parametrize(("points", "p_value"), [(4, 1 / 8), (6, 1 / 32)])
def test_pairs_without_noise_are_as_improbable_as_their_signs(points: int, p_value: float) -> None:
    found = one([10.0] * points, [11.0] * points, list(range(points)))
    assert found[0] == pytest.approx(0.1)
    assert found[3] == p_value
    assert one([10.0] * points, [10.0] * points, list(range(points))) == (0.0, 0.0, 0.0, 1.0)


def test_a_trial_without_pairs_does_not_count() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(100.0, 1.0, (2, 1, 4, 20))
    match = np.broadcast_to(np.arange(20), a.shape).copy()
    match[0, 1] = -1
    rest = [0, 2, 3]
    some, three = (
        paired_by_request(Experiments(a[:, rows], b[:, rows], match=match[:, rows]), ALPHA)
        for rows in ([0, 1, 2, 3], rest)
    )
    np.testing.assert_allclose(some.figures(), three.figures())
    assert np.isnan(request_differences(Experiments(a, b, match=match))[0, 1])
    match[0, rest[1:]] = -1
    alone = paired_by_request(Experiments(a, b, match=match), ALPHA)
    assert (alone.p_value[0], alone.low[0], alone.high[0]) == UNBOUNDED


def sides_of_requests(trials: int, effect: float, points: int = 60) -> Sides:
    """Return sides that serve requests of very different costs in orders of their own, ten of them alone."""
    rng = np.random.default_rng(trials)
    cost = rng.lognormal(0.0, 1.0, (trials, points + 10))
    numbers = [
        np.array([first + rng.permutation(points) for _ in range(trials)]) for first in (0, 10)
    ]  # side B lacks the first ten
    a, b = (np.take_along_axis(cost, which, axis=1) * rng.normal(1.0, 0.02, which.shape) for which in numbers)
    return Sides(a, b * (1.0 + effect), (numbers[0], numbers[1]))


def judge(sides: Sides, history: Sides | None = None, model: str | None = None) -> MetricVerdict:
    past = {} if history is None else {"m": history}
    (found,) = judge_trials({"m": sides}, {"m": Bounds(0.02)}, past, ModelConfig(model=model))
    return found


@pytest.mark.parametrize("trials", [1, 6])
@pytest.mark.parametrize(("effect", "decision"), [(0.04, MetricDecision.FAIL), (0.0, MetricDecision.PASS)])
def test_requests_are_paired_and_counted(trials: int, effect: float, decision: MetricDecision) -> None:
    found = judge(sides_of_requests(trials, effect))
    assert (found.decision, found.model) == (decision, BY_REQUEST)
    assert found.requests
    lost = sum(found.warm_up)
    assert 50 * found.trials - 2 * lost <= found.requests.pairs <= 50 * found.trials
    assert (found.requests.only_a, found.requests.only_b) == (10 * found.trials, 10 * found.trials)


def test_a_history_of_the_same_requests_chooses_pairs() -> None:
    found = judge(sides_of_requests(3, 0.04), sides_of_requests(240, 0.0))
    assert found.choice
    assert {score.model for score in found.choice.scores} == {
        m.name for m in MODELS.values() if not m.by_name
    }
    assert (found.model, found.decision) == (BY_REQUEST, MetricDecision.FAIL)


def test_pairs_are_not_chosen_for_trials_that_have_none() -> None:
    known = sides_of_requests(3, 0.04)
    found = judge(Sides(known.a, known.b), sides_of_requests(240, 0.0))
    assert found.choice
    assert BY_REQUEST not in {score.model for score in found.choice.scores}
    assert found.requests is None


def test_few_pairs_are_no_reason_to_leave_out_the_rest() -> None:
    sides = sides_of_requests(6, 0.0)
    assert sides.requests
    few = np.where(sides.requests[0] < 20, sides.requests[0], -1)
    found = judge(Sides(sides.a, sides.b, (few, sides.requests[1])))
    assert found.model == "paired-t-test"
    assert found.requests
    assert 0 < found.requests.pairs <= 60


def test_no_pairs_at_all_are_not_enough() -> None:
    sides = sides_of_requests(6, 0.0)
    assert sides.requests
    apart = (sides.requests[0], sides.requests[1] + 1000)
    found = judge(Sides(sides.a, sides.b, apart), model=BY_REQUEST)
    assert (found.decision, found.trials_needed) == (MetricDecision.NOT_ENOUGH, None)
    assert found.requests
    assert (found.requests.pairs, found.requests.only_a) == (0, 60 * found.trials)
