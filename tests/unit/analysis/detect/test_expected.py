from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.detect.expected import Normalised, normalise, values_and_weights
from pipeline.model import FloatArray, SeriesMatrix

DAY, HISTORY, END = 48, 480, 540
POSITION = np.arange(END)
START = 1_700_000_000.0
WAVE = np.sin(2 * np.pi * POSITION / DAY)
TOTALS = np.rint(20_000 * (1 + 0.4 * np.cos(2 * np.pi * POSITION / DAY)))
LEVELS = np.array([0.2, 0.01, 1e-4])


def counted(shares: FloatArray, totals: FloatArray = TOTALS) -> SeriesMatrix:
    """Binomial counts of subroutines: (series, windows) shares."""
    samples = np.random.default_rng(1).binomial(totals.astype(np.int64), shares).astype(np.float64)
    return matrix_of(samples, totals)


def matrix_of(samples: FloatArray, totals: FloatArray | None = None) -> SeriesMatrix:
    names = tuple(f"s{row}" for row in range(len(samples)))
    kind = "service" if totals is None else "subroutine"
    return SeriesMatrix(
        START,
        1800.0,
        (kind,) * len(samples),  # type: ignore[arg-type]  # one of the literal's values
        names,
        samples,
        np.ones(END) if totals is None else totals,
    )


def measured(series: int = 3) -> SeriesMatrix:
    """Return values of service-level metrics."""
    noise = np.random.default_rng(2).standard_normal((series, END))
    return matrix_of(100.0 + 10.0 * np.arange(series)[:, None] + noise)


def norm(matrix: SeriesMatrix) -> Normalised:
    return normalise(matrix, history=HISTORY, longest=60, apart=150)


def flat(shares: FloatArray) -> FloatArray:
    return np.repeat(shares[:, None], END, axis=1)


def test_counts_are_held_against_what_the_history_makes_expect() -> None:
    series = norm(counted(flat(LEVELS)))
    assert series.family == "counts"
    np.testing.assert_allclose(series.scale, LEVELS, rtol=0.1)
    np.testing.assert_allclose(series.exposure, series.scale[:, None] * TOTALS)
    assert series.centre.tolist() == [0.0] * 3
    assert series.observed[:, :HISTORY].sum(axis=1) == pytest.approx(series.exposure[:, :HISTORY].sum(axis=1))
    assert (series.variance >= 0.8 * (1 - LEVELS)).all()
    assert (series.variance <= 3.0).all()


def test_values_are_held_against_their_mean() -> None:
    matrix = measured()
    series = norm(matrix)
    assert series.family == "values"
    np.testing.assert_allclose(series.centre, matrix.samples[:, :HISTORY].mean(axis=1))
    assert series.exposure.tolist() == np.ones((3, END)).tolist()
    np.testing.assert_allclose(series.observed, matrix.samples - series.centre[:, None])


@pytest.mark.parametrize("matrix", [counted(flat(LEVELS)), measured()], ids=["counts", "values"])
def test_levels_are_in_the_series_own_unit(matrix: SeriesMatrix) -> None:
    series = norm(matrix)
    assert not series.cycle.any()
    np.testing.assert_allclose(series.levels(), values_and_weights(matrix)[0])


@pytest.mark.parametrize("size", [0.05, 0.8], ids=["small cycle", "large cycle"])
def test_a_daily_cycle_of_counts_goes_into_what_is_expected(size: float) -> None:
    shares = LEVELS[:1, None] * (1 + size * WAVE)
    series = norm(counted(shares))
    np.testing.assert_allclose(series.cycle[0], LEVELS[0] * size * WAVE, atol=0.1 * LEVELS[0] * size + 2e-4)
    assert np.corrcoef(series.levels()[0], WAVE)[0, 1] < 0.2
    assert series.levels().mean() == pytest.approx(LEVELS[0], rel=0.01)
    assert series.variance[0] < 2.0


def test_a_daily_cycle_of_values_is_taken_off() -> None:
    matrix = measured()
    series = norm(replace(matrix, samples=matrix.samples + 5 * WAVE))
    np.testing.assert_allclose(series.cycle, np.broadcast_to(5 * WAVE, (3, END)), atol=0.5)
    assert series.levels().std(axis=1) == pytest.approx(1.0, abs=0.15)


