"""What the callers of a subroutine do besides it, path by path."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.stacks import (
    Beside,
    StackIndex,
    beside_callers,
    callees_beside,
    caller_nodes,
    deepest_of,
    index_stacks,
)
from tests.support.builders import build_stacks

ROWS = {
    "main->a->f": (10.0, 20.0),
    "main->a->g": (12.0, 24.0),
    "main->a": (4.0, 8.0),
    "main->b->f": (10.0, 10.0),
    "main->b->h": (5.0, 5.0),
    "main->b->h->i": (4.0, 4.0),
    "main->c": (55.0, 29.0),
}


def beside(label: str, rising: tuple[str, ...] = ()) -> list[tuple[float, ...]] | None:
    """(own before, own after, rest before, rest after) of each caller, sorted."""
    index = index_stacks(build_stacks(ROWS))
    found = beside_callers(
        index, caller_nodes(index), label, counts(index), np.ones(2), deepest_of(index, rising)
    )
    return None if found is None else rows(found)


def counts(index: StackIndex) -> np.ndarray:
    return np.stack([index.matrix.before, index.matrix.after])[:, None, :]


def rows(found: Beside) -> list[tuple[float, ...]]:
    return sorted(zip(*(side[0].tolist() for part in (found.own, found.rest) for side in part), strict=True))


@pytest.mark.parametrize(
    ("label", "rising", "expected"),
    [
        pytest.param(
            "f", (), [(10, 10, 64, 38), (10, 20, 16, 32)], id="the next caller that does as much besides"
        ),
        pytest.param("i", (), [(4, 4, 5, 5)], id="what the caller does by itself"),
        pytest.param("c", (), [(55, 29, 45, 71)], id="nobody does as much: the whole service"),
        pytest.param("main", (), [(100, 100, 0, 0)], id="all there is"),
        pytest.param("unheard", (), None, id="no stack holds it"),
        pytest.param(
            "f", ("g",), [(20, 30, 68, 46)], id="what rises by itself is no witness, so a farther caller is"
        ),
        pytest.param(
            "f", ("a",), [(10, 10, 64, 38), (10, 20, 16, 32)], id="a caller that rises has callees of its own"
        ),
    ],
)
def test_what_callers_do_besides(
    label: str, rising: tuple[str, ...], expected: list[tuple[float, ...]] | None
) -> None:
    assert beside(label, rising) == expected


def test_a_recursion_counts_from_its_first_frame() -> None:
    matrix = build_stacks({"main->a->f->a->f": (10.0, 20.0), "main->a->g": (12.0, 24.0), "main->c": (78, 56)})
    index = index_stacks(matrix)
    assert deepest_of(index, ["a"]).tolist() == [3, 1, -1]
    found = beside_callers(index, caller_nodes(index), "f", counts(index), np.ones(2), deepest_of(index, ()))
    assert found is not None
    assert rows(found) == [(10, 20, 12, 24)]


def test_stacks_with_the_same_beginning_share_a_node() -> None:
    index = index_stacks(build_stacks({"a->b": (1, 1), "a->b->c": (1, 1), "a->d": (1, 1), "a": (1, 1)}))
    depths = [np.unique(node, return_inverse=True)[1].tolist() for node in caller_nodes(index)]
    same = [[[left == right for right in node] for left in node] for node in depths]
    assert same[0] == [[True] * 4] * 4
    assert same[1] == [[True, True, False, False]] * 2 + [[False, False, True, False], [False] * 3 + [True]]
    assert same[2] == np.eye(4, dtype=bool).tolist()


def test_each_callee_beside_its_caller_and_no_pair_twice() -> None:
    index = index_stacks(build_stacks(ROWS))
    found = callees_beside(caller_nodes(index), counts(index), np.array([4.0, 4.0]))
    # f and h of b, f and g of a, what a does by itself; i of h; a, b of main. c is more than all else.
    assert (4, 4, 5, 5) in rows(found)
    assert (10, 20, 16, 32) in rows(found)
    assert all(own[0] <= own[2] and own[1] <= own[3] for own in rows(found))
    assert len(callees_beside(caller_nodes(index), counts(index), np.array([50.0, 50.0])).own[0, 0]) == 0


def test_a_caller_divides_into_branches_under_the_frames_around_all_it_does() -> None:
    matrix = build_stacks(
        {
            "main->run->a->f": (20.0, 22.0),
            "main->run->a->g": (2.0, 3.0),
            "main->run->b": (30.0, 20.0),
            "main->run->c->h": (18.0, 20.0),
            "main->run->c->i": (28.0, 24.0),
            "main->idle": (2.0, 2.0),
        }
    )
    index = index_stacks(matrix)
    nodes = caller_nodes(index)

    def branches(rising: tuple[str, ...]) -> list[tuple[float, ...]]:
        found = beside_callers(index, nodes, "f", counts(index), np.ones(2), deepest_of(index, rising))
        assert found is not None
        columns = (side.tolist() for part in (found.branches.own, found.branches.rest) for side in part)
        return sorted(zip(*columns, strict=True))

    # Of run: a with f and what it does besides, b, c.
    assert branches(()) == [(0, 0, 30, 20), (0, 0, 46, 44), (20, 22, 2, 3)]
    # What rises by itself counts at a branch, and not under it.
    assert branches(("i",)) == [(0, 0, 18, 20), (0, 0, 30, 20), (20, 22, 2, 3)]
    assert branches(("c",))[1] == (0, 0, 46, 44)
