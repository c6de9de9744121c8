"""Whether a change point is too sure to be chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.filters.significance import counted_series, judge_significance
from pipeline.model.metric_kind import MetricKind
from tests.support.builders import build_candidate


@pytest.mark.parametrize(
    ("p_value", "series", "passed"),
    [(1e-5, 1000, True), (1e-5, 1001, False), (0.011, 1, False), (0.0, 10**9, True)],
)
def test_significance_counts_the_series_of_the_scan(p_value: float, series: int, passed: bool) -> None:
    candidate = replace(build_candidate(), p_value=p_value)
    assert judge_significance(candidate, series=series).passed is passed


@pytest.mark.parametrize(
    ("kind", "series", "analysis_h", "counted"),
    [
        ("subroutine", 1, 4, 1),
        ("service", 1, 24, 6),  # 30 windows a month, 0.05 of which may be false: p up to 1 / 600
        ("service", 1, 4, 36),
        ("service", 100, 24, 100),
        ("service", 1, 24 * 30, 1),
    ],
)
def test_a_metric_has_few_false_change_points_a_month(
    kind: MetricKind, series: int, analysis_h: float, counted: int
) -> None:
    candidate = replace(build_candidate(), metric_kind=kind)
    assert counted_series(candidate, series, analysis_h * 3600) == counted
