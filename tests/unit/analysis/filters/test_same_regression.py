"""Whether an earlier scan has passed a regression on already."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.filters import EarlierRegression, FilterConfig
from pipeline.analysis.filters.same_regression import ESCALATED, is_gradual, judge_same_regression
from pipeline.model import Candidate, FloatArray
from tests.support.builders import build_candidate


@pytest.mark.parametrize(
    ("candidate", "known", "passed"),
    [
        pytest.param(build_candidate(before=0.1, after=0.2), [], True, id="nothing known"),
        pytest.param(
            build_candidate(before=0.1, after=0.21),
            [build_candidate(before=0.1, after=0.2)],
            False,
            id="the same",
        ),
        pytest.param(
            build_candidate(before=0.15, after=0.2),
            [build_candidate(before=0.1, after=0.2)],
            False,
            id="historical window now holds old and new level",
        ),
        pytest.param(
            build_candidate(before=0.2, after=0.3),
            [build_candidate(before=0.1, after=0.2)],
            True,
            id="a second regression on top",
        ),
        pytest.param(
            build_candidate(before=0.1, after=0.2),
            [build_candidate(before=0.3, after=0.1)],
            True,
            id="an improvement before does not cover a regression",
        ),
        pytest.param(
            build_candidate(before=100.0, after=80.0),
            [build_candidate(before=100.0, after=81.0)],
            False,
            id="the same drop",
        ),
    ],
)
def test_same_regression(candidate: Candidate, known: list[Candidate], passed: bool) -> None:
    assert same(candidate, known, absolute=0.03) is passed


def configured(absolute: float | None, relative: float | None = None) -> FilterConfig:
    return FilterConfig(10.0, 100.0, absolute=absolute, relative=relative)


def same(
    candidate: Candidate,
    known: list[Candidate],
    *,
    absolute: float | None = None,
    relative: float | None = None,
    recent: float | None = None,
    seen_s: float = 0.0,
) -> bool:
    level = candidate.before if recent is None else recent
    earlier = [EarlierRegression(one, one.change_time + seen_s) for one in known]
    return judge_same_regression(
        candidate, earlier, recent=level, config=configured(absolute, relative)
    ).passed


@pytest.mark.parametrize(
    ("earlier_s", "recent", "seen_s", "passed"),
    [
        pytest.param(50, 0.1, 0, False, id="at the same time, however it looked before"),
        pytest.param(500, 0.2, 0, False, id="long ago, and the level is still there"),
        pytest.param(500, 0.1, 400, True, id="long ago, rolled back, and back again"),
        pytest.param(500, 0.1, 600, False, id="long ago, but reported as one lasting change up to here"),
    ],
)
def test_a_regression_that_comes_back_after_a_rollback_is_new(
    earlier_s: float, recent: float, seen_s: float, passed: bool
) -> None:
    candidate = build_candidate(before=0.12, after=0.2)
    known = replace(build_candidate(before=0.1, after=0.2), change_time=candidate.change_time - earlier_s)
    assert same(candidate, [known], absolute=0.03, recent=recent, seen_s=seen_s) is passed


def test_same_regression_by_a_relative_threshold() -> None:
    known = [build_candidate(before=100.0, after=110.0)]
    risen = build_candidate(before=110.0, after=117.0)
    assert same(risen, known, relative=0.05)
    assert not same(risen, known, relative=0.10)


KNOWN = build_candidate(before=0.1, after=0.2)
LATER_S = 5000.0


@pytest.mark.parametrize(
    ("after", "later_s", "slow", "gradual", "passed", "code"),
    [
        pytest.param(0.3, LATER_S, False, True, False, ESCALATED, id="still growing"),
        pytest.param(0.3, LATER_S, False, False, True, "", id="a step of its own"),
        pytest.param(0.21, LATER_S, False, True, False, "duplicate", id="not beyond what is known"),
        pytest.param(0.3, 0.0, False, True, True, "", id="at the very same time there is nothing between"),
        pytest.param(0.3, -50.0, False, True, True, "", id="before the known one"),
        pytest.param(
            0.3, -50.0, True, True, False, ESCALATED, id="a slow one, of which the beginning is not certain"
        ),
        pytest.param(0.3, -50.0, True, False, True, "", id="a slow one that stepped"),
    ],
)
def test_what_a_known_regression_grows_into_is_no_new_one(
    after: float, later_s: float, slow: bool, gradual: bool, passed: bool, code: str
) -> None:
    candidate = build_candidate(before=0.2, after=after, change_time=KNOWN.change_time + later_s)
    candidate = replace(candidate, kind="long_term") if slow else candidate
    decision = judge_same_regression(
        candidate,
        [EarlierRegression(KNOWN, KNOWN.change_time)],
        recent=0.2,
        config=configured(0.03),
        gradual_since=lambda _: gradual,
    )
    assert (decision.passed, decision.code) == (passed, code)


def test_growth_is_asked_for_since_the_first_of_the_known_ones() -> None:
    asked: list[float] = []

    def gradual_since(time: float) -> bool:
        asked.append(time)
        return True

    times = [KNOWN.change_time + later for later in (1000.0, 0.0, 2000.0)]
    candidate = build_candidate(before=0.2, after=0.4, change_time=KNOWN.change_time + LATER_S)
    judge_same_regression(
        candidate,
        [EarlierRegression(replace(KNOWN, change_time=time), time) for time in times],
        recent=0.2,
        config=configured(0.03),
        gradual_since=gradual_since,
    )
    assert asked == [KNOWN.change_time]


POINTS = np.arange(60)


@pytest.mark.parametrize(
    ("values", "change", "expected"),
    [
        pytest.param(POINTS / 60.0, 30, True, id="a steady rise"),
        pytest.param(np.where(POINTS >= 30, 1.0, 0.0), 30, False, id="a step"),
        pytest.param(np.where(POINTS >= 50, 1.0, 0.0), 50, False, id="a late step"),
        pytest.param(-POINTS / 60.0, 30, True, id="a steady fall"),
        pytest.param(np.where(POINTS % 2, 1.0, 0.0) + 3.0 * (POINTS >= 20), 20, False, id="a step in noise"),
        pytest.param(np.where(POINTS >= 40, 1.0, 0.0), 30, False, id="a step that noise put too early"),
        pytest.param(POINTS // 15 / 4.0, 45, True, id="a staircase"),
        pytest.param(np.zeros(60), 30, False, id="nothing"),
    ],
)
def test_is_gradual(values: FloatArray, change: int, expected: bool) -> None:
    noise = np.random.default_rng(1).normal(0, 0.01, 60) if values.any() else 0.0
    assert is_gradual(values + noise, np.ones(60), change=change) is expected


LONG = np.arange(740) / 740


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(LONG + (LONG > 0.95), False, id="a step on top of a rise, as high, seen for six hours"),
        pytest.param(LONG + 3 * (LONG > 0.95), False, id="a higher one"),
        pytest.param(LONG + 0.2 * (LONG > 0.95), True, id="a low one"),
        pytest.param(LONG - (LONG > 0.95), True, id="one down"),
        pytest.param(np.minimum(LONG / 0.75, 1.0), True, id="a rise that has ended"),
        pytest.param(1 / (1 + np.exp(5 - 10 * LONG)), True, id="a rise that begins and ends slowly"),
        pytest.param(np.expm1(3 * LONG), True, id="a rise that quickens"),
        pytest.param(np.sqrt(LONG), True, id="a rise that slows down"),
        pytest.param(np.floor(4 * LONG) / 4, True, id="a staircase of four"),
    ],
)
@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_what_grows_slowly_may_step_too(values: FloatArray, expected: bool, noise: float) -> None:
    decided = [
        is_gradual(values + np.random.default_rng(seed).normal(0, noise, 740), np.ones(740), change=704)
        for seed in range(10)
    ]
    assert decided.count(expected) >= 9


@pytest.mark.parametrize("change", [0, 1, 59, 60])
def test_of_hardly_any_windows_on_one_side_no_growth_is_reported(change: int) -> None:
    assert not is_gradual(POINTS / 60.0, np.ones(60), change=change)


def test_windows_without_data_say_nothing_of_growth() -> None:
    weights = np.where(POINTS % 3 == 0, 0.0, 1.0)
    for values, expected in ((POINTS / 60.0, True), (np.where(POINTS >= 30, 1.0, 0.0), False)):
        assert is_gradual(np.where(weights > 0, values, np.nan), weights, change=30) is expected


@pytest.mark.parametrize(("scale", "shift"), [(1e-5, 0.0), (-3.0, 7.0), (1e6, 1e6)])
def test_growth_has_no_unit(scale: float, shift: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        values = POINTS * rng.uniform(0, 0.05) + (POINTS >= 30) * rng.uniform(0, 2) + rng.normal(0, 0.3, 60)
        weights = rng.uniform(0.5, 2.0, 60)
        assert is_gradual(scale * values + shift, 10 * weights, change=30) is is_gradual(
            values, weights, change=30
        )
