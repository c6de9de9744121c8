"""Courses of series up to the end of a scan."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.lifecycle import courses_of
from pipeline.model import SeriesMatrix
from tests.support.builders import build_candidate

TOTALS = np.array([10.0, 10.0, 0.0, 10.0])
MATRIX = SeriesMatrix(100.0, 5.0, ("subroutine",), ("shop.f",), np.array([[1.0, 2.0, 0.0, 4.0]]), TOTALS)


@pytest.mark.parametrize(
    ("start", "end", "values"),
    [
        pytest.param(100.0, 120.0, [0.1, 0.2, np.nan, 0.4], id="all"),
        pytest.param(110.0, 120.0, [np.nan, 0.4], id="the end"),
        pytest.param(101.0, 106.0, [0.1], id="between windows, as many as the span has"),
        pytest.param(90.0, 105.0, [0.1, 0.2, np.nan], id="from before the first window: as many from there"),
    ],
)
def test_a_span_is_cut_by_its_start_and_length(start: float, end: float, values: list[float]) -> None:
    found, weights = courses_of(MATRIX, 120.0, service_level=False).of(build_candidate("shop.f"), start, end)
    np.testing.assert_allclose(found, values)
    assert ((weights > 0) == np.isfinite(found)).all()


def test_a_subroutine_without_samples_takes_no_cpu_and_a_metric_without_points_says_nothing() -> None:
    gone = build_candidate("shop.gone")
    values, weights = courses_of(MATRIX, 120.0, service_level=False).of(gone, 100.0, 120.0)
    np.testing.assert_allclose(values, [0.0, 0.0, np.nan, 0.0])
    np.testing.assert_allclose(weights, TOTALS)
    values, weights = courses_of(MATRIX, 120.0, service_level=True).of(gone, 100.0, 120.0)
    assert np.isnan(values).all()
    assert not weights.any()
