from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.detect.change_point import find_change_points
from pipeline.model import FloatArray

SERIES = st.integers(0, 2**32 - 1).map(
    lambda seed: (
        np.random.default_rng(seed).normal(0, 1, (3, 40))
        + np.where(np.arange(40) >= np.random.default_rng(seed).integers(5, 35), 2.0, 0.0)
    )
)
WEIGHTS = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).uniform(0.5, 4.0, 40))


@given(SERIES, WEIGHTS, st.floats(0.001, 1000), st.floats(-1e4, 1e4))
def test_shift_and_scale_change_nothing_but_the_levels(
    series: FloatArray, weights: FloatArray, scale: float, shift: float
) -> None:
    plain = find_change_points(series, weights, first=3, last=37)
    moved = find_change_points(series * scale + shift, weights, first=3, last=37)
    assert moved.index.tolist() == plain.index.tolist()
    np.testing.assert_allclose(moved.statistic, plain.statistic, rtol=1e-3)
    np.testing.assert_allclose(moved.before, plain.before * scale + shift, rtol=1e-6, atol=1e-6)


@given(SERIES, WEIGHTS, st.floats(0.01, 1e6))
def test_only_the_proportion_of_weights_matters(
    series: FloatArray, weights: FloatArray, factor: float
) -> None:
    plain = find_change_points(series, weights, first=3, last=37)
    scaled = find_change_points(series, weights * factor, first=3, last=37)
    assert scaled.index.tolist() == plain.index.tolist()
    np.testing.assert_allclose(scaled.p_value, plain.p_value, rtol=1e-6)


@given(SERIES)
def test_time_reversed_the_change_point_is_the_same_place(series: FloatArray) -> None:
    forward = find_change_points(series, np.ones(40), first=3, last=37)
    backward = find_change_points(series[:, ::-1], np.ones(40), first=3, last=37)
    assert (40 - backward.index).tolist() == forward.index.tolist()
