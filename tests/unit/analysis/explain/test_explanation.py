"""The whole explanation on drawn trees: causes, moves, traffic, amounts and their errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.explain.explanation import Explanation
from pipeline.analysis.explain.verdict import judge
from pipeline.model import BoolArray, FloatArray
from tests.unit.analysis.explain.trees import Change, Stack, Tree, build_tree

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


Rewrite = Callable[[Stack], Stack]


def rewritten(rewrite: Rewrite, share: float) -> tuple[Tree, FloatArray, FloatArray]:
    """Return the tree with rewritten stacks beside it, and the rates before and after.

    Args:
        rewrite: What a stack becomes.
        share: How much of its cost goes there.
    """
    was: Counter[Stack] = Counter(dict(zip(TREE.stacks, TREE.rates.tolist(), strict=True)))
    now = Counter(was)
    for stack, rate in zip(TREE.stacks, TREE.rates.tolist(), strict=True):
        if rewrite(stack) != stack:
            now[stack] -= share * rate
            now[rewrite(stack)] += share * rate
    stacks = tuple(now)
    return (
        Tree(stacks, np.ones(len(stacks))),
        np.array([was[stack] for stack in stacks]),
        np.array([now[stack] for stack in stacks]),
    )


def with_name(old: str, new: str) -> Rewrite:
    return lambda stack: tuple(new if frame == old else frame for frame in stack)


def with_callee(name: str, callee: str) -> Rewrite:
    return lambda stack: (*stack, callee) if stack[-1] == name else stack


def without(name: str) -> Rewrite:
    return lambda stack: tuple(frame for frame in stack if frame != name)


@pytest.mark.parametrize(
    ("rewrite", "share", "name", "source", "callers"),
    [
        (with_name("scan3", "scan3_v2"), 1.0, "scan3_v2", "scan3", ("load3", "handle3", "entry3")),
        (with_name("load3", "fetch3"), 1.0, "fetch3", "load3", ("handle3", "entry3", "main")),
        (with_callee("load3", "parse3"), 0.4, "parse3", "load3", ("load3", "handle3")),
        (without("scan3"), 1.0, "load3", "", ("handle3", "entry3")),  # it held scan3 before, too
    ],
    ids=["renamed leaf", "renamed with callees", "extracted", "inlined"],
)
def test_cost_that_moved_is_no_rise_of_what_holds_both_ends(
    rewrite: Rewrite, share: float, name: str, source: str, callers: tuple[str, ...]
) -> None:
    tree, was, now = rewritten(rewrite, share)
    explanation = tree.draw_between(np.random.default_rng(1), was, now)
    decision = judge(explanation, name)
    assert (decision.code, *decision.subjects[1:]) == (("moved", source) if source else ("gone",))
    assert risen(explanation) <= {name}
    for caller in callers:
        parts = explanation.of(caller)
        assert abs(parts.causes.sum() + parts.renamed) < 0.002, caller
        assert judge(explanation, caller).code == "gone", caller


@pytest.mark.parametrize("name", ["scan3", "load3"])
def test_what_is_renamed_and_dearer_in_one_hour_is_dearer(name: str) -> None:
    new = f"{name}_v2"
    tree, was, now = rewritten(with_name(name, new), 1.0)
    now = now * np.array([1.4 if stack[-1] == new else 1.0 for stack in tree.stacks])
    explanation = tree.draw_between(np.random.default_rng(2), was, now)
    assert judge(explanation, new).code == "own"
    assert f"moved from {name}" in judge(explanation, new).subjects[0]
    assert risen(explanation) == {new}


def test_what_is_split_in_two_is_no_rise() -> None:
    tree, was, now = rewritten(with_name("load3", "load3_first"), 0.6)
    old = np.array(["load3" in stack for stack in tree.stacks])
    added = [with_name("load3", "load3_second")(stack) for stack in tree.stacks if "load3" in stack]
    tree = tree.grown(added, [1.0] * len(added))
    was = np.append(was, np.zeros(len(added)))
    now = np.append(np.where(old, 0.0, now), now[old])
    explanation = tree.draw_between(np.random.default_rng(3), was, now)
    assert {judge(explanation, name).code for name in ("load3_first", "load3_second")} == {"moved"}
    assert risen(explanation) == set()


def test_a_new_caller_is_the_cause_and_not_what_it_calls() -> None:
    top: Stack = ("main", "entry0", "handle0", "fresh")
    tree = TREE.grown([top, (*top, "codec"), (*top, "codec", "pack")], [3000.0, 9000.0, 9000.0])
    now = np.ones(len(tree.stacks))
    was = np.where(np.arange(len(now)) < len(TREE.stacks), 1.0, 0.0)
    hits = 0
    for seed in range(6):
        explanation = tree.draw_between(np.random.default_rng(seed), was, now)
        hits += risen(explanation) == {"fresh"}
        for label in ("codec", "pack", "handle0"):
            decision = judge(explanation, label)
            assert (decision.code, decision.subjects[1:]) == ("through", ("fresh",)), (seed, label)
    assert hits >= 5


@pytest.mark.parametrize("days", [0, 3, 7])
def test_bursts_are_no_causes(days: int) -> None:
    tree = build_tree(entries=24)
    draws = [tree.draw(np.random.default_rng(seed), days=days, excess=4.0) for seed in range(40)]
    assert sum(len(explanation.causes) > 0 for explanation in draws) <= 6


def test_what_is_known_to_have_risen_needs_less() -> None:
    change = dearer("scan3", 1.07)
    plain = [risen(TREE.draw(np.random.default_rng(seed), change)) for seed in range(12)]
    asked = [
        risen(TREE.draw(np.random.default_rng(seed), change, candidates=("scan3",))) for seed in range(12)
    ]
    assert sum(map(bool, plain)) < sum(names == {"scan3"} for names in asked)


def test_errors_of_rises_and_falls_are_as_large_as_amounts_stray() -> None:
    for factor in (0.5, 2.0):
        amounts, errors = [], []
        for seed in range(60):
            explanation = TREE.draw(np.random.default_rng(seed), dearer("scan3", factor))
            (cause,) = [cause for cause in explanation.causes if "scan3" in cause.names]
            amounts.append(cause.amount)
            errors.append(cause.error)
        assert 0.7 < float(np.std(amounts)) / float(np.mean(errors)) < 1.3, factor


def test_what_gets_dearer_as_its_neighbour_gets_cheaper_by_less_did_not_move() -> None:
    change = both(dearer("load3", 2.0), dearer("save3", 0.8))
    explanation = TREE.draw(np.random.default_rng(5), change)
    (cause,) = [cause for cause in explanation.causes if "load3" in cause.names]
    assert cause.moved_from is None
    assert risen(explanation) == {"load3"}


def test_a_young_service_is_explained_by_counting_alone() -> None:
    explanation = TREE.draw(np.random.default_rng(2), dearer("pack", 1.3), days=1)
    assert risen(explanation) == {"pack"}
