"""What must hold of cost shifts whatever the stacks are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.cost_shift.decision import judge_cost_shift
from pipeline.analysis.cost_shift.domains import find_domains, find_members
from pipeline.analysis.cost_shift.refactorings import compare_stacks, find_refactorings
from pipeline.analysis.cost_shift.stack_history import stack_history
from pipeline.analysis.stacks import index_stacks
from pipeline.model import Decision, SeriesKey, StackMatrix

Stack = tuple[str, ...]

labels = st.sampled_from([f"shop.{owner}.{name}" for owner in "AB" for name in "xyz"] + ["lib.f", "lib.g"])
stacks = st.dictionaries(
    st.lists(labels, min_size=1, max_size=5).map(lambda under: ("main", *under)),
    st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)),
    min_size=1,
    max_size=12,
)


def matrix(rows: dict[Stack, tuple[int, int]]) -> StackMatrix:
    counts = np.array([*rows.values(), (50_000, 50_000)], dtype=np.float64)
    return StackMatrix((*rows, ("main", "idle")), counts[:, 0], counts[:, 1], *counts.sum(axis=0).tolist())


def decision(found: StackMatrix, label: str) -> Decision:
    history = stack_history(index_stacks(found))
    return judge_cost_shift(
        history,
        history.index.holding([label]),
        find_domains(history.index, find_members(history.index), SeriesKey("subroutine", label)),
        find_refactorings(history, compare_stacks(history), label),
    )[0]


@given(stacks, labels, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_stacks_does_not_matter(
    rows: dict[Stack, tuple[int, int]], label: str, random: np.random.Generator
) -> None:
    order = list(rows)
    random.shuffle(order)
    one, other = (decision(matrix({stack: rows[stack] for stack in some}), label) for some in (rows, order))
    assert one.passed == other.passed


@given(stacks, labels)
@settings(deadline=None)
def test_a_subroutine_that_only_got_another_name_is_a_shift(
    rows: dict[Stack, tuple[int, int]], label: str
) -> None:
    costs = {stack: max(before, 200) for stack, (before, _) in rows.items()}
    if not any(label in stack for stack in costs):
        return
    found: dict[Stack, tuple[int, int]] = {}
    for stack, cost in costs.items():
        new = tuple("renamed" if item == label else item for item in stack)
        before, after = found.get(stack, (0, 0))
        found[stack] = (before + cost, after)
        before, after = found.get(new, (0, 0))
        found[new] = (before, after + cost)
    assert not decision(matrix(found), "renamed").passed


@given(stacks, labels)
@settings(deadline=None)
def test_what_rises_by_itself_is_no_shift(rows: dict[Stack, tuple[int, int]], label: str) -> None:
    risen = {
        stack: (before, max(before, after) if label in stack else before)
        for stack, (before, after) in rows.items()
    }
    assert decision(matrix(risen), label).passed
