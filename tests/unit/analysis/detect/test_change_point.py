from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.analysis.detect.change_point import (
    Family,
    SideSums,
    log_odds_span,
    p_values,
    ratio,
    root_bounds,
    signed_roots,
    split_sums,
)
from pipeline.model import FloatArray

RNG = np.random.default_rng(20)


def sums(left: float, left_exposure: float, right: float, right_exposure: float) -> SideSums:
    return SideSums(*(np.array([[value]]) for value in (left, left_exposure, right, right_exposure)))


def root(family: Family, *sides: float) -> float:
    return float(signed_roots(sums(*sides), family)[0, 0])


def all_splits(observed: FloatArray, exposure: FloatArray) -> SideSums:
    return split_sums(observed, exposure, first=1, last=observed.shape[1] - 1)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param(1, 11, id="all splits"),
        pytest.param(4, 7, id="some"),
        pytest.param(5, 5, id="one"),
        pytest.param(1, 1, id="the first"),
        pytest.param(11, 11, id="the last"),
    ],
)
def test_both_sides_of_each_split_are_summed(first: int, last: int) -> None:
    observed, exposure = RNG.poisson(5.0, (2, 12)).astype(np.float64), RNG.uniform(1, 2, (2, 12))
    found = split_sums(observed, exposure, first=first, last=last)
    positions = range(first, last + 1)
    for row in range(2):
        assert found.left[row].tolist() == [observed[row, :at].sum() for at in positions]
        assert found.right[row].tolist() == [observed[row, at:].sum() for at in positions]
        np.testing.assert_allclose(found.left_exposure[row], [exposure[row, :at].sum() for at in positions])
        np.testing.assert_allclose(found.right_exposure[row], [exposure[row, at:].sum() for at in positions])


def test_sums_of_counts_stay_whole_over_many_windows() -> None:
    counts = np.random.default_rng(1).poisson(1e6, (3, 1500)).astype(np.float64)
    found = split_sums(counts, np.ones(counts.shape), first=1400, last=1490)
    assert (found.left % 1 == 0).all()
    assert (found.left + found.right == counts.sum(axis=1, keepdims=True)).all()


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        # Means 2 and 5 of 4 and 12 points: 3 / √(1/4 + 1/12).
        pytest.param((8, 4, 60, 12), 3 / np.sqrt(1 / 3), id="a rise"),
        pytest.param((60, 12, 8, 4), -3 / np.sqrt(1 / 3), id="a fall"),
        pytest.param((8, 4, 24, 12), 0.0, id="the same level"),
        pytest.param((0, 0, 24, 12), 0.0, id="no data before"),
        pytest.param((8, 4, 0, 0), 0.0, id="no data after"),
    ],
)
def test_of_values_it_is_the_standardised_cusum(sides: tuple[float, ...], expected: float) -> None:
    assert root("values", *sides) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("sides", "sign"),
    [
        pytest.param((10, 20, 40, 40), 1, id="a rise"),
        pytest.param((40, 40, 10, 20), -1, id="a fall"),
        pytest.param((0, 30, 5, 10), 1, id="from nothing"),
        pytest.param((5, 10, 0, 30), -1, id="to nothing"),
        pytest.param((100, 1e-3, 3, 1e-3), -1, id="tiny expectations"),
    ],
)
def test_of_counts_it_is_the_poisson_likelihood_ratio(sides: tuple[float, ...], sign: int) -> None:
    left, expected_left, right, expected_right = sides
    common = (left + right) / (expected_left + expected_right)
    both = [(left, expected_left), (right, expected_right)]
    two_levels = sum(stats.poisson.logpmf(count, count) for count, _ in both)
    one_level = sum(stats.poisson.logpmf(count, common * expected) for count, expected in both)
    assert root("counts", *sides) == pytest.approx(sign * np.sqrt(2 * (two_levels - one_level)))


