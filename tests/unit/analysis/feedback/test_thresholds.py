"""Proposed thresholds: what is right stays, what is wrong goes, and too few verdicts propose nothing."""

from __future__ import annotations

import math

import pytest

from pipeline.analysis.feedback import AnsweredEvent, Reported, ThresholdConfig, propose_thresholds, roc
from pipeline.analysis.feedback.thresholds import Measure

PRESENT: dict[str, tuple[Measure, float]] = {"live": ("absolute", 0.01)}


def event(number: int, delta: float, before: float = 0.1, service: str = "shop") -> Reported:
    return Reported(f"e{number}", service, "live", "subroutine", "f", 0.0, 10.0, before, before + delta)


def judged(right: list[float], wrong: list[float]) -> list[AnsweredEvent]:
    sizes = [(size, True) for size in right] + [(size, False) for size in wrong]
    return [AnsweredEvent(event(number, size), is_right) for number, (size, is_right) in enumerate(sizes)]


RIGHT = [0.05 + 0.01 * number for number in range(10)]


@pytest.mark.parametrize(
    ("right", "wrong", "proposed"),
    [
        pytest.param(RIGHT, [0.02, 0.03, 0.2], 0.045, id="small ones are wrong"),
        pytest.param(RIGHT, [0.2, 0.3], None, id="large ones are wrong"),
        pytest.param(RIGHT, [0.02], None, id="one says nothing"),
        pytest.param(RIGHT[:9], [0.02, 0.03], None, id="too few right ones"),
        pytest.param([*RIGHT, 0.011], [0.0101, 0.0102], None, id="none under the present threshold"),
        pytest.param([], [0.02, 0.03], None, id="nothing is right"),
    ],
)
def test_a_threshold_keeps_all_that_is_right(
    right: list[float], wrong: list[float], proposed: float | None
) -> None:
    (found,) = propose_thresholds(judged(right, wrong), PRESENT)
    assert found.proposed == (None if proposed is None else pytest.approx(proposed))
    if proposed is not None:
        assert (found.kept.hits, found.kept.of) == (10, 10)
        assert found.kept.interval[0] == pytest.approx(0.722, abs=0.001)
        assert (found.dropped.hits, found.dropped.of) == (2, 3)


@pytest.mark.parametrize(
    ("keep", "proposed", "kept", "dropped"),
    [
        pytest.param(1.0, 0.045, 10, 2, id="all"),
        pytest.param(0.95, 0.045, 10, 2, id="half an event less is none less"),
        pytest.param(0.9, 0.054, 9, 3, id="all but one"),
        pytest.param(0.8, 0.063, 8, 3, id="all but two"),
    ],
)
def test_a_share_of_the_right_ones_may_go_for_more_of_the_wrong_ones(
    keep: float, proposed: float, kept: int, dropped: int
) -> None:
    (found,) = propose_thresholds(judged(RIGHT, [0.02, 0.03, 0.05, 0.2]), PRESENT, ThresholdConfig(keep=keep))
    assert found.proposed == pytest.approx(proposed)
    assert (found.kept.hits, found.kept.of) == (kept, 10)
    assert (found.dropped.hits, found.dropped.of) == (dropped, 4)


def test_a_relative_threshold_is_held_against_relative_sizes() -> None:
    (found,) = propose_thresholds(judged(RIGHT, [0.02, 0.03]), {"live": ("relative", 0.1)})
    assert found.proposed == pytest.approx(0.45)


def test_each_workload_and_service_is_by_itself_and_unknown_workloads_are_left_out() -> None:
    cart = AnsweredEvent(event(50, 0.3, service="cart"), True)
    found = propose_thresholds([*judged(RIGHT, []), cart], PRESENT)
    assert [(one.workload, one.service) for one in found] == [("live", "cart"), ("live", "shop")]
    assert propose_thresholds([cart], {}) == ()


@pytest.mark.parametrize(
    ("right", "wrong", "area"),
    [([3, 4], [1, 2], 1.0), ([1, 2], [3, 4], 0.0), ([1, 3], [2, 4], 0.25), ([1], [1], 0.5)],
)
def test_the_area_says_how_well_a_setting_parts_them(
    right: list[float], wrong: list[float], area: float
) -> None:
    found = roc("size", judged(right, wrong), lambda one: one.reported.delta)
    assert found.area == pytest.approx(area)
    assert (found.points[-1].kept, found.points[-1].passed) == (1.0, 1.0)


def test_without_both_kinds_there_is_no_curve() -> None:
    assert math.isnan(roc("size", judged([1], []), lambda one: 1.0).area)
