from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.detect.change_point import Family, log_odds_span, p_values, signed_roots, split_sums
from pipeline.model import FloatArray

ROWS, POINTS = 3, 40
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def counts(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Counts that change somewhere, few or many, with what was expected; windows without data."""
    rng = np.random.default_rng(draw(SEEDS))
    exposure = rng.uniform(0.5, 4.0, (ROWS, POINTS)) * draw(st.sampled_from([0.05, 1.0, 1000.0]))
    exposure[:, rng.random(POINTS) < draw(st.sampled_from([0.0, 0.2]))] = 0.0
    level = np.where(np.arange(POINTS) >= rng.integers(5, 35), rng.uniform(0.2, 3.0), 1.0)
    return rng.poisson(exposure * level).astype(np.float64), exposure


def roots(observed: FloatArray, exposure: FloatArray, family: Family) -> FloatArray:
    return signed_roots(split_sums(observed, exposure, first=1, last=POINTS - 1), family)


@given(counts(), st.floats(-100, 100), st.sampled_from([-8.0, -1.0, 0.125, 64.0]))
def test_a_shift_changes_no_root_and_a_scale_only_scales_them(
    drawn: tuple[FloatArray, FloatArray], shift: float, scale: float
) -> None:
    observed, weights = drawn
    plain = roots(observed, weights, "values")
    moved = roots((observed + shift * weights) * scale, weights, "values")
    np.testing.assert_allclose(moved, plain * scale, rtol=1e-6, atol=1e-6 * abs(scale) * weights.sum())


@given(counts(), st.floats(1e-3, 1e3))
def test_of_counts_only_the_proportions_of_what_is_expected_matter(
    drawn: tuple[FloatArray, FloatArray], factor: float
) -> None:
    observed, expected = drawn
    plain, scaled = roots(observed, expected, "counts"), roots(observed, expected * factor, "counts")
    np.testing.assert_allclose(scaled**2, plain**2, rtol=1e-6, atol=1e-6)


@given(counts(), st.sampled_from(["values", "counts"]))
def test_time_reversed_a_rise_is_a_fall_at_the_same_position(
    drawn: tuple[FloatArray, FloatArray], family: Family
) -> None:
    observed, exposure = drawn
    forward, backward = roots(observed, exposure, family), roots(observed[:, ::-1], exposure[:, ::-1], family)
    np.testing.assert_allclose(backward[:, ::-1] ** 2, forward**2, rtol=1e-6, atol=1e-6)
    clear = forward**2 > 1e-4
    assert (np.sign(backward[:, ::-1]) == -np.sign(forward))[clear].all()


@given(counts(), st.permutations(range(ROWS)), st.sampled_from(["values", "counts"]))
def test_series_are_looked_at_by_themselves(
    drawn: tuple[FloatArray, FloatArray], order: list[int], family: Family
) -> None:
    observed, exposure = drawn
    together = roots(observed, exposure, family)
    np.testing.assert_array_equal(roots(observed[order], exposure[order], family), together[order])
    for row in range(ROWS):
        one = slice(row, row + 1)
        np.testing.assert_allclose(roots(observed[one], exposure[one], family), together[one], atol=1e-9)


@given(
    st.floats(0, 50),
    st.floats(0, 50),
    st.floats(1, 1e4),
    st.floats(0, 12),
    st.integers(1, 2000),
)
def test_a_larger_root_is_never_less_certain(
    one: float, other: float, degrees_of_freedom: float, span: float, splits: int
) -> None:
    size = np.array(sorted((one, other)))
    found = p_values(size, np.full(2, degrees_of_freedom), np.full(2, span), np.full(2, splits))
    assert 0.0 <= found[1] <= found[0] <= 1.0


@given(counts())
def test_gaps_do_not_lengthen_the_search(drawn: tuple[FloatArray, FloatArray]) -> None:
    observed, exposure = drawn
    found = split_sums(observed, exposure, first=1, last=POINTS - 1)
    known = exposure[0] > 0
    before = np.cumsum(known)[:-1]
    allowed = np.broadcast_to((before > 0) & (before < known.sum()), found.left.shape)
    short = split_sums(observed[:, known], exposure[:, known], first=1, last=int(known.sum()) - 1)
    everywhere = np.ones(short.left.shape, dtype=np.bool_)
    np.testing.assert_allclose(log_odds_span(found, allowed), log_odds_span(short, everywhere), rtol=1e-6)
