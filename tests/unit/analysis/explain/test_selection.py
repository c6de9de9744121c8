"""Selection of causes and their fit, against the equations that define it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.explain.cause_sets import CauseSets, find_cause_sets
from pipeline.analysis.explain.selection import deviance, fit_causes, select_causes
from pipeline.analysis.stacks import index_stacks
from pipeline.model import FloatArray, Int32Array, StackMatrix
from tests.unit.analysis.explain.trees import build_tree

TREE = build_tree()


def sets_of_tree() -> CauseSets:
    matrix = StackMatrix(TREE.stacks, TREE.rates, TREE.rates, TREE.rates.sum(), TREE.rates.sum())
    return find_cause_sets(index_stacks(matrix), TREE.rates, 1.0)


SETS = sets_of_tree()


def number_of(kind: str, name: str, caller: str = "") -> int:
    (number,) = [k for k in range(len(SETS)) if (kind, name, caller) in set(SETS.readings(k))]
    return number


@given(
    st.lists(st.integers(0, len(SETS) - 1), max_size=4, unique=True),
    st.lists(st.floats(0.5, 2.0), min_size=len(TREE.rates), max_size=len(TREE.rates)),
)
def test_a_fit_has_the_sums_that_were_seen(causes: list[int], factors: list[float]) -> None:
    seen = TREE.rates * np.array(factors)
    fit = fit_causes(SETS, causes, seen, TREE.rates, sweeps=400)
    for row, cause in enumerate(causes):
        stacks = SETS.of(cause)
        left = stacks[fit.owner[stacks] < 0]
        assert np.isclose(fit.samples[left].sum(), seen[left].sum(), rtol=1e-3)
        if SETS.is_own[cause]:
            assert np.array_equal(fit.samples[stacks], seen[stacks])
            assert np.isnan(fit.factors[row])
    untouched = np.ones(len(seen), dtype=np.bool_)
    for cause in causes:
        untouched[SETS.of(cause)] = False
    assert np.array_equal(fit.samples[untouched], TREE.rates[untouched])


def changed(rows: Int32Array, factor: float) -> FloatArray:
    seen = TREE.rates.copy()
    seen[rows] *= factor
    return seen


def test_of_nested_sets_the_change_says_which() -> None:
    plain, least = np.full(len(SETS), 2.0), np.full(len(SETS), 20.0)
    for kind, name, caller in (
        ("own", "pack", ""),
        ("own", "scan3", ""),
        ("through", "codec", ""),
        ("calls", "codec", "save2"),
        ("through", "handle1", ""),
    ):
        cause = number_of(kind, name, caller)
        seen = changed(SETS.of(cause), 1.3)
        assert select_causes(SETS, seen, TREE.rates, plain, least) == [cause], (kind, name)


def test_a_restless_leaf_is_still_the_cause_and_not_its_steadier_caller() -> None:
    dispersion, least = np.full(len(SETS), 2.0), np.full(len(SETS), 20.0)
    leaf = number_of("own", "scan3")
    dispersion[leaf] = 12.0  # for one of its earlier days was odd
    seen = changed(SETS.of(leaf), 1.5)
    assert select_causes(SETS, seen, TREE.rates, dispersion, least) == [leaf]


def test_a_cause_that_is_asked_less_of_needs_less() -> None:
    plain, least = np.full(len(SETS), 2.0), np.full(len(SETS), 20.0)
    leaf = number_of("own", "scan3")
    seen = changed(SETS.of(leaf), 1.08)
    assert select_causes(SETS, seen, TREE.rates, plain, least) == []
    least[leaf] = 8.0
    assert select_causes(SETS, seen, TREE.rates, plain, least) == [leaf]


def test_two_causes_at_once_are_two() -> None:
    plain, least = np.full(len(SETS), 2.0), np.full(len(SETS), 20.0)
    pack, load = number_of("own", "pack"), number_of("through", "load4")
    seen = changed(SETS.of(pack), 1.2)
    seen[SETS.of(load)] *= 0.8
    assert set(select_causes(SETS, seen, TREE.rates, plain, least)) == {pack, load}


def test_what_others_explain_is_pruned() -> None:
    plain, least = np.full(len(SETS), 2.0), np.full(len(SETS), 20.0)
    parts = [number_of("own", name) for name in ("handle0", "scan0", "save0")]
    seen = TREE.rates.copy()
    for part, factor in zip(parts, (1.5, 1.2, 1.8), strict=True):
        seen[SETS.of(part)] *= factor  # all below handle0
    assert set(select_causes(SETS, seen, TREE.rates, plain, least)) == set(parts)


def test_nothing_is_explained_where_nothing_changed() -> None:
    assert (
        select_causes(SETS, TREE.rates, TREE.rates, np.full(len(SETS), 2.0), np.full(len(SETS), 20.0)) == []
    )
    nothing = np.zeros(len(TREE.rates))
    assert fit_causes(SETS, [], nothing, nothing).samples.sum() == 0


def test_deviance_is_about_a_squared_score() -> None:
    mean = np.array([1e4, 1e4, 1e4, 5.0])
    seen = mean + np.array([300.0, -300.0, 0.0, -5.0])
    assert np.allclose(deviance(seen, mean)[:3], [9.0, -9.0, 0.0], atol=0.15)
    assert np.isclose(deviance(seen, mean)[3], -10.0), "of nothing seen, twice what was expected"
