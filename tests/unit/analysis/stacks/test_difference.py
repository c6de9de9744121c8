"""Stack differences: few lines that say what changed, and nothing that chance explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.stacks import ELLIPSIS, index_stacks, membership, stack_difference
from pipeline.analysis.stacks.difference import StackDifferenceConfig
from pipeline.model import BoolArray, SeriesKey, StackChange, StackMatrix
from tests.support.builders import build_stacks

TOTAL = 10_000.0


def difference(
    rows: Mapping[str, tuple[float, float]], series: str, most: int = 20
) -> list[tuple[str, float]]:
    """Return lines as text and change in points, the service holding TOTAL samples on either side."""
    matrix = build_stacks(rows, TOTAL)
    held = membership(index_stacks(matrix), [SeriesKey("subroutine", series)])[0]
    lines = stack_difference(matrix, held, most=most)
    return [(" ".join(line.stack), round((line.after - line.before) * 100, 2)) for line in lines]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(
            {"main->a->f->g": (100, 400), "main->a->f->h": (100, 100)},
            [("main a f g", 3.0)],
            id="only what changed is listed",
        ),
        pytest.param(
            {"main->a->f": (100, 300), "main->b->f": (100, 220)},
            [("main a f", 2.0), ("main b f", 1.2)],
            id="the largest comes first",
        ),
        pytest.param(
            {"main->a->f->g": (100, 400), "main->a->f->h": (300, 100)},
            [("main a f g", 3.0), ("main a f h", -2.0)],
            id="a rise and a fall do not cancel out",
        ),
        pytest.param(
            {f"main->loop->caller{n:02}->up->f->g": (10, 14) for n in range(60)},
            [("main loop … up f g", 2.4)],
            id="callers of which none shows anything are merged",
        ),
        pytest.param(
            {f"main->f->g->callee{n:02}": (10, 14) for n in range(60)},
            [("main f g …", 2.4)],
            id="callees of which none shows anything are merged",
        ),
        pytest.param(
            {f"main->caller{n:02}->f->callee{n:02}": (10, 14) for n in range(60)},
            [("main … f …", 2.4)],
            id="both",
        ),
        pytest.param(
            {"main->x->f": (0, 300), **{f"main->y{n:02}->f": (10, 16) for n in range(40)}},
            [("main x f", 3.0), ("main … f", 2.4)],
            id="what is listed of a branch is not listed again of the whole",
        ),
        pytest.param(
            {"main->f->g->f->g": (100, 400), "main->f->g": (100, 100)},
            [("main f g f g", 3.0)],
            id="recursion",
        ),
        pytest.param({"main->f": (100, 110)}, [], id="noise"),
        pytest.param({"main->f": (0, 4)}, [], id="too few samples"),
        pytest.param({"main->other": (100, 400)}, [], id="another series"),
    ],
)
def test_lines(rows: dict[str, tuple[float, float]], expected: list[tuple[str, float]]) -> None:
    assert difference(rows, "f") == expected


def test_what_is_merely_normalised_is_no_change() -> None:
    """A regression that takes a third of the CPU lowers every other share, also those of its own stacks."""
    steady, rise = 3_000.0, 5_000.0
    shrink = TOTAL / (TOTAL + rise)
    rows = {"main->f": (steady, steady * shrink), "main->f->slow": (1.0, rise * shrink)}
    assert [line for line, _ in difference(rows, "f")] == ["main f slow"]


def test_no_more_lines_than_wanted() -> None:
    rows = {f"main->a{n}->f": (100.0, 200.0 + 50 * n) for n in range(10)}
    lines = difference(rows, "f", most=3)
    assert [line for line, _ in lines][:1] == ["main … f"]
    assert len(lines) <= 3
    assert difference(rows, "f", most=0) == []


def test_a_long_stack_is_cut_in_the_middle_and_keeps_what_regressed() -> None:
    above = [f"caller{n}" for n in range(200)]
    under = [f"callee{n}" for n in range(200)]
    matrix = build_stacks(
        {"->".join([*above, "f", *under]): (100, 400), "->".join([*above, "f"]): (50, 50)}, TOTAL
    )
    held = membership(index_stacks(matrix), [SeriesKey("subroutine", "f")])[0]
    (line,) = stack_difference(matrix, held, config=StackDifferenceConfig(depth=12))
    assert line.stack == (
        *("caller0", "caller1", ELLIPSIS, "caller197", "caller198", "caller199"),
        *("f", "callee0", ELLIPSIS, "callee197", "callee198", "callee199"),
    )


@pytest.mark.parametrize("side", ["total_before", "total_after"])
def test_a_span_without_samples_says_nothing(side: str) -> None:
    matrix = replace(build_stacks({"f": (10, 20)}), **{side: 0.0})  # type: ignore[arg-type]  # a float field
    assert stack_difference(matrix, np.array([True])) == ()


def test_no_stacks_say_nothing() -> None:
    assert stack_difference(StackMatrix((), np.empty(0), np.empty(0), 9.0, 9.0), np.empty(0, np.bool_)) == ()


def test_noise_makes_hardly_ever_a_line() -> None:
    rng = np.random.default_rng(5)
    stacks = tuple(("main", f"a{n % 7}", "f", f"b{n % 31}", f"c{n}") for n in range(400))
    shares = rng.dirichlet(np.full(400, 0.5))
    reported = 0
    for _ in range(60):
        before, after = rng.multinomial(20_000, shares), rng.multinomial(20_000, shares)
        matrix = StackMatrix(stacks, before.astype(np.float64), after.astype(np.float64), 2e5, 2e5)
        reported += bool(stack_difference(matrix, np.ones(400, dtype=np.bool_)))
    assert reported <= 3, "one per cent is asked for"


FRAMES = st.sampled_from(["f", "g", "h", "i"])


@st.composite
def matrices(draw: st.DrawFn) -> tuple[StackMatrix, BoolArray]:
    tails = draw(st.lists(st.tuples(FRAMES, FRAMES, FRAMES), min_size=1, max_size=20, unique=True))
    counts = st.lists(st.integers(0, 3000), min_size=len(tails), max_size=len(tails))
    before, after = (np.array(draw(counts), dtype=np.float64) for _ in range(2))
    rest = draw(st.integers(1, 10_000))
    stacks = tuple(("main", *tail) for tail in tails)
    matrix = StackMatrix(stacks, before, after, float(before.sum() + rest), float(after.sum() + rest))
    return matrix, membership(index_stacks(matrix), [SeriesKey("subroutine", "f")])[0]


@given(matrices())
def test_the_order_of_the_stacks_plays_no_part(given_: tuple[StackMatrix, BoolArray]) -> None:
    matrix, held = given_
    order = np.random.default_rng(len(held)).permutation(len(held))
    shuffled = replace(
        matrix,
        stacks=tuple(matrix.stacks[position] for position in order),
        before=matrix.before[order],
        after=matrix.after[order],
    )
    assert stack_difference(shuffled, held[order]) == stack_difference(matrix, held)


@given(matrices())
def test_no_sample_is_reported_twice(given_: tuple[StackMatrix, BoolArray]) -> None:
    matrix, held = given_
    lines: tuple[StackChange, ...] = stack_difference(matrix, held)
    assert sum(line.before for line in lines) <= matrix.before[held].sum() / matrix.total_before + 1e-9
    assert sum(line.after for line in lines) <= matrix.after[held].sum() / matrix.total_after + 1e-9
    sizes = [abs(line.after - line.before) for line in lines]
    assert sizes == sorted(sizes, reverse=True)
