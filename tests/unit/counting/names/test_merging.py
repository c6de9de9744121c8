from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from pipeline.counting.names import Naming
from pipeline.counting.names.merging import merged_series, merged_stacks, overcounts
from pipeline.model import MetricKind, SeriesMatrix, StackMatrix


def matrix(**rows: list[float]) -> SeriesMatrix:
    names = tuple(name.replace("_int", "(int)").replace("_long", "(long)") for name in rows)
    kinds: list[MetricKind] = ["subroutine" for _ in names]
    return SeriesMatrix(0.0, 60.0, tuple(kinds), names, np.array([*rows.values()]), np.array([10.0, 10.0]))


def test_series_of_one_symbol_are_added_up_to_the_total() -> None:
    merged = merged_series(matrix(a_int=[1, 6], a_long=[2, 7], b=[3, 3]), Naming())
    assert merged.names == ("a", "b")
    assert_allclose(merged.samples, [[3, 10], [3, 3]])


def test_series_are_sorted_by_symbol() -> None:
    assert merged_series(matrix(b=[1, 1], a_int=[2, 2]), Naming()).names == ("a", "b")


def test_series_of_symbols_are_not_copied() -> None:
    plain = matrix(a=[1, 2], b=[3, 4])
    assert merged_series(plain, Naming()) is plain
    raw = matrix(a_int=[1, 2])
    assert merged_series(raw, Naming(rules=())) is raw


def test_endpoints_keep_their_names() -> None:
    found = SeriesMatrix(0.0, 60.0, ("endpoint",), ("/f(int)",), np.ones((1, 2)), np.ones(2))
    assert merged_series(found, Naming()) is found


def test_stacks_that_became_equal_are_added_up() -> None:
    stacks = (("main", "a(int)"), ("main", "b"), ("main", "a(long)"), ("endpoint=/f(int)",))
    merged = merged_stacks(StackMatrix(stacks, np.arange(4.0), np.ones(4), 6.0, 4.0), Naming())
    assert merged.stacks == (("main", "a"), ("main", "b"), ("endpoint=/f(int)",))
    assert_allclose(merged.before, [2, 1, 3])
    assert_allclose(merged.after, [2, 1, 1])
    assert (merged.total_before, merged.total_after) == (6.0, 4.0)


def test_stacks_of_symbols_are_not_copied() -> None:
    plain = StackMatrix((("main", "a"),), np.ones(1), np.ones(1), 1.0, 1.0)
    assert merged_stacks(plain, Naming()) is plain


def test_a_sample_that_holds_two_names_of_a_symbol_is_counted_once() -> None:
    stacks = [("main", "a(int)", "a(long)"), ("main", "a(int)"), ("main", "b(int)")]
    samples = np.array([[4.0, 0.0], [4.0, 5.0], [1.0, 1.0]])
    found = overcounts(stacks, samples, Naming())
    assert_allclose(found["a"], [8 / 12, 1.0])
    assert "b" not in found
    assert "main" not in found


def test_recursion_under_one_name_was_counted_once_already() -> None:
    assert overcounts([("a(int)", "a(int)"), ("a(long)",)], np.ones((2, 1)), Naming()) == {}
