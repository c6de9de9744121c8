"""By what all shares of a service have moved between two spans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pipeline.analysis.lifecycle import largest_subroutines, share_factor
from pipeline.model import MetricKind, SeriesMatrix

NAMES = [f"shop.f{i:03}" for i in range(150)]


def spans(counts: Sequence[float], total: float = 100_000.0, kind: MetricKind = "subroutine") -> SeriesMatrix:
    names = NAMES[: len(counts)]
    samples = np.array(counts, dtype=np.float64).reshape(-1, 1)
    return SeriesMatrix(0.0, 60.0, (kind,) * len(names), tuple(names), samples, np.array([total]))


@pytest.mark.parametrize(
    ("now", "factor"),
    [
        pytest.param([400.0] * 150, 1.0, id="nothing moved"),
        pytest.param([300.0] * 150, 0.75, id="all shrank"),
        pytest.param([300.0] * 50 + [400.0] * 100, 1.0, id="a third shrank"),
        pytest.param([400.0] * 149, 1.0, id="one is gone"),
    ],
)
def test_the_factor_is_that_of_the_majority(now: list[float], factor: float) -> None:
    assert share_factor(spans([400.0] * 150), spans(now)) == pytest.approx(factor)


def test_of_too_few_subroutines_there_is_none() -> None:
    assert share_factor(spans([400.0] * 20), spans([200.0] * 20)) == 1.0


def test_the_largest_subroutines_come_first_and_nothing_else() -> None:
    assert largest_subroutines(spans([1.0, 3.0, 2.0])) == [
        ("subroutine", NAMES[1]),
        ("subroutine", NAMES[2]),
        ("subroutine", NAMES[0]),
    ]
    assert largest_subroutines(spans([1.0], kind="endpoint")) == []
    assert len(largest_subroutines(spans([1.0] * 150))) == 150
