from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.stacks import StackIndex, index_stacks, mean_depths, membership, rows_of
from pipeline.analysis.stacks.index import share_changes
from pipeline.model import SeriesKey, StackMatrix
from tests.support.builders import build_stacks


def random_matrix(seed: int, count: int = 60) -> StackMatrix:
    rng = np.random.default_rng(seed)
    drawn = {tuple(f"f{n}" for n in rng.integers(0, 12, rng.integers(1, 8))) for _ in range(count)}
    before, after = rng.integers(0, 100, size=(2, len(drawn))).astype(float)
    return StackMatrix(tuple(sorted(drawn)), before, after, 5000.0, 4000.0)


def subroutines(*names: str) -> list[SeriesKey]:
    return [SeriesKey("subroutine", name) for name in names]


def spelt(index: StackIndex) -> list[tuple[str, ...]]:
    """The stacks, read back from their numbers."""
    names = [index.names[number] for number in index.label.tolist()]
    return [tuple(names[a:b]) for a, b in zip(index.starts, index.starts[1:], strict=False)]


@pytest.mark.parametrize("seed", range(3))
def test_an_index_holds_its_stacks(seed: int) -> None:
    matrix = random_matrix(seed)
    index = index_stacks(matrix)
    assert spelt(index) == list(matrix.stacks)
    assert list(index.names) == sorted(index.names)
    assert index.deepest == max(map(len, matrix.stacks))
    for name, number in index.labels.items():
        positions = index.positions(name)
        assert positions.tolist() == np.flatnonzero(index.label == number).tolist()
        for stack in np.unique(index.stack[positions]).tolist():
            own = positions[index.stack[positions] == stack]
            assert index.first[own].tolist() == [True] + [False] * (len(own) - 1)
            assert index.last[own].tolist() == [False] * (len(own) - 1) + [True]


@pytest.mark.parametrize("seed", range(3))
def test_what_holds_a_label_and_the_sums_over_it(seed: int) -> None:
    matrix = random_matrix(seed)
    index = index_stacks(matrix)
    series = subroutines(*(f"f{n}" for n in range(13)))
    for row, (_, name) in zip(membership(index, series), series, strict=True):
        assert row.tolist() == [name in stack for stack in matrix.stacks]
        assert index.holding([name]).tolist() == row.tolist()
    assert index.holding(["f1", "f2"]).tolist() == [bool({"f1", "f2"} & {*s}) for s in matrix.stacks]
    weights = np.random.default_rng(seed).random((2, index.stacks))
    for name, number in index.labels.items():
        assert index.sums(weights)[:, number] == pytest.approx(weights[:, index.holding([name])].sum(axis=1))
        assert index.sums(weights[0])[number] == pytest.approx(weights[0, index.holding([name])].sum())


@pytest.mark.parametrize("first", [0, 1, 20, 40])
def test_an_index_grows_to_what_it_would_have_been(first: int) -> None:
    matrix = random_matrix(5, count=40)
    stacks, before, after = matrix.stacks[:first], matrix.before[:first], matrix.after[:first]
    known = index_stacks(StackMatrix(stacks, before, after, 5000.0, 4000.0))
    extended, whole = index_stacks(matrix, known), index_stacks(matrix)
    assert extended.names == whole.names
    assert spelt(extended) == spelt(whole)
    assert (extended.incidence != whole.incidence).nnz == 0


def test_annotations_are_no_subroutines() -> None:
    index = index_stacks(build_stacks({"main->endpoint=/x->h": (1, 1), "metadata=m->h": (1, 1)}))
    named = zip(index.names, index.subroutine.tolist(), strict=True)
    assert dict(named) == {"endpoint=/x": False, "h": True, "main": True, "metadata=m": False}
    assert rows_of(index, [SeriesKey("endpoint", "/x"), SeriesKey("subroutine", "/x")]).tolist() == [0, -1]


def test_membership_depth_and_changes_of_stacks() -> None:
    matrix = build_stacks({"a->b->c": (10, 30), "a->c": (10, 10), "d": (80, 60)})
    index, series = index_stacks(matrix), subroutines("c", "d", "gone")
    assert membership(index, series).tolist() == [[True, True, False], [False, False, True], [False] * 3]
    assert share_changes(matrix) == pytest.approx([0.2, 0.0, -0.2])
    assert index.rise == pytest.approx([0.2, 0.0, -0.2])
    assert mean_depths(index, series) == pytest.approx([(30 * 2 + 10 * 1) / 40, 0.0, 0.0])


def test_the_deepest_of_a_recursion_counts() -> None:
    index = index_stacks(build_stacks({"a->b->a": (0, 1), "a": (0, 3)}))
    assert mean_depths(index, subroutines("a")) == pytest.approx([2 / 4])


def test_share_changes_without_samples_on_one_side_are_zero() -> None:
    matrix = build_stacks({"a": (0, 5)})
    assert share_changes(matrix).tolist() == [0.0]
    assert np.isfinite(share_changes(matrix)).all()


def test_an_index_of_nothing() -> None:
    index = index_stacks(build_stacks({}))
    assert (index.stacks, index.names, index.deepest) == (0, (), 0)
    assert index.holding(["a"]).tolist() == []
    assert index.sums(np.zeros((2, 0))).shape == (2, 0)
    assert membership(index, subroutines("a")).shape == (1, 0)
