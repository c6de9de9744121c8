from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.analysis.published.exclusive_stacks import group_by_exclusive_stacks
from pipeline.analysis.published.importance import importance_scores
from pipeline.analysis.published.som import cluster_items
from pipeline.analysis.published.som_dedup import group_by_som
from pipeline.analysis.published.som_features import spectra
from pipeline.analysis.stacks import Group, index_stacks, rows_of
from pipeline.analysis.stacks.subtree import sum_descendants
from pipeline.analysis.statistics.name_vectors import name_vectors
from pipeline.model import Change, FloatArray, SeriesKey, StackMatrix
from tests.support.builders import build_change, build_stacks
from tests.support.dedup import build_candidates, group

NAMES = "abcdefgh"
STACKS = st.dictionaries(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6).map("->".join),
    st.tuples(st.integers(0, 40), st.integers(0, 40)),
    min_size=1,
    max_size=10,
).map(lambda rows: build_stacks(rows, total=1000))
CHANGES = st.lists(
    st.builds(
        build_change,
        st.sampled_from(["D1", "D2", "D3"]),
        st.lists(st.sampled_from(NAMES), max_size=3),
        time=st.sampled_from([1e9, 1e9 + 60]),
    ),
    max_size=3,
)
ORDERS = st.permutations(list(range(len(NAMES))))

Parts = set[frozenset[str]]


def parts(groups: Sequence[Group], names: Sequence[str]) -> Parts:
    return {frozenset(names[i] for i in (group.representative, *group.members)) for group in groups}


def by_cause(matrix: StackMatrix, names: Sequence[str], changes: Sequence[Change]) -> Sequence[Group]:
    # Regressions of one workload all move one way.
    candidates = [
        replace(candidate, after=candidate.before + abs(candidate.delta) + 1e-9)
        for candidate in build_candidates(matrix, names)
    ]
    return [found for found, _ in group(matrix, candidates, changes)]


def by_exclusive(matrix: StackMatrix, names: Sequence[str]) -> Sequence[Group]:
    return group_by_exclusive_stacks(
        index_stacks(matrix),
        [SeriesKey("subroutine", name) for name in names],
        np.zeros(len(names)),
        config=None,
    )


@given(STACKS, CHANGES)
@settings(max_examples=60)
def test_each_candidate_is_in_one_group(matrix: StackMatrix, changes: list[Change]) -> None:
    for groups in (by_cause(matrix, NAMES, changes), by_exclusive(matrix, NAMES)):
        everyone = [i for group in groups for i in (group.representative, *group.members)]
        assert sorted(everyone) == list(range(len(NAMES)))
        assert all(len(group.members) == len(group.explained) for group in groups)


EQUAL_RISES = build_stacks(
    {
        **{"a": (0, 0), "a->a": (0, 0), "a->a->c": (16, 15), "a->b": (16, 3), "a->c": (22, 39)},
        **{"a->a->a": (0, 0), "a->a->b": (0, 16), "a->d": (31, 6), "b->a": (36, 26)},
    },
    total=1000,
)

CANCELLED = build_stacks({"a": (0, 12), "a->c->b": (22, 1), "a->b": (4, 13), "b": (0, 12)}, total=1000)


@given(STACKS, CHANGES)
@example(EQUAL_RISES, [])
@example(CANCELLED, [])
@settings(max_examples=60)
def test_the_order_of_stacks_changes_no_cause(matrix: StackMatrix, changes: list[Change]) -> None:
    turned = StackMatrix(
        matrix.stacks[::-1], matrix.before[::-1], matrix.after[::-1], matrix.total_before, matrix.total_after
    )
    assert parts(by_cause(matrix, NAMES, changes), NAMES) == parts(by_cause(turned, NAMES, changes), NAMES)


@given(STACKS, CHANGES)
@settings(max_examples=60)
def test_what_one_change_modified_and_all_rise_through_is_one_cause(
    matrix: StackMatrix, changes: list[Change]
) -> None:
    changes = [*changes, build_change("D9", NAMES)]
    assert len(by_cause(matrix, NAMES, changes)) == 1


@given(STACKS)
@settings(max_examples=60)
def test_sums_under_agree_with_the_definition(matrix: StackMatrix) -> None:
    frames = index_stacks(matrix)
    series: list[SeriesKey] = [SeriesKey("subroutine", name) for name in NAMES]
    found = sum_descendants(frames, rows_of(frames, series)).toarray()
    for row, name in enumerate(NAMES):
        for column, other in enumerate(frames.names):
            held = [
                rise
                for stack, rise in zip(matrix.stacks, frames.rise.tolist(), strict=True)
                if name in stack and other in stack[stack.index(name) :]
            ]
            assert found[row, column] == pytest.approx(sum(held))


def candidates(seed: int, size: int) -> tuple[FloatArray, list[str], FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, size)
    values = 0.01 + 0.01 * (np.arange(64) > 40 + 6 * kind[:, None]) + 0.001 * rng.normal(size=(size, 64))
    names = [f"shop.mod{k}.Class.method_{number}" for number, k in enumerate(kind.tolist())]
    times: FloatArray = 1e9 + 3600.0 * kind.astype(np.float64)
    return values, names, times, np.full(size, 0.01), 0.02 + 0.001 * rng.random(size)


@given(st.integers(0, 10_000), ORDERS)
@settings(max_examples=25, deadline=None)
def test_the_order_of_candidates_changes_no_group_of_the_map(seed: int, order: list[int]) -> None:
    values, names, times, before, after = candidates(seed, len(NAMES))
    causes = np.random.default_rng(seed).random((len(NAMES), 3)) < 0.2
    straight = group_by_som(values, names, times, before, after, causes)
    turned = group_by_som(
        values[order], [names[i] for i in order], times[order], before[order], after[order], causes[order]
    )
    assert parts(straight, names) == parts(turned, [names[i] for i in order])
    assert {names[group.representative] for group in straight} == {
        names[order[group.representative]] for group in turned
    }


@given(st.integers(0, 10_000), st.floats(0.1, 1e3), st.floats(-1e3, 1e3))
@settings(max_examples=40, deadline=None)
def test_spectra_hang_on_no_scale_or_level(seed: int, scale: float, shift: float) -> None:
    values = np.random.default_rng(seed).normal(size=(3, 64))
    assert spectra(scale * values + shift, 8) == pytest.approx(spectra(values, 8), abs=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_equal_items_are_always_in_one_cluster(seed: int, size: int) -> None:
    items = np.random.default_rng(seed).normal(size=(size, 4))
    twice = np.vstack([items, items])
    found = cluster_items(twice)
    assert found[:size].tolist() == found[size:].tolist()


@given(st.lists(st.text(max_size=12), min_size=1, max_size=8))
@settings(max_examples=60)
def test_name_vectors_have_length_one_or_none(names: list[str]) -> None:
    lengths = np.sqrt(np.square(name_vectors(names, (2, 3), 64)).sum(axis=1))
    assert all(length == pytest.approx(0) or length == pytest.approx(1) for length in lengths.tolist())
    equal = name_vectors([*names, names[0]], (2, 3), 64)
    assert equal[0] == pytest.approx(equal[-1])


@given(st.integers(0, 10_000), st.integers(1, 30))
@settings(max_examples=40)
def test_importance_is_at_most_the_sum_of_its_weights(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = rng.random(size), rng.random(size)
    scores = importance_scores(before, after, rng.random(size) < 0.5, rng.integers(0, 3, size))
    assert np.all((scores >= 0) & (scores <= 1 + 1e-12))
