from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.stacks import explained_shares, index_stacks, membership, shares_in_step
from pipeline.analysis.stacks.index import share_changes
from pipeline.model import SeriesKey
from tests.support.builders import build_stacks


def test_explained_shares_are_the_share_of_the_rise_in_common_stacks() -> None:
    matrix = build_stacks({"a->b": (0, 3), "a": (0, 1), "x": (10, 6)}, total=10)
    series: list[SeriesKey] = [SeriesKey("subroutine", "a"), SeriesKey("subroutine", "b")]
    shares = explained_shares(membership(index_stacks(matrix), series), share_changes(matrix))
    assert shares == pytest.approx(np.array([[1.0, 0.75], [1.0, 1.0]]))


def test_what_is_called_more_often_raises_all_descendants_in_step() -> None:
    series: list[SeriesKey] = [
        SeriesKey("subroutine", "a"),
        SeriesKey("subroutine", "b"),
        SeriesKey("subroutine", "c"),
    ]
    matrix = build_stacks({"a->b": (2, 4), "a->c": (2, 3), "a": (4, 7)}, total=20)
    index = index_stacks(matrix)
    shares = shares_in_step(membership(index, series), matrix.before / 20, share_changes(matrix))
    # All of a rose by three quarters: of b that would be 1.5 of its 2, and of c it would be 1.5 for its 1.
    assert shares[1:, 0] == pytest.approx([0.75, 1 / 1.5])
