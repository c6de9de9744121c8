"""When an experiment is complete or overdue, which messages of a side count, and marks of warm-up."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.experiments.trials import Experiment, ExperimentSide, ExperimentState, standing_of
from pipeline.experiments.trials import experiment as experiments
from pipeline.experiments.trials.experiment import OVERDUE_S, bounds_of, metrics_of, sides_of
from pipeline.model import TrialMetric

T0 = 1_760_000_000.0


def side(trial: str, name: str, time: float = T0, **own: object) -> ExperimentSide:
    return ExperimentSide(trial, name, "A/B", time, digest=f"{trial}{name}{time}{own}", **own)  # type: ignore[arg-type]


def whole(*trials: str, **own: Any) -> list[ExperimentSide]:
    return [side(trial, name, **own) for trial in trials for name in "AB"]


def end(trials: int = 0) -> ExperimentSide:
    return ExperimentSide("", "", "end", T0, digest="end", expected=trials)


def standing(sides: list[ExperimentSide], now: float = T0) -> ExperimentState:
    return standing_of(Experiment("shop", "e", tuple(sides)), now)


@pytest.mark.parametrize(
    ("sides", "complete"),
    [
        (whole("1", "2"), False),
        ([*whole("1", "2"), end()], True),
        ([*whole("1", "2"), end(3)], False),
        ([*whole("1", "2"), end(2)], True),
        ([*whole("1", "2"), end(1)], True),
        (whole("1", "2", expected=2), True),
        (whole("1", "2", expected=3), False),
        ([*whole("1", "2"), side("3", "A"), end()], True),
        ([side("1", "A"), end()], False),
        ([end()], False),
        ([end(2)], False),
    ],
)
def test_when_it_is_complete(sides: list[ExperimentSide], complete: bool) -> None:
    for order in itertools.islice(itertools.permutations(sides), 200):
        assert standing(list(order)).complete is complete


@pytest.mark.parametrize(
    ("sides", "later", "overdue"),
    [
        (whole("1"), OVERDUE_S, True),
        (whole("1"), OVERDUE_S - 1.0, False),
        ([*whole("1"), end()], OVERDUE_S, False),
        ([side("1", "A"), end()], OVERDUE_S, True),
    ],
)
def test_when_it_is_overdue(sides: list[ExperimentSide], later: float, overdue: bool) -> None:
    assert standing(sides, T0 + later).overdue is overdue


def test_of_a_side_the_latest_message_counts() -> None:
    first, later = side("1", "A", release="old"), side("1", "A", T0 + 1.0, release="new")
    for order in ([first, later], [later, first]):
        found = standing([*order, side("1", "B")])
        assert [one.sides[0].release for one in found.whole] == ["new"]
        assert (found.half, found.last_time) == (0, T0 + 1.0)


def test_trials_are_in_the_order_of_time() -> None:
    found = standing([*whole("z"), *whole("a", time=T0 + 1.0), side("m", "B")])
    assert [trial.name for trial in found.whole] == ["z", "a"]
    assert found.half == 1


@pytest.mark.parametrize(("kinds", "kind"), [("AA", "A/A"), ("AB", "A/B"), ("BB", "A/B")])
def test_the_kind_is_a_a_only_if_all_sides_say_so(kinds: str, kind: str) -> None:
    sides = [replace(one, kind=f"A/{own}") for one, own in zip(whole("1"), kinds, strict=True)]
    assert standing([*sides, end()]).kind == kind


def test_the_strictest_bound_of_all_trials_counts() -> None:
    one = TrialMetric("m", np.ones(1))
    assert bounds_of([one], 0.05).threshold == 0.01
    found = bounds_of([one, replace(one, threshold=0.2), replace(one, threshold=0.1, direction="down")], 0.05)
    assert (found.threshold, found.direction, found.alpha) == (0.1, "down", 0.05)


def test_both_sides_lose_what_either_marks_as_warm_up() -> None:
    def marked(points: int, warm_up: int) -> TrialMetric:
        return TrialMetric("m", np.arange(float(points)), warm_up)

    sides, lost = sides_of([marked(4, 1), marked(5, 2), marked(3, 0), marked(3, 9)])
    assert lost == (2, 3)
    np.testing.assert_array_equal(sides.a, [[2.0, 3.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(sides.b, [[2.0, 3.0, 4.0], [np.nan] * 3])


def test_many_trials_of_uneven_length_stay_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "MOST_CELLS", 10)
    pair = [TrialMetric("m", np.arange(float(count))) for count in (100, 1, 1, 1)]
    assert sides_of(pair)[0].a.shape == (2, 5)


def test_a_metric_of_one_side_alone_is_none() -> None:
    trials = standing(whole("1", "2")).whole
    (first, second), (third, _) = trials[0].sides, trials[1].sides
    one = TrialMetric("m", np.ones(1))
    measured = {(first.digest, "m"): one, (second.digest, "m"): one, (third.digest, "m"): one}
    assert {name: len(own) for name, own in metrics_of(trials, measured).items()} == {"m": 2}
