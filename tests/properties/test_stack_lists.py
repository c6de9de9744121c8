"""Lists of stacks are flattened as Python would, and what is no list of integers is refused as before."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.codec.inputs import _ragged

INTEGERS = st.integers(-(2**31), 2**31 - 1)
OTHERS = st.sampled_from(
    [None, True, False, 0.5, "i", "", "[\x00\x00\x00\x00", 2**31, -(2**31) - 1, 2**64, [], [1], {"i": 1}]
)


@given(st.lists(st.lists(INTEGERS, max_size=6), max_size=6))
@example([[], [91, 105], []])
def test_lists_of_integers_are_flattened(lists: list[list[int]]) -> None:
    found = _ragged(lists)
    assert found is not None
    flat, starts = (array.tolist() for array in found)
    assert flat == list(chain.from_iterable(lists))
    assert [flat[a:b] for a, b in zip(starts, starts[1:], strict=False)] == lists


@given(st.lists(st.lists(INTEGERS | OTHERS, max_size=6) | OTHERS | INTEGERS, max_size=6))
@example([None] * 4 + [[]])
@example([[None] * 5])
@example([[[1], 2], 3])
def test_all_else_is_not(lists: list[Any]) -> None:
    plain = all(
        type(one) is list and all(type(n) is int and -(2**31) <= n < 2**31 for n in one) for one in lists
    )
    assert (_ragged(lists) is not None) == plain


@pytest.mark.parametrize("deep", [100, 1000])
def test_deep_lists_are_not(deep: int) -> None:
    nested: list[Any] = []
    for _ in range(deep):
        nested = [nested]
    assert _ragged(nested) is None
