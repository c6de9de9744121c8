from __future__ import annotations

import numpy as np
import pytest

from pipeline.stacks import (
    Series,
    explained_shares,
    index_stacks,
    membership,
    share_changes,
    shares_given,
)
from tests.support.builders import build_stacks


def test_explained_shares_are_the_share_of_the_rise_in_common_stacks() -> None:
    matrix = build_stacks({"a->b": (0, 3), "a": (0, 1), "x": (10, 6)}, total=10)
    series: list[Series] = [("subroutine", "a"), ("subroutine", "b")]
    shares = explained_shares(membership(index_stacks(matrix), series), share_changes(matrix))
    assert shares == pytest.approx(np.array([[1.0, 0.75], [1.0, 1.0]]))


@pytest.mark.parametrize(
    ("given", "whole", "share"),
    [
        pytest.param(3.0, 4.0, 0.75, id="most of it"),
        pytest.param(3.0, 2.0, 1.0, id="the rest fell"),
        pytest.param(3.0, -5.0, 1.0, id="by more than it rose"),
        pytest.param(-3.0, -4.0, 0.75, id="of a fall"),
        pytest.param(-3.0, 1.0, 1.0, id="the rest rose against it"),
        pytest.param(0.0, 4.0, 0.0, id="nothing"),
        pytest.param(0.0, 0.0, 0.0, id="nothing of nothing"),
    ],
)
def test_the_share_that_a_part_gives(given: float, whole: float, share: float) -> None:
    assert shares_given(np.array([given]), np.array([whole])) == pytest.approx([share])
