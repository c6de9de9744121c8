"""Knees: where an objective breaks, and how those of two sides compare."""

from __future__ import annotations

import asyncio
import math

import pytest

from agents.experiments.replay.capacity import Knee, Load, Objective, Steps, compare_knees, find_knee

OBJECTIVE = Objective(p99_s=0.1, errors=0.01)


def knee_of(p99_s: dict[float, float], errors: dict[float, float] | None = None) -> Knee:
    async def load(rate: float) -> Load:
        return Load(rate, p99_s[rate], (errors or {}).get(rate, 0.0), 0.0)

    return asyncio.run(find_knee(Steps(10.0, 2.0, 40.0), OBJECTIVE, load))


def test_rates_rise_by_a_factor_up_to_the_last() -> None:
    assert Steps(10.0, 2.0, 40.0).rates() == [10.0, 20.0, 40.0]
    assert Steps(10.0, 2.0, 39.0).rates() == [10.0, 20.0]
    assert Steps(10.0, 1.1, 10.0).rates() == [10.0]


@pytest.mark.parametrize(
    ("p99_s", "errors", "rate", "broke"),
    [
        pytest.param({10: 0.01, 20: 0.01, 40: 0.05}, {}, 40.0, False, id="never"),
        pytest.param(
            {10: 0.01, 20: 0.01, 40: 1.0}, {}, 20 * math.sqrt(2), True, id="half way in the logarithm"
        ),
        pytest.param({10: 0.01, 20: 0.1, 40: 1.0}, {}, 20.0, True, id="just held"),
        pytest.param({10: 0.2}, {}, 10.0, True, id="at once"),
        pytest.param({10: 0.01, 20: 0.02}, {20: 0.5}, 10 * math.sqrt(2), True, id="by errors"),
    ],
)
def test_the_knee_is_where_the_objective_breaks(
    p99_s: dict[float, float], errors: dict[float, float], rate: float, broke: bool
) -> None:
    found = knee_of(p99_s, errors)
    assert found.rate == pytest.approx(rate)
    assert found.broke is broke


def test_knees_are_compared_repeat_by_repeat_and_one_repeat_has_no_interval() -> None:
    several = compare_knees([100.0, 102.0, 98.0, 100.0], [90.0, 92.0, 88.0, 91.0])
    assert several.difference == pytest.approx(-0.0975)
    assert several.low < several.difference < several.high < 0
    assert several.p_value < 0.01
    alone = compare_knees([100.0], [50.0])
    assert (alone.difference, alone.low, alone.high, alone.p_value) == (-0.5, -math.inf, math.inf, 1.0)
