"""Inserted frames: stacks that a tracer or a middleware made new, though no work is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.stacks import carry_over, index_stacks
from tests.support.builders import build_stacks

Rows = dict[str, tuple[float, float]]

PLAIN: Rows = {
    "main->a": (20_000, 20_000),
    "main->a->x": (30_000, 30_000),
    "main->b->y": (50_000, 50_000),
}


def moved(rows: Rows, **paths: str) -> Rows:
    """Return stacks of which some have another path after the change."""
    found: Rows = {}
    for name, (before, after) in rows.items():
        goal = "->".join(paths.get(label, label) for label in name.split("->"))
        found |= {name: (before, after)} if goal == name else {name: (before, 0.0), goal: (0.0, after)}
    return found


TRACED = moved(PLAIN, main="main->tracer")


@pytest.mark.parametrize(
    ("rows", "frames", "rises"),
    [
        pytest.param(PLAIN, set(), {"main->a->x": 0.0}, id="nothing"),
        pytest.param(TRACED, {"tracer"}, {"main->tracer->a->x": 0.0, "main->a->x": 0.0}, id="tracer"),
        pytest.param(
            moved(PLAIN, a="a->limits"), {"limits"}, {"main->a->limits->x": 0.0}, id="middleware of a part"
        ),
        pytest.param(
            moved(PLAIN, main="main->tracer->tracer"),
            {"tracer"},
            {"main->tracer->tracer->b->y": 0.0},
            id="a frame that calls itself",
        ),
        pytest.param(
            moved(PLAIN, main="main->tracer->span"), {"span", "tracer"}, {"main->b->y": 0.0}, id="two frames"
        ),
        pytest.param(
            moved({name.replace("main", "main->tracer"): pair for name, pair in PLAIN.items()}, tracer="t2"),
            set(),
            {"main->t2->b->y": 0.5},
            id="a frame renamed is none inserted",
        ),
        pytest.param(
            {name: (after, before) for name, (before, after) in TRACED.items()},
            {"tracer"},
            {"main->b->y": 0.0, "main->tracer->b->y": 0.0},
            id="taken out",
        ),
        pytest.param(
            {**PLAIN, "main->b->y": (50_000, 25_000), "main->tracer->b->y": (0, 25_000)},
            {"tracer"},
            {"main->b->y": 0.0, "main->tracer->b->y": 0.0},
            id="half of the servers",
        ),
        pytest.param(
            {**PLAIN, "main->b->y": (50_000, 20_000), "main->tracer->b->y": (10_000, 40_000)},
            {"tracer"},
            {"main->b->y": 0.0, "main->tracer->b->y": 0.0},
            id="some of them before",
        ),
        pytest.param(
            {**TRACED, "main->tracer->a->x": (0, 36_000)},
            {"tracer"},
            {"main->tracer->a->x": 0.0396, "main->tracer->b->y": -0.028},
            id="a regression below it",
        ),
        pytest.param(
            {**PLAIN, "main->a->x->new": (0, 5_000)},
            set(),
            {"main->a->x->new": 0.048},
            id="a new callee with a cost of its own",
        ),
        pytest.param(
            {**TRACED, "main->tracer->a->x->new": (0, 5_000)},
            {"tracer"},
            {"main->tracer->a->x->new": 0.048, "main->tracer->a->x": -0.014},
            id="a new callee below the frame",
        ),
        pytest.param(
            {**PLAIN, "main->b->y": (50_000, 50_000), "main->b->y->new": (0, 12)},
            set(),
            {"main->b->y->new": 0.0001},
            id="as much as chance moves",
        ),
        pytest.param(
            {**PLAIN, "main->b->y": (50_000, 40_000), "main->b->y->part": (0, 10_000)},
            {"part"},
            {"main->b->y": 0.0, "main->b->y->part": 0.0},
            id="a part of it extracted",
        ),
        pytest.param(dict.fromkeys(PLAIN, (0.0, 0.0)), set(), {"main->a": 0.0}, id="no samples"),
    ],
)
def test_carry_over(rows: Rows, frames: set[str], rises: dict[str, float]) -> None:
    carried = carry_over(index_stacks(build_stacks(rows)))
    assert carried.frames == frames
    rise = dict(zip(rows, carried.index.rise.tolist(), strict=True))
    assert {name: rise[name] for name in rises} == pytest.approx(rises, abs=1e-3)


def test_what_is_carried_over_is_nobodys_loss() -> None:
    rows = {**TRACED, "main->tracer->a->x": (0.0, 21_000.0)}
    index = index_stacks(build_stacks(rows))
    carried = carry_over(index).index
    assert carried.matrix.before.sum() == pytest.approx(index.matrix.before.sum())
    own = [name for name in index.names if name != "tracer"]
    sums = [dict(zip(i.names, i.sums(i.rise[None])[0].tolist(), strict=True)) for i in (index, carried)]
    assert {name: sums[1][name] for name in own} == pytest.approx({name: sums[0][name] for name in own})


def test_earlier_days_are_spread_over_what_their_stacks_became() -> None:
    half = {**PLAIN, "main->b->y": (50_000.0, 25_000.0), "main->tracer->b->y": (0.0, 25_000.0)}
    carried = carry_over(index_stacks(build_stacks(half)))
    day = build_stacks({"main->b->y": (600, 800), "main->gone": (7, 9)})
    spread = carried.spread(day)
    assert spread.stacks == (*day.stacks, ("main", "tracer", "b", "y"))
    assert spread.before.tolist() == pytest.approx([300, 7, 300])
    assert spread.after.tolist() == pytest.approx([400, 9, 400])
    nearer = carried.spread(day, after=False)
    assert nearer.after.tolist() == pytest.approx([800, 9, 0])


def test_the_order_of_stacks_plays_no_part() -> None:
    rows = {**TRACED, "main->tracer->a->x->new": (0.0, 5_000.0)}
    turned = dict(reversed(rows.items()))
    one, other = (carry_over(index_stacks(build_stacks(some))).index for some in (rows, turned))
    assert other.rise[::-1] == pytest.approx(one.rise)


def test_a_span_without_samples_is_left_as_it_is() -> None:
    matrix = replace(build_stacks(TRACED), before=np.zeros(6), total_before=0.0)
    index = index_stacks(matrix)
    assert carry_over(index).index is index
