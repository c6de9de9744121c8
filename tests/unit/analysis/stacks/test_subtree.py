from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pipeline.analysis.stacks import index_stacks, measure_rises, rows_of, sum_descendant_sets
from pipeline.analysis.stacks.index import share_changes
from pipeline.analysis.stacks.subtree import sum_descendants
from pipeline.model import SeriesKey, StackMatrix

NAMES = ("a", "b", "c", "d", "e")
SETS = (("b", "d"), ("e",), (), ("unknown",), ("b", "e", "unknown"))


def random_stacks(seed: int, count: int = 40) -> StackMatrix:
    rng = np.random.default_rng(seed)
    found = {tuple(rng.choice(NAMES, size=rng.integers(1, 7)).tolist()) for _ in range(count)}
    stacks = tuple(sorted(found))
    before, after = rng.integers(0, 100, size=(2, len(stacks))).astype(float)
    return StackMatrix(stacks, before, after, 5000.0, 4000.0)


def subroutines(*names: str) -> list[SeriesKey]:
    return [SeriesKey("subroutine", name) for name in names]


def through(matrix: StackMatrix, series: str, wanted: Sequence[str]) -> float:
    """The definition: stacks that hold any of some names at or below the first place of a series."""
    rises = zip(matrix.stacks, share_changes(matrix).tolist(), strict=True)
    return sum(
        float(rise)
        for stack, rise in rises
        if series in stack and not set(wanted).isdisjoint(stack[stack.index(series) :])
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_comes_through_one_name_or_any_of_a_set(seed: int) -> None:
    matrix = random_stacks(seed)
    frames, asked = index_stacks(matrix), ("c", "a", "nobody", "c")
    rows = rows_of(frames, subroutines(*asked))
    one = sum_descendants(frames, rows).toarray()
    some = sum_descendant_sets(frames, rows, SETS).toarray()
    for position, series in enumerate(asked):
        for name in frames.names:
            assert one[position, frames.names.index(name)] == pytest.approx(through(matrix, series, [name]))
        for number, names in enumerate(SETS):
            assert some[position, number] == pytest.approx(through(matrix, series, names))


def test_a_set_of_nothing_and_no_stacks_at_all() -> None:
    matrix = random_stacks(1)
    frames = index_stacks(matrix)
    assert sum_descendant_sets(frames, rows_of(frames, subroutines("a")), []).shape == (1, 0)
    empty = index_stacks(StackMatrix((), np.zeros(0), np.zeros(0), 0.0, 0.0))
    rises = measure_rises(empty, subroutines("a"))
    assert rises.size.tolist() == [0.0]
    assert rises.through(0)[0].tolist() == []
    assert sum_descendant_sets(empty, rises.rows, SETS).toarray().tolist() == [[0.0] * len(SETS)]


def test_how_large_a_rise_is() -> None:
    matrix = StackMatrix((("a",), ("b",)), np.array([100.0, 900.0]), np.array([120.0, 880.0]), 1e3, 1e3)
    assert measure_rises(index_stacks(matrix), subroutines("a")).size[0] == pytest.approx(0.02)
