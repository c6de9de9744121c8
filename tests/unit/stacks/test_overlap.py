from __future__ import annotations

import numpy as np
import pytest

from pipeline.model import StackMatrix
from pipeline.stacks.index import Series, membership, share_changes
from pipeline.stacks.overlap import Group, explained_shares, group_by_stacks, shares_given
from tests.support.builders import build_stacks


def group(matrix: StackMatrix, names: list[str], modified: tuple[str, ...] = ()) -> list[Group]:
    series: list[Series] = [("subroutine", name) for name in names]
    holds = membership(matrix.stacks, series)
    deltas = holds @ share_changes(matrix)
    preferred = np.array([name in modified for name in names], dtype=np.bool_)
    return group_by_stacks(matrix, series, deltas, preferred=preferred)


def named(groups: list[Group], names: list[str]) -> dict[str, set[str]]:
    return {names[g.representative]: {names[m] for m in g.members} for g in groups}


CHAIN = build_stacks(
    {"main->handle->price": (10, 20), "main->handle->render": (30, 30), "main->idle": (60, 50)}
)


@pytest.mark.parametrize(
    ("matrix", "names", "modified", "expected"),
    [
        pytest.param(CHAIN, ["handle", "price"], (), {"price": {"handle"}}, id="a caller joins its callee"),
        pytest.param(
            build_stacks({"main->a->b->c": (5, 15), "main->x": (95, 85)}),
            ["a", "b", "c"],
            (),
            {"c": {"a", "b"}},
            id="a chain of callers: the deepest stands for them",
        ),
        pytest.param(
            build_stacks({"main->a->b->c": (5, 15), "main->x": (95, 85)}),
            ["a", "b", "c"],
            ("b",),
            {"b": {"a", "c"}},
            id="one that a deployed change modified comes before the deepest",
        ),
        pytest.param(
            build_stacks({"m->h->a": (10, 14), "m->h->b": (10, 14), "m->h->c": (10, 14), "m->x": (70, 58)}),
            ["h", "a", "b", "c"],
            (),
            {"h": {"a", "b", "c"}},
            id="a caller that calls all its callees more often stands for them",
        ),
        pytest.param(
            build_stacks({"m->h->a": (10, 20), "m->k->b": (10, 20), "m->x": (80, 60)}),
            ["a", "b", "h", "k"],
            (),
            {"a": {"h"}, "b": {"k"}},
            id="two causes stay two groups",
        ),
        pytest.param(
            build_stacks({"m->h->lib": (5, 10), "m->k->lib": (5, 10), "m->x": (90, 80)}),
            ["lib", "h", "k"],
            (),
            {"lib": {"h", "k"}},
            id="a library used by two callers explains both",
        ),
        pytest.param(CHAIN, ["price"], (), {"price": set()}, id="alone"),
        pytest.param(CHAIN, ["price", "vanished"], (), {"price": set(), "vanished": set()}, id="in no stack"),
    ],
)
def test_groups(
    matrix: StackMatrix, names: list[str], modified: tuple[str, ...], expected: dict[str, set[str]]
) -> None:
    assert named(group(matrix, names, modified), names) == expected


def test_no_candidates_make_no_groups() -> None:
    assert group(CHAIN, []) == []


def test_the_order_of_candidates_does_not_matter() -> None:
    names = ["main", "handle", "price", "render"]
    forward = named(group(CHAIN, names), names)
    assert named(group(CHAIN, names[::-1]), names[::-1]) == forward


def test_explained_shares_are_the_share_of_the_rise_in_common_stacks() -> None:
    matrix = build_stacks({"a->b": (0, 3), "a": (0, 1), "x": (10, 6)}, total=10)
    series: list[Series] = [("subroutine", "a"), ("subroutine", "b")]
    shares = explained_shares(membership(matrix.stacks, series), share_changes(matrix))
    assert shares == pytest.approx(np.array([[1.0, 0.75], [1.0, 1.0]]))


@pytest.mark.parametrize(
    ("given", "whole", "share"),
    [
        pytest.param(3.0, 4.0, 0.75, id="most of it"),
        pytest.param(3.0, 2.0, 1.0, id="the rest fell"),
        pytest.param(3.0, -5.0, 1.0, id="by more than it rose"),
        pytest.param(-3.0, -4.0, 0.75, id="of a fall"),
        pytest.param(-3.0, 1.0, 1.0, id="the rest rose against it"),
        pytest.param(0.0, 4.0, 0.0, id="nothing"),
        pytest.param(0.0, 0.0, 0.0, id="nothing of nothing"),
    ],
)
def test_the_share_that_a_part_gives(given: float, whole: float, share: float) -> None:
    assert shares_given(np.array([given]), np.array([whole])) == pytest.approx([share])
