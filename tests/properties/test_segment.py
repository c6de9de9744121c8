"""Laws of the offline segmentation: units, direction of time, sign, and any input at all."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loadgen.bench.zoo import FAMILIES, draw
from pipeline.analysis.detect.offline.segment import segment
from pipeline.model import FloatArray

FAMILY = st.sampled_from(list(FAMILIES))
POINTS = st.integers(16, 60)
SEED = st.integers(0, 50)


def indices(values: FloatArray) -> list[int]:
    return [change.index for change in segment(values)]


def assert_moved(values: FloatArray, other: FloatArray, *, factor: float, offset: float) -> None:
    """Assert that other, factor × values + offset, has the same changes, with its own levels."""
    plain, moved = segment(values), segment(other)
    assert [change.index for change in moved] == [change.index for change in plain]
    for one, two in zip(plain, moved, strict=True):
        np.testing.assert_allclose(
            [two.before, two.after],
            [factor * one.before + offset, factor * one.after + offset],
            rtol=1e-6,
            atol=1e-6 * factor,
        )


@given(FAMILY, POINTS, SEED, st.integers(-40, 40), st.sampled_from([0.0, 20.0, 300.0]))
def test_units_change_nothing_but_the_levels(
    family: str, points: int, seed: int, exponent: int, level: float
) -> None:
    values = draw(family, points, seed).values + level  # with and without a logarithm
    factor = 2.0**exponent  # exact, so that nothing is rounded
    assert_moved(values, factor * values, factor=factor, offset=0)


@given(FAMILY, POINTS, SEED, st.floats(0.02, 0.98), st.floats(0.02, 0.98))
def test_where_zero_lies_among_the_values_changes_nothing(
    family: str, points: int, seed: int, one: float, other: float
) -> None:
    """Zero beyond all values is another matter: growth by some per cent counts from it."""
    values = draw(family, points, seed).values
    first, second = (float(values.min() + share * np.ptp(values)) for share in (one, other))
    assert_moved(values - first, values - second, factor=1, offset=first - second)


@given(FAMILY, POINTS, SEED, st.integers(0, 15), st.floats(3, 50), st.sampled_from([-1, 1]))
def test_the_size_of_an_odd_point_changes_nothing(
    family: str, points: int, seed: int, position: int, exponent: float, sign: int
) -> None:
    values = draw(family, points, seed).values
    values -= np.median(values)
    odd, odder = values.copy(), values.copy()
    odd[position], odder[position] = sign * 1000 * np.ptp(values), sign * 10.0**exponent * np.ptp(values)
    assert indices(odder) == indices(odd)


@given(FAMILY, POINTS, SEED)
def test_a_rise_and_a_drop_are_the_same(family: str, points: int, seed: int) -> None:
    values = draw(family, points, seed).values
    assert indices(-values) == indices(values)


@given(st.integers(12, 30), st.integers(12, 30), SEED)
def test_backwards_a_step_is_found_in_the_mirror(before: int, after: int, seed: int) -> None:
    points = before + after
    values = np.random.default_rng(seed).standard_normal(points) + 12.0 * (np.arange(points) >= before)
    found = indices(values)
    assert before in found
    assert indices(values[::-1]) == [points - index for index in reversed(found)]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=40))
def test_any_finite_series_has_an_answer(values: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = segment(np.array(values, dtype=np.float64))
    bounds = [0, *(change.index for change in found), len(values)]
    assert len(values) < 8 or min(np.diff(bounds)) >= 4
    for change in found:
        assert 0 <= change.p_value <= 1
        assert np.isfinite([change.before, change.after]).all()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=7))
def test_too_few_points_hold_no_change(values: list[float]) -> None:
    assert segment(np.array(values, dtype=np.float64)) == ()
