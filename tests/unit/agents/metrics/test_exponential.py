from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.metrics.exponential import Exponential
from agents.metrics.quantiles import bucket_quantile

SCALE = 5
values = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=200)


def observed(data: list[float], scale: int = SCALE) -> Exponential:
    """Return the histogram of positive values, each bucket found by its own bounds."""
    positive: dict[int, float] = {}
    for value in data:
        index = math.ceil(math.log2(value) * 2**scale) - 1
        positive[index] = positive.get(index, 0.0) + 1
    return Exponential(scale, positive=positive)


@given(values, st.sampled_from([0.5, 0.9, 0.99]))
def test_a_quantile_is_right_to_a_factor_of_the_base(data: list[float], rank: float) -> None:
    base = 2.0**2.0**-SCALE
    true = float(np.quantile(data, rank, method="inverted_cdf"))
    assert true / base / 1.0001 <= observed(data).quantile(rank) <= true * base * 1.0001


@given(values, values)
def test_adding_and_taking_away_are_inverse(one: list[float], two: list[float]) -> None:
    both = observed(one).plus(observed(two))
    assert both.count == len(one) + len(two)
    difference = both.minus(observed(one))
    assert difference is not None
    assert {i: n for i, n in difference.positive.items() if n} == observed(two).positive


@given(values, values)
def test_scales_meet_at_the_lower_one(one: list[float], two: list[float]) -> None:
    assert observed(one, 7).plus(observed(two, 3)).scale == 3
    assert observed(one, 7).at_scale(3).positive == observed(one, 3).positive


def test_one_that_began_anew_has_no_difference() -> None:
    assert observed([1.0, 2.0]).minus(observed([4.0])) is None


def test_none_has_no_quantile() -> None:
    assert math.isnan(Exponential(0).quantile(0.5))


def test_zeros_and_negative_observations_are_ranked_before_positive_ones() -> None:
    found = Exponential(0, zero=2.0, zero_threshold=0.1, positive={0: 2.0}, negative={0: 2.0})
    assert -2 <= found.quantile(0.2) < -1
    assert -0.1 <= found.quantile(0.5) <= 0.1
    assert 1 < found.quantile(0.9) <= 2


def test_buckets_beyond_floats_have_bounds_within_them() -> None:
    assert math.isfinite(Exponential(-10, positive={100: 1.0}).quantile(0.5))
    assert math.isfinite(Exponential(20, positive={-(2**31): 1.0}).quantile(0.5))


@pytest.mark.parametrize(
    ("rank", "at_most", "expected"),
    [
        pytest.param(0.5, {0.1: 50, 0.5: 90, math.inf: 100}, 0.1, id="at-a-bound"),
        pytest.param(0.25, {0.1: 50, 0.5: 90, math.inf: 100}, 0.05, id="first-bucket-from-zero"),
        pytest.param(0.7, {0.1: 50, 0.5: 90, math.inf: 100}, 0.3, id="interpolated"),
        pytest.param(0.99, {0.1: 50, 0.5: 90, math.inf: 100}, 0.5, id="above-all-bounds"),
        pytest.param(0.5, {0.1: 0, math.inf: 0}, math.nan, id="no-observation"),
        pytest.param(0.5, {0.1: 5}, math.nan, id="no-infinite-bound"),
        pytest.param(0.5, {math.inf: 5}, math.nan, id="no-finite-bound"),
        pytest.param(0.9, {0.1: 60, 0.5: 50, math.inf: 100}, 0.5, id="crossed-counts"),
    ],
)
def test_quantiles_of_explicit_buckets(rank: float, at_most: dict[float, float], expected: float) -> None:
    assert bucket_quantile(rank, at_most) == pytest.approx(expected, nan_ok=True)


def test_a_wider_bucket_around_zero_is_no_reset() -> None:
    before = Exponential(0, zero=5.0, zero_threshold=0.25, positive={-2: 10.0, 3: 7.0}, negative={-2: 1.0})
    after = Exponential(0, zero=18.0, zero_threshold=0.5, positive={3: 9.0})
    assert after.minus(before) == Exponential(0, zero=2.0, zero_threshold=0.5, positive={3: 2.0})
    both = before.plus(after)
    assert (both.zero, both.zero_threshold, both.count) == (34.0, 0.5, 50.0)
    assert before.minus(after) is None
