"""Stacks around a change and of earlier days on one list: shares, common factors, what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.cost_shift.stack_history import StackHistory, stack_history
from pipeline.analysis.stacks import index_stacks
from pipeline.model import StackMatrix
from tests.support.builders import build_stacks

CHANGE = build_stacks({"main->a": (40, 60), "main->b": (60, 140)}, total=None)
DAY = build_stacks({"main->b": (10, 30), "main->c": (30, 10)})


def history(*days: StackMatrix, nearer: StackMatrix | None = None) -> StackHistory:
    return stack_history(index_stacks(CHANGE), days, nearer)


def test_shares_of_all_samples_on_one_list() -> None:
    found = history(DAY)
    assert found.index.matrix.stacks == (("main", "a"), ("main", "b"), ("main", "c"))
    assert found.before.tolist() == [[0.4, 0.6, 0.0], [0.0, 0.25, 0.75]]
    assert found.after.tolist() == [[0.3, 0.7, 0.0], [0.0, 0.75, 0.25]]
    assert found.samples_before.tolist() == [100, 40]
    assert found.samples_after.tolist() == [200, 40]
    assert found.nearer is None


@pytest.mark.parametrize(
    "empty",
    [build_stacks({"main->a": (0, 5)}), build_stacks({"main->a": (5, 0)})],
    ids=["nothing before", "nothing after"],
)
def test_a_day_without_samples_on_a_side_is_left_out(empty: StackMatrix) -> None:
    found = history(empty, DAY)
    assert found.before.shape == (2, 3)
    assert found.samples_before.tolist() == [100, 40]
    assert history(nearer=empty).nearer is None


def test_nearer_spans_are_shares_on_the_same_list() -> None:
    found = history(DAY, nearer=build_stacks({"main->b": (2, 3), "main->unheard": (8, 1)}))
    assert found.nearer is not None
    assert found.nearer_samples is not None
    assert found.nearer.tolist() == [[0.0, 0.2, 0.0], [0.0, 0.75, 0.0]]
    assert found.nearer_samples.tolist() == [10, 4]


def test_stacks_with_samples_enough_go_by_their_ratio() -> None:
    change = build_stacks({"a": (40, 60), "b": (60, 30), "c": (29, 900), "d": (30, 30)})
    found = stack_history(index_stacks(change))
    names = [found.index.matrix.stacks[at] for at in found.by_ratio.tolist()]
    assert names == [("b",), ("d",), ("a",)]  # c had less than thirty samples


def test_what_vanished_does_not_say_what_the_whole_did() -> None:
    rows = {f"old{i:03}": (100.0, 0.0) for i in range(150)}
    rows |= {f"new{i:03}": (0.0, 100.0) for i in range(150)}
    rows |= {f"stays{i:03}": (100.0, 90.0) for i in range(120)}
    found = stack_history(index_stacks(build_stacks(rows)))
    assert found.share_factor[0] == pytest.approx(0.9 * 27_000 / 25_800)


def many(factor: float, regressed: float) -> StackMatrix:
    """A hundred and fifty stacks, of which the first got so many more samples, and all others a factor."""
    rows = {f"s{i:03}": (100.0, 100 * factor) for i in range(1, 150)}
    return build_stacks({"s000": (100.0, regressed), **rows}, total=15_000.0)


def test_the_common_factor_is_that_of_most_stacks() -> None:
    found = stack_history(index_stacks(many(0.9, 1590.0)), [many(1.1, 100.0)])
    assert found.share_factor == pytest.approx([0.9, 1.1])


def test_of_few_stacks_none_is_known() -> None:
    assert history(DAY).share_factor.tolist() == [1.0, 1.0]


def test_the_factor_outside_leaves_out_what_is_in_question() -> None:
    # Forty grew by half, the others shrank by a fifth.
    rows = {f"s{i:03}": (100.0, 150.0 if i < 40 else 80.0) for i in range(150)}
    found = stack_history(index_stacks(build_stacks(rows, total=15_000.0)))
    few, most = np.arange(150) < 40, np.arange(150) < 60
    assert found.share_factor_outside(few) == pytest.approx(0.8)
    assert found.share_factor_outside(most) is None  # ninety are left, too few to say what became of all
    assert found.share_factor_outside(np.zeros(150, dtype=np.bool_)) == pytest.approx(0.8)
