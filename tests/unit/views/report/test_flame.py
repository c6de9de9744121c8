"""Icicles and shifts of a service's stacks, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.model import StackMatrix
from pipeline.views.report.figures import icicle_figure
from pipeline.views.report.flame import (
    SMALLEST_SHARE,
    TRUNK_SHARE,
    Icicle,
    icicle,
    inclusive_shares,
    largest_shifts,
)
from pipeline.views.report.page import _points
from tests.support.builders import build_stacks

STACKS = build_stacks(
    {"main->loop->search->rank": (4, 12), "main->loop->search": (6, 6), "main->loop->feed": (90, 82)}
)
NO_STACKS = StackMatrix((), np.empty(0), np.empty(0), 0.0, 0.0)


def by_label(tree: Icicle) -> dict[str, tuple[float, float]]:
    return {
        label: (round(before, 6), round(after, 6))
        for label, before, after in zip(tree.labels, tree.before.tolist(), tree.after.tolist(), strict=True)
    }


def test_the_icicle_leaves_out_the_trunk_and_adds_up() -> None:
    tree = icicle(STACKS)

    assert tree.trunk == ("main", "loop")
    assert by_label(tree) == {
        "": (1.0, 1.0),
        "search": (0.1, 0.18),
        "rank": (0.04, 0.12),
        "feed": (0.9, 0.82),
    }
    assert [tree.labels[parent] for parent in tree.parents[1:]] == ["", "", "search"]


def test_recursion_is_counted_once_in_shifts() -> None:
    shifts = largest_shifts(build_stacks({"f->f->f": (10, 40), "g": (90, 60), "h": (0, 0)}), limit=2)

    assert [(shift.subroutine, round(shift.delta, 6)) for shift in shifts] == [("f", 0.3), ("g", -0.3)]


def test_no_stacks_make_an_icicle_of_one_node() -> None:
    tree = icicle(NO_STACKS)

    assert tree.paths == ((),)
    assert tree.trunk == ()


@pytest.mark.parametrize(
    ("rows", "trunk"),
    [
        pytest.param({"main->a": (50, 50), "main->b": (50, 50)}, ("main",), id="what all share"),
        pytest.param({"main->a": (98, 98), "other": (2, 2)}, ("main", "a"), id="what nearly all share"),
        pytest.param({"main->a": (98, 97), "other": (2, 3)}, (), id="before, but not after"),
        pytest.param({"a": (60, 60), "b": (40, 40)}, (), id="nothing"),
    ],
)
def test_the_trunk_holds_nearly_every_sample(
    rows: dict[str, tuple[float, float]], trunk: tuple[str, ...]
) -> None:
    assert TRUNK_SHARE == 0.98
    assert icicle(build_stacks(rows)).trunk == trunk


@pytest.mark.parametrize(
    ("thin", "drawn"),
    [
        pytest.param((4, 0), True, id="at the bound before"),
        pytest.param((0, 4), True, id="at the bound after"),
        pytest.param((3, 3), False, id="below it on both sides"),
    ],
)
def test_a_path_is_drawn_if_it_is_wide_enough_on_one_side(thin: tuple[float, float], drawn: bool) -> None:
    assert SMALLEST_SHARE == 0.004
    tree = icicle(build_stacks({"a": (500, 500), "b->c": thin, "d": (500 - thin[0], 500 - thin[1])}))
    assert (("b", "c") in tree.paths) is drawn
    assert (("b",) in tree.paths) is drawn


def test_parents_come_before_their_children() -> None:
    tree = icicle(build_stacks({"b->x": (30, 30), "a->x": (30, 30), "a->x->y": (40, 40)}))
    assert tree.paths == ((), ("a",), ("a", "x"), ("a", "x", "y"), ("b",), ("b", "x"))
    assert tree.parents == (-1, 0, 1, 2, 0, 4)
    assert tree.labels == ("", "a", "x", "y", "b", "x")


def test_a_side_without_samples_has_no_shares() -> None:
    tree = icicle(build_stacks({"a": (0, 10), "b": (0, 30)}))
    assert by_label(tree) == {"": (0.0, 1.0), "a": (0.0, 0.25), "b": (0.0, 0.75)}
    (shift,) = largest_shifts(build_stacks({"a": (0, 10)}), 5)
    assert (shift.before, shift.after, shift.delta) == (0.0, 1.0, 1.0)


def test_shifts_are_of_all_samples_of_the_service() -> None:
    shifts = largest_shifts(build_stacks({"a": (10, 20), "b": (5, 5)}, total=100.0), limit=5)
    assert [(shift.subroutine, shift.before, shift.after) for shift in shifts] == [
        ("a", 0.1, 0.2),
        ("b", 0.05, 0.05),
    ]


def test_shares_are_the_sums_over_stacks_that_hold_an_element() -> None:
    rng = np.random.default_rng(4)
    frames = [tuple(f"f{n}" for n in rng.integers(0, 6, rng.integers(1, 7))) for _ in range(60)]
    stacks = tuple(dict.fromkeys(frames))
    before, after = rng.integers(0, 50, (2, len(stacks))).astype(np.float64)
    matrix = StackMatrix(stacks, before, after, 4000.0, 5000.0)
    for name, share in inclusive_shares(matrix).items():
        held = np.array([name in stack for stack in stacks])
        assert share == pytest.approx([before[held].sum() / 4000, after[held].sum() / 5000])
    tree = icicle(matrix)
    for path, one, other in zip(tree.paths, tree.before, tree.after, strict=True):
        held = np.array([stack[: len(path)] == path for stack in stacks])
        assert (one, other) == pytest.approx((before[held].sum() / 4000, after[held].sum() / 5000))
    assert len(tree.paths) > 20


def test_the_residual_of_sums_is_no_shift() -> None:
    stacks = build_stacks({f"main->f{n}": (0.1 * n, 0.3 * n) for n in range(1, 9)})
    shift = next(shift for shift in largest_shifts(stacks, 20) if shift.subroutine == "main")
    assert shift.delta == 0


@pytest.mark.parametrize(
    ("ratio", "points"),
    [(2.2e-16, "+0.00"), (-1e-12, "+0.00"), (5e-7, "+5e-05"), (5e-5, "+0.005"), (0.01, "+1.00")],
)
def test_points_have_a_sane_range(ratio: float, points: str) -> None:
    assert _points(ratio) == points


def test_a_frame_of_one_path_is_within_noise_in_graph_and_table() -> None:
    rows = {f"main->f{n}": (20 + n, 20 + n + (12 if n == 3 else 0)) for n in range(40)}
    stacks = build_stacks(rows)
    tree = icicle(stacks, 1.0)
    noise = {path[-1]: float(tree.noise[node]) for node, path in enumerate(tree.paths) if path}
    for shift in largest_shifts(stacks, 50, 1.0):
        if shift.subroutine in noise:
            assert shift.noise == pytest.approx(noise[shift.subroutine])


def test_graphs_before_and_after_are_equally_wide_and_one_alone_has_no_shift() -> None:
    tree = icicle(build_stacks({"a": (10, 40), "b": (90, 60)}))
    before, after, alone = (icicle_figure(tree, "shop", "a", when) for when in ("before", "after", "alone"))
    assert (before.layout.margin.l, before.layout.margin.r) == (after.layout.margin.l, after.layout.margin.r)
    assert after.data[0].marker.colorbar.orientation == "h"
    assert alone.data[0].marker.colorbar.orientation is None
    assert "before" not in alone.data[0].hovertemplate
    assert all(isinstance(colour, str) for colour in alone.data[0].marker.colors)
