"""The root of a falling function, and what has none."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from pipeline.analysis.statistics.root import root_between


@pytest.mark.parametrize(
    ("function", "root"),
    [
        (lambda x: 1 - x, 1.0),
        (lambda x: 4 - x, 4.0),
        (lambda x: 5 - x, None),
        (lambda x: -x - 1, None),
        (lambda x: x - 1, None),
        (lambda x: math.nan, None),
        (lambda x: math.inf if x < 1 else -math.inf, 1.0),
    ],
    ids=["within", "at the bound", "beyond", "below", "rises", "no number", "a jump"],
)
def test_a_root_is_given_if_there_is_one(function: Callable[[float], float], root: float | None) -> None:
    assert root_between(function, 0.0, 4.0) == (None if root is None else pytest.approx(root))
