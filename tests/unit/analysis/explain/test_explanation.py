"""The whole explanation on drawn trees: causes, moves, traffic, amounts and their errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.explain.explanation import Explanation
from pipeline.model import BoolArray
from tests.unit.analysis.explain.trees import Change, Stack, build_tree

TREE = build_tree()


def dearer(name: str, factor: float) -> Change:
    """Return the change that makes a subroutine's own cost dearer."""
    return lambda stack: factor if stack[-1] == name else 1.0


def called_more(caller: str, name: str, factor: float) -> Change:
    return lambda stack: factor if (caller, name) in zip(stack, stack[1:], strict=False) else 1.0


def traffic(entry: str, factor: float) -> Change:
    return lambda stack: factor if entry in stack else 1.0


def both(*changes: Change) -> Change:
    return lambda stack: float(np.prod([change(stack) for change in changes]))


def risen(explanation: Explanation) -> set[str]:
    return {cause.names[0] for cause in explanation.causes if cause.amount > 0}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (dearer("pack", 1.2), {"pack"}),
        (dearer("scan2", 1.5), {"scan2"}),
        (called_more("save1", "codec", 1.8), {"codec"}),
        (both(dearer("pack", 1.2), dearer("log", 1.3)), {"pack", "log"}),
        (both(dearer("load4", 1.5), traffic("entry4", 0.7)), {"load4"}),
        (traffic("entry2", 1.4), set()),
        (both(traffic("entry2", 0.5), traffic("entry3", 0.5)), set()),
    ],
    ids=["own", "own of one entry", "calls", "two", "beside traffic", "traffic", "drained"],
)
def test_causes_are_those_that_were_put_in(change: Change, names: set[str]) -> None:
    hits = [risen(TREE.draw(np.random.default_rng(seed), change)) == names for seed in range(6)]
    assert sum(hits) >= 5, hits


def test_steady_services_have_no_cause() -> None:
    causes = [len(TREE.draw(np.random.default_rng(seed)).causes) for seed in range(60)]
    assert sum(number > 0 for number in causes) <= 6


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), factor=st.floats(0.5, 3.0), row=st.integers(0, 40))
def test_the_parts_add_up(seed: int, factor: float, row: int) -> None:
    name = TREE.stacks[row][-1]
    explanation = TREE.draw(np.random.default_rng(seed), both(dearer(name, factor), traffic("entry1", 1.3)))
    total = explanation.layers.seen.sum()
    for label in explanation.index.names:
        rows: BoolArray = explanation.index.holding([label])
        parts = explanation.of(label)
        rise = (explanation.layers.seen - explanation.layers.expected)[rows].sum() / total
        assert np.isclose(parts.rise, rise, rtol=1e-9, atol=1e-12)
        assert np.isclose(parts.causes.sum() + parts.traffic + parts.left, rise, rtol=1e-9, atol=1e-12)


def test_the_error_of_an_amount_holds_the_truth() -> None:
    within = []
    for seed in range(40):
        explanation = TREE.draw(np.random.default_rng(seed), dearer("pack", 1.3))
        rates = TREE.rates * np.array([1.3 if stack[-1] == "pack" else 1.0 for stack in TREE.stacks])
        before, after = TREE.rates / TREE.rates.sum(), rates / rates.sum()
        holds = np.array([stack[-1] == "pack" for stack in TREE.stacks])
        # All else shrank by one factor as the whole grew; what pack has beyond that is its own.
        true = float(after[holds].sum() - before[holds].sum() * TREE.rates.sum() / rates.sum())
        (cause,) = [cause for cause in explanation.causes if "pack" in cause.names]
        within.append(abs(cause.amount - true) <= 2 * cause.error)
    assert sum(within) >= 36


def renamed(explanation_seed: int) -> Explanation:
    """Return the explanation of ``scan3`` having become ``scan3_v2``."""
    stacks: list[Stack] = [*TREE.stacks]
    (row,) = [number for number, stack in enumerate(stacks) if stack[-1] == "scan3"]
    stacks.append((*stacks[row][:-1], "scan3_v2"))
    tree = type(TREE)(tuple(stacks), np.append(TREE.rates, TREE.rates[row]))
    rng = np.random.default_rng(explanation_seed)
    was, now = np.ones(len(stacks)), np.ones(len(stacks))
    was[-1], now[row] = 0.0, 0.0
    return tree.draw_between(rng, was, now)


def test_a_renamed_subroutine_took_its_cost_along() -> None:
    explanation = renamed(1)
    (cause,) = [cause for cause in explanation.causes if "scan3_v2" in cause.names]
    assert cause.moved_from is not None
    assert cause.moved_from.name == "scan3"


def test_what_gets_dearer_as_its_neighbour_gets_cheaper_by_less_did_not_move() -> None:
    change = both(dearer("load3", 2.0), dearer("save3", 0.8))
    explanation = TREE.draw(np.random.default_rng(5), change)
    (cause,) = [cause for cause in explanation.causes if "load3" in cause.names]
    assert cause.moved_from is None
    assert risen(explanation) == {"load3"}


def test_a_young_service_is_explained_by_counting_alone() -> None:
    explanation = TREE.draw(np.random.default_rng(2), dearer("pack", 1.3), days=1)
    assert risen(explanation) == {"pack"}
