"""Factors of machines: what explains results, which spread, and pairs that match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from pipeline.experiments.trials.machine_spread import spread_of_levels, spreads
from pipeline.experiments.trials.machines import Results, choose_factors, explained_shares, match_machines
from pipeline.model import FloatArray, IntArray

EFFECTS: Mapping[str, Sequence[float]] = {
    "arch": (0.0, 10.0, 30.0, -10.0),
    "kernel": (0.0, 5.0, -5.0),
    "turbo": (0.0, 8.0),
    "ram": (0.0, 0.0, 0.0, 0.0, 0.0),
}
"""What each level adds to a result of 100."""

NOISE = 3.0


def draw(count: int, seed: int = 1, wide: tuple[str, int, float] = ("", 0, 1.0)) -> Results:
    """Return results of machines whose model is nested in the architecture; one level may spread more."""
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(0, len(levels), count) for name, levels in EFFECTS.items()}
    values = 100 + sum(np.array(EFFECTS[name])[codes[name]] for name in EFFECTS)
    factor, level, times = wide
    spread = np.where(codes[factor] == level, NOISE * times, NOISE) if factor else NOISE
    codes["model"] = codes["arch"] * 20 + rng.integers(0, 20, count)
    return of(values + rng.normal(0, 1, count) * spread, codes)


def of(values: FloatArray, codes: Mapping[str, IntArray]) -> Results:
    levels = tuple(tuple(map(str, range(int(code.max()) + 1))) for code in codes.values())
    return Results(values, tuple(codes), np.stack(list(codes.values()), axis=1), levels)


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
@pytest.mark.parametrize(
    "factors", [("arch",), ("arch", "kernel"), ("model", "kernel"), ("arch", "model", "turbo"), ("ram",)]
)
def test_share_is_the_adjusted_one_of_statsmodels(factors: tuple[str, ...]) -> None:
    results = draw(400)
    columns = [results.codes[:, results.factors.index(name)] for name in factors]
    design = np.column_stack([np.eye(int(codes.max()) + 1)[codes] for codes in columns])
    expected = sm.OLS(results.values, design, hasconst=True).fit().rsquared_adj
    assert explained_shares(results, [factors])[0].share == pytest.approx(expected, abs=1e-9)


def test_fewest_factors_that_explain_as_much_are_chosen() -> None:
    chosen, upper = choose_factors(draw(3000))
    assert chosen.factors == ("arch", "kernel", "turbo")
    assert chosen.share == pytest.approx(upper.share, abs=0.02)
    assert choose_factors(draw(3000), tolerance=0.2)[0].factors == ("arch",)


def test_where_nothing_differs_no_factor_is_chosen() -> None:
    values = np.random.default_rng(2).normal(100, 1, 500)
    codes = {name: np.random.default_rng(3).integers(0, 50, 500) for name in ("arch", "machine")}
    assert choose_factors(of(values, codes))[0].factors == ()


@pytest.mark.parametrize("values", [np.full(6, 5.0), np.array([5.0])])
def test_results_without_variance_explain_nothing(values: FloatArray) -> None:
    results = of(values, {"arch": np.arange(len(values))})
    assert choose_factors(results)[0].share == 0.0
    assert not any(level.avoid for level in spread_of_levels(results, ()))


@pytest.mark.parametrize(("factor", "level"), [("kernel", 1), ("turbo", 1), ("model", 7)])
def test_only_the_level_that_spreads_is_avoided(factor: str, level: int) -> None:
    results = draw(8000, wide=(factor, level, 3.0)) if factor != "model" else _model_spreads(level)
    levels = spread_of_levels(results, ("arch", "kernel", "turbo"))
    assert [(each.factor, each.level) for each in levels if each.avoid] == [(factor, str(level))]


def _model_spreads(level: int) -> Results:
    results = draw(8000)
    inside = results.codes[:, results.factors.index("model")] == level
    results.values[inside] += np.random.default_rng(5).normal(0, 9, int(inside.sum()))
    return results


def test_equal_spreads_are_hardly_ever_avoided() -> None:
    avoided = [
        any(each.avoid for each in spread_of_levels(draw(600, seed), ("arch",))) for seed in range(100)
    ]
    assert sum(avoided) <= 4  # 1 % of families, four standard deviations of chance


def test_matched_spread_is_that_of_the_noise() -> None:
    levels = spread_of_levels(draw(8000), ("arch", "kernel", "turbo"))
    assert all(each.matched == pytest.approx(3 / 105, rel=0.25) for each in levels if each.factor == "ram")
    assert all(each.spread > 3 * each.matched for each in levels if each.factor == "ram")


def test_spread_of_groups_of_two_or_more() -> None:
    found = spreads(np.array([9.0, 11.0, 5.0, 7.0, 7.0]), np.array([0, 0, 1, 3, 3]))
    assert found.tolist() == pytest.approx([np.sqrt(2) / 10, 0.0])


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_pairs_match_and_no_machine_is_in_two(cells: list[int], pairs: int, seed: int) -> None:
    numbers = np.array(cells, np.int64)
    found = match_machines(numbers, pairs, np.random.default_rng(seed))
    possible = int((np.bincount(numbers) // 2).sum()) if cells else 0
    assert found.shape == (min(pairs, possible), 2)
    assert (numbers[found[:, 0]] == numbers[found[:, 1]]).all()
    assert len(set(found.ravel().tolist())) == found.size
    if len(found) and pairs <= np.bincount(numbers).max() // 2:
        assert len(set(numbers[found].ravel().tolist())) == 1  # one cell suffices


def test_sides_are_drawn_by_chance() -> None:
    drawn = [
        match_machines(np.zeros(2, np.int64), 1, np.random.default_rng(seed))[0, 0] for seed in range(200)
    ]
    assert 60 < sum(drawn) < 140