def test_a_cycle_that_reaches_zero_leaves_an_expectation() -> None:
    shares = 0.01 * np.clip(1 + 1.4 * WAVE, 0.0, None)[None]
    series = norm(counted(shares))
    assert (series.exposure > 0).all()


def test_what_is_new_has_no_level_to_compare_with() -> None:
    shares = np.where(POSITION >= 500, 0.01, 0.0)[None]
    series = norm(counted(shares))
    assert series.levels()[0, :500].tolist() == [0.0] * 500
    assert series.levels()[0, 500:].mean() == pytest.approx(0.01, rel=0.05)
    assert series.variance[0] > 0


@pytest.mark.parametrize(
    ("level", "lowest"),
    [
        pytest.param(1.0, 1e-6, id="every sample"),
        pytest.param(0.9, 0.1, id="most"),
        pytest.param(0.0, 1.0, id="none"),
    ],
)
def test_counts_vary_by_sampling_at_least(level: float, lowest: float) -> None:
    samples = level * np.full((1, END), 1000.0)
    series = norm(matrix_of(samples, np.full(END, 1000.0)))
    assert series.variance[0] == pytest.approx(lowest)


@pytest.mark.parametrize("value", [0.1, 1e9, -3e-7], ids=str)
def test_constant_values_vary_by_rounding_at_least(value: float) -> None:
    series = norm(matrix_of(np.full((1, END), value)))
    assert 0 < series.variance[0] <= (1e-8 * value) ** 2


def test_zeros_have_a_variance_to_divide_by() -> None:
    assert norm(matrix_of(np.zeros((1, END)))).variance[0] > 0


def test_windows_without_samples_have_no_exposure() -> None:
    totals = TOTALS.copy()
    totals[100:150] = totals[500:510] = 0.0
    series = norm(counted(flat(LEVELS), totals))
    gone = totals == 0
    assert not series.exposure[:, gone].any()
    assert np.isnan(series.levels()[:, gone]).all()
    assert np.isfinite(series.levels()[:, ~gone]).all()
    np.testing.assert_allclose(series.scale, LEVELS, rtol=0.1)  # no data is not zero


@pytest.mark.parametrize("hole", [np.nan, np.inf], ids=str)
def test_values_that_are_no_numbers_have_no_weight(hole: float) -> None:
    matrix = measured()
    matrix.samples[1, ::7] = hole
    plain, series = norm(measured()), norm(matrix)
    assert series.exposure[1, ::7].tolist() == [0.0] * len(POSITION[::7])
    assert np.isfinite(series.observed).all()
    assert series.centre[1] == pytest.approx(plain.centre[1], abs=0.1)
    np.testing.assert_array_equal(series.observed[[0, 2]], plain.observed[[0, 2]])


def test_a_series_without_any_value() -> None:
    series = norm(matrix_of(np.full((1, END), np.nan)))
    assert not series.exposure.any()
    assert np.isfinite(series.variance).all()


def test_what_came_after_the_history_is_not_learnt_from() -> None:
    for matrix in (counted(flat(LEVELS)), measured()):
        later = replace(matrix, samples=np.where(POSITION >= HISTORY, 3 * matrix.samples, matrix.samples))
        one, other = norm(matrix), norm(later)
        for name in ("variance", "degrees_of_freedom", "centre", "scale", "cycle"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_the_share_factor_moves_what_is_expected_of_a_share_by_what_others_left_of_it() -> None:
    factor = np.where(POSITION >= 500, 0.96, 1.0)
    shares = np.array([[0.01], [0.5], [1.0]]) * np.ones(END)
    plain = norm(counted(shares))
    normalised = norm(replace(counted(shares), share_factor=factor))
    moved = (normalised.exposure / plain.exposure)[:, 500:].mean(axis=1)
    np.testing.assert_allclose(moved, [0.96**0.99, 0.96**0.5, 1.0], rtol=1e-3)
    np.testing.assert_array_equal(normalised.exposure[:, :500], plain.exposure[:, :500])


def test_no_series() -> None:
    series = norm(matrix_of(np.empty((0, END)), TOTALS))
    assert series.levels().shape == (0, END)