@pytest.mark.parametrize(
    "sides",
    [
        pytest.param((0, 10, 0, 20), id="nothing was seen"),
        pytest.param((0, 0, 7, 20), id="no data before"),
        pytest.param((7, 20, 0, 0), id="no data after"),
        pytest.param((7, 20, 14, 40), id="as expected"),
    ],
)
def test_counts_that_say_nothing_have_no_root(sides: tuple[float, ...]) -> None:
    assert root("counts", *sides) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("family", ["values", "counts"])
def test_of_many_and_noisy_counts_both_families_say_the_same(family: Family) -> None:
    # 10,000 counts before, 5,300 in half of the time after: 300 / √(10000/4 + 5000).
    if family == "values":
        found = root("values", 10_000.0, 10_000.0, 5_300.0, 5_000.0)
    else:
        found = root("counts", 10_000.0, 10_000.0, 5_300.0, 5_000.0)
    assert found == pytest.approx(0.06 / np.sqrt(1 / 10_000 + 1 / 5_000), rel=0.03)


@pytest.mark.parametrize("expected", [3.0, 30.0, 3000.0])
def test_without_change_the_root_of_counts_is_standard_normal(expected: float) -> None:
    rng = np.random.default_rng(4)
    counts = rng.poisson(expected, (20_000, 3)).astype(np.float64)
    found = signed_roots(split_sums(counts, np.ones(counts.shape), first=1, last=1), "counts")[:, 0]
    assert found.mean() == pytest.approx(0.0, abs=0.1)
    assert found.std() == pytest.approx(1.0, abs=0.07)


def test_the_largest_root_is_the_split_of_maximum_likelihood() -> None:
    rng = np.random.default_rng(3)
    series = rng.normal(0, 1, (100, 60)) + np.where(np.arange(60) >= 40, 0.8, 0.0)
    weights = np.broadcast_to(rng.uniform(0.5, 2.0, 60), series.shape)

    def error(row: int, at: int) -> float:
        sides = ((series[row, s], weights[row, s]) for s in (slice(at), slice(at, None)))
        return sum(float((w * (x - np.average(x, weights=w)) ** 2).sum()) for x, w in sides)

    roots = signed_roots(all_splits(series * weights, weights), "values")
    likeliest = [min(range(1, 60), key=lambda at, row=row: error(row, at)) for row in range(100)]  # type: ignore[misc]
    assert (np.abs(roots).argmax(axis=1) + 1).tolist() == likeliest


@pytest.mark.parametrize("family", ["values", "counts"])
def test_windows_without_exposure_count_for_nothing(family: Family) -> None:
    observed = np.random.default_rng(2).poisson(20.0, (1, 30)).astype(np.float64)
    exposure = np.full((1, 30), 20.0)
    holes = [
        np.concatenate([one[:, :12], np.zeros((1, 3)), one[:, 12:]], axis=1) for one in (observed, exposure)
    ]
    plain, holed = (signed_roots(all_splits(*one), family)[0] for one in ((observed, exposure), holes))
    expected = np.concatenate([plain[:11], np.repeat(plain[11], 4), plain[12:]])
    np.testing.assert_allclose(holed, expected, atol=1e-9)


def one_p(size: float, *, degrees_of_freedom: float = 50.0, span: float = 2.0, splits: int = 20) -> float:
    columns = np.array([size]), np.array([degrees_of_freedom]), np.array([span])
    return float(p_values(*columns, np.array([splits]))[0])


def test_a_single_split_is_tested_by_students_t() -> None:
    assert one_p(3.0, degrees_of_freedom=7.0, span=0.0, splits=1) == pytest.approx(2 * stats.t.sf(3.0, 7.0))


