"""Scales of a series: plain or logarithmic, when each is tried, and what it takes in nats."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.offline.scales import Scale, scales
from pipeline.model import FloatArray

PLAIN = Scale(logarithmic=False, size=10.0, middle=0.5, spread=0.25)
LOGARITHMIC = Scale(logarithmic=True, size=8.0, middle=float(np.log(0.5)), spread=float(np.log(2)))
EIGHT = np.arange(8.0)


def tried(values: FloatArray) -> list[Scale]:
    return scales(values, np.arange(len(values)) / len(values), longest=3, bound=3.0)


@pytest.mark.parametrize(
    ("scale", "values", "scaled"),
    [
        pytest.param(PLAIN, [5.0, 10.0, 0.0], [0.0, 2.0, -2.0], id="plain"),
        pytest.param(LOGARITHMIC, [4.0, 8.0, 2.0], [0.0, 1.0, -1.0], id="logarithmic"),
    ],
)
def test_values_on_a_scale(scale: Scale, values: list[float], scaled: list[float]) -> None:
    assert scale.apply(np.array(values)) == pytest.approx(scaled)


def test_a_level_is_the_mean_in_units_of_the_series() -> None:
    assert PLAIN.level(np.array([0.0, 2.0])) == pytest.approx(7.5)
    assert LOGARITHMIC.level(np.array([0.0, 1.0])) == pytest.approx(6.0)


def test_nats_by_how_densely_values_lie() -> None:
    assert PLAIN.nats(np.array([0.0, 2.0])) == pytest.approx(2 * np.log(0.25))
    # The logarithms themselves, 3 log ½ in all, besides the unit in which they are counted.
    scaled = np.array([0.0, 1.0, -1.0])
    assert LOGARITHMIC.nats(scaled) == pytest.approx(3 * np.log(np.log(2)) + 3 * np.log(0.5))


@pytest.mark.parametrize(
    "values",
    [np.zeros(8), np.full(8, 5.0), np.full(8, 0.1) + 1e-17 * EIGHT],
    ids=["zero", "five", "rounding"],
)
def test_a_constant_has_no_scale(values: FloatArray) -> None:
    assert tried(values) == []


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [
        pytest.param(EIGHT, [False], id="a zero has no logarithm"),
        pytest.param(EIGHT - 3, [False], id="nor have both signs"),
        pytest.param(EIGHT + 20, [False], id="a logarithm of 20 to 27 hardly bends"),
        pytest.param(EIGHT + 1, [False, True], id="eightfold"),
        pytest.param(-1 - EIGHT, [False, True], id="all below zero"),
    ],
)
def test_which_scales_are_tried(values: FloatArray, logarithmic: list[bool]) -> None:
    assert [scale.logarithmic for scale in tried(values)] == logarithmic


def test_the_unit_of_a_line() -> None:
    (scale,) = tried(EIGHT)
    assert (scale.size, scale.middle, scale.spread) == pytest.approx((7.0, 0.5, 1.0))


def test_the_unit_of_a_doubling() -> None:
    _, scale = tried(-(2.0**EIGHT))
    assert (scale.size, scale.middle, scale.spread) == pytest.approx(
        (-128.0, -3.5 * np.log(2), 7 * np.log(2))
    )
    assert scale.apply(-(2.0**EIGHT)) == pytest.approx((EIGHT - 3.5) / 7)


def test_one_odd_value_does_not_make_all_others_the_same() -> None:
    values = np.resize([-1.0, 0.0, 1.0], 31)
    values[15] = 1e9
    (scale,) = tried(values)
    assert scale.size == 1e9
    assert scale.spread == pytest.approx(2e-9)
