"""Sets of stacks that one cause may have changed, against a dictionary of Python sets."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.explain.cause_sets import Reading, find_cause_sets
from pipeline.analysis.stacks import index_stacks
from pipeline.model import StackMatrix

STACKS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "d", "endpoint=/e"]), min_size=1, max_size=5).map(tuple),
    min_size=1,
    max_size=8,
    unique=True,
)


def matrix_of(stacks: list[tuple[str, ...]]) -> StackMatrix:
    counts = np.arange(1.0, len(stacks) + 1)
    return StackMatrix(tuple(stacks), counts, counts, float(counts.sum()), float(counts.sum()))


def reference(stacks: list[tuple[str, ...]]) -> dict[frozenset[int], set[Reading]]:
    """Return the readings of each set of stacks, by their definitions."""
    members: dict[Reading, set[int]] = defaultdict(set)
    for row, frames in enumerate(stacks):
        stack = [frame for frame in frames if "=" not in frame]
        if not stack:
            continue
        members[Reading("own", stack[-1])].add(row)
        for caller, name in zip(stack, stack[1:], strict=False):
            members[Reading("calls", name, caller)].add(row)
        for name in stack:
            members[Reading("through", name)].add(row)
    readings: dict[frozenset[int], set[Reading]] = defaultdict(set)
    for reading, rows in members.items():
        readings[frozenset(rows)].add(reading)
    return readings


@given(STACKS)
def test_sets_are_those_of_their_readings(stacks: list[tuple[str, ...]]) -> None:
    matrix = matrix_of(stacks)
    sets = find_cause_sets(index_stacks(matrix), matrix.before, 0.0)
    got = {frozenset(sets.of(k).tolist()): set(sets.readings(k)) for k in range(len(sets))}
    assert got == reference(stacks)
    for number in range(len(sets)):
        order = ["own", "calls", "through"]
        kinds = [order.index(reading.kind) for reading in sets.readings(number)]
        assert kinds == sorted(kinds), "the plainest first"
        assert sets.is_own[number] == (kinds[0] == 0)


@given(STACKS)
def test_sums_are_those_of_the_members(stacks: list[tuple[str, ...]]) -> None:
    matrix = matrix_of(stacks)
    sets = find_cause_sets(index_stacks(matrix), matrix.before, 0.0)
    values = np.stack([matrix.before, matrix.before**2])
    expected = np.array([values[:, sets.of(k)].sum(axis=1) for k in range(len(sets))]).T
    assert np.allclose(sets.sums(values), expected)


def test_sets_of_few_samples_are_left_out() -> None:
    matrix = matrix_of([("a", "b"), ("a", "c")])  # of 1 and 2 samples
    sets = find_cause_sets(index_stacks(matrix), matrix.before, 2.0)
    assert {reading.name for k in range(len(sets)) for reading in sets.readings(k)} == {"a", "c"}
    assert len(find_cause_sets(index_stacks(matrix), matrix.before, 9.0)) == 0