@pytest.mark.parametrize(
    ("stricter", "milder"),
    [
        pytest.param({"size": 3.0}, {"size": 4.0}, id="a larger root"),
        pytest.param({"size": 4.0, "degrees_of_freedom": 5.0}, {"size": 4.0}, id="better known noise"),
        pytest.param({"size": 4.0, "span": 3.0}, {"size": 4.0, "span": 1.0}, id="a shorter span"),
        pytest.param({"size": 4.0, "span": 9.0}, {"size": 4.0, "span": 9.0, "splits": 2}, id="fewer splits"),
    ],
)  # fmt: skip
def test_what_makes_a_change_more_certain(stricter: dict[str, float], milder: dict[str, float]) -> None:
    assert one_p(**stricter) > one_p(**milder)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0.0, 0.3, 1.0, 2.0, 5.0, 40.0, 1e6], ids=str)
def test_a_p_value_lies_between_one_test_and_as_many_independent_ones(size: float) -> None:
    one = one_p(size, span=0.0, splits=1)
    found = one_p(size, splits=30)
    assert 0.0 <= one <= found <= 1.0
    assert found <= 30 * one or found == pytest.approx(-np.expm1(30 * np.log1p(-one)))


def test_no_change_at_all_is_certain_to_be_reached() -> None:
    assert one_p(0.0) == 1.0


def test_where_no_split_was_searched_nothing_is_significant() -> None:
    assert one_p(0.0, span=0.0, splits=0) == 1.0


def test_both_signs_are_equal() -> None:
    assert one_p(-4.0) == one_p(4.0)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param(150, 197, id="up to the end"),
        pytest.param(150, 170, id="with room at the end"),
        pytest.param(100, 100, id="one split"),
        pytest.param(20, 180, id="nearly everywhere"),
    ],
)
def test_on_noise_the_significance_level_is_kept_despite_the_search(first: int, last: int) -> None:
    noise = np.random.default_rng(7).normal(0, 1, (4000, 200))
    found = split_sums(noise, np.ones(noise.shape), first=first, last=last)
    best = np.abs(signed_roots(found, "values")).max(axis=1)
    span = log_odds_span(found, np.ones(found.left.shape, dtype=np.bool_))
    p_value = p_values(best, np.full(4000, 1e6), span, np.full(4000, last - first + 1))
    for level in (0.01, 0.05):
        assert stats.binom.isf(0.999, 4000, level / 2) / 4000 <= (p_value < level).mean()
        assert (p_value < level).mean() <= stats.binom.isf(0.001, 4000, level) / 4000


def test_the_span_is_that_of_the_allowed_splits() -> None:
    exposure = np.ones((3, 10))
    allowed = np.zeros((3, 9), dtype=np.bool_)
    allowed[0, 1:8] = True  # 2 to 8 of 10 windows before the split
    allowed[1, 4] = True
    span = log_odds_span(all_splits(exposure, exposure), allowed)
    assert span.tolist() == pytest.approx([np.log(16.0), 0.0, 0.0])


def test_nothing_divided_by_nothing_is_zero() -> None:
    assert ratio(np.array([1.0, 4.0]), np.array([0.0, 2.0])).tolist() == [0.0, 2.0]


@pytest.mark.parametrize("family", ["counts", "values"])
@pytest.mark.parametrize("mean", [0.05, 1.0, 40.0])
def test_bounds_are_no_nearer_to_0_than_roots(family: Family, mean: float) -> None:
    counts = RNG.poisson(mean * RNG.uniform(0.2, 3.0, (200, 1)), (200, 50)).astype(np.float64)
    exposure = RNG.uniform(0.5, 2.0, (200, 50)) * (RNG.random((200, 50)) > 0.1)
    some = all_splits(counts * (exposure > 0), exposure)
    roots, bounds = signed_roots(some, family), root_bounds(some, family)
    assert (np.abs(roots) <= np.abs(bounds) + 1e-5).all()  # logarithms round
    assert (np.sign(roots) == np.sign(bounds))[np.abs(roots) > 1e-5].all()
    if mean == 40.0:
        assert np.median(np.abs(bounds)[roots != 0] / np.abs(roots)[roots != 0]) < 1.02
