"""What the explanation says of a candidate: a truth table of its codes, and its sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline.analysis.explain.cause_sets import Reading
from pipeline.analysis.explain.decomposition import Layers
from pipeline.analysis.explain.explanation import Cause, Explanation
from pipeline.analysis.explain.renames import Renames
from pipeline.analysis.explain.verdict import judge
from pipeline.analysis.stacks import Moves, index_stacks
from pipeline.model import StackMatrix

STACKS = (("main", "serve", "parse"), ("main", "serve", "render"), ("main", "idle"))
EXPECTED = np.array([1000.0, 1000.0, 8000.0])
OWN = (Reading("own", "parse"), Reading("calls", "parse", "serve"), Reading("through", "parse"))
CALLS = (Reading("calls", "parse", "serve"),)
SCALED = (Reading("through", "parse"),)


# ``parse`` took the place of ``render``, where a test says that it took cost over.
INDEX = index_stacks(StackMatrix(STACKS, EXPECTED, EXPECTED, 10_000.0, 10_000.0))
RENAMES = Renames(INDEX, Moves(np.array([1]), np.array([0]), np.array([0.5])))


def explanation(
    *causes: tuple[tuple[Reading, ...], float],
    traffic: float = 0.0,
    chance: float = 0.0,
    moved: str = "",
    renamed: float = 0.0,
) -> Explanation:
    """Return an explanation of ``parse``, whose causes, traffic and former name add samples to its stack."""
    amounts = np.zeros((len(causes), 3))
    amounts[:, 0] = [amount for _, amount in causes]
    carried = EXPECTED + np.array([renamed, -renamed, 0.0])
    base = carried + np.array([traffic, 0.0, 0.0])
    fitted = base + amounts.sum(axis=0)
    seen = fitted + np.array([chance, 0.0, -10_000 - chance - traffic - amounts.sum() + 10_000])
    origin = Reading("own", moved) if moved else None
    matrix = StackMatrix(STACKS, EXPECTED, seen, 10_000.0, float(seen.sum()))
    listed = tuple(Cause(readings, amount / 10_000, 0.001, math.nan, origin) for readings, amount in causes)
    return Explanation(
        listed, index_stacks(matrix), Layers(EXPECTED, carried, base, fitted, seen), amounts, renames=RENAMES
    )


@pytest.mark.parametrize(
    ("explained", "code", "statistic", "words"),
    [
        (explanation((OWN, 300.0)), "own", 1.0, "of +3 points, +3 points its own, or more calls"),
        (explanation((OWN[:1], 300.0)), "own", 1.0, "of +3 points, +3 points its own"),
        (explanation((CALLS, 300.0)), "own", 1.0, "of +3 points, +3 points called more by serve"),
        (explanation((SCALED, 300.0)), "own", 1.0, "of +3 points, +3 points called more"),
        (
            explanation((OWN, 200.0), traffic=100.0),
            "own",
            2 / 3,
            "of +3 points, +2 points its own, or more calls, +1 points with the traffic of its entries",
        ),
        (
            explanation((OWN, 100.0), traffic=200.0),
            "entry",
            1 / 3,
            "of +3 points, +2 points with the traffic of its entries, +1 points its own, or more calls",
        ),
        (
            explanation((OWN, 300.0), renamed=500.0),
            "own",
            1.0,
            "of +8 points, +5 points moved from render, +3 points its own, or more calls",
        ),
        (explanation(renamed=500.0), "moved", 0.0, "of +5 points, +5 points moved from render"),
        (
            explanation((OWN, 300.0), traffic=-290.0),
            "gone",
            0.0,
            "+0.1 points in all, give or take 0.45",
        ),
        (explanation((OWN, 300.0), moved="scan"), "moved", 0.0, "of +3 points, +3 points moved from scan"),
        (explanation(chance=100.0), "unclear", 0.0, "of +1 points, +1 points not explained"),
        (explanation(chance=-100.0), "gone", 0.0, "-1 points in all, give or take 0.45"),
    ],
    ids=[
        "own or calls",
        "own",
        "calls",
        "scaled",
        "beside traffic",
        "entry",
        "renamed and dearer",
        "renamed",
        "within noise",
        "moved",
        "unclear",
        "gone",
    ],
)
def test_what_is_said(explained: Explanation, code: str, statistic: float, words: str) -> None:
    decision = judge(explained, "parse")
    assert (decision.step, decision.passed, decision.code) == ("explanation", True, code)
    assert decision.statistic == pytest.approx(statistic)
    assert decision.subjects[0] == words


def test_a_caller_rises_through_what_it_calls() -> None:
    decision = judge(explanation((OWN, 300.0)), "serve")
    assert (decision.code, decision.statistic) == ("through", 0.0)
    assert decision.subjects == ("of +3 points, +3 points through parse", "parse")


def test_what_moved_is_named_by_where_it_was() -> None:
    assert judge(explanation((OWN, 300.0), moved="scan"), "parse").subjects[1] == "scan"


def test_what_no_stack_holds_is_not_explained() -> None:
    decision = judge(explanation((OWN, 300.0)), "endpoint=/gone")
    assert (decision.code, decision.subjects) == ("unclear", ("no recorded stack holds it",))


def test_without_stacks_nothing_is_said() -> None:
    decision = judge(None, "latency")
    assert (decision.passed, decision.code) == (True, "")
