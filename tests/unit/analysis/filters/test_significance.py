"""Whether a change point is too sure to be chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.filters.significance import judge_significance
from tests.support.builders import build_candidate


@pytest.mark.parametrize(
    ("p_value", "series", "passed"),
    [(1e-5, 1000, True), (1e-5, 1001, False), (0.011, 1, False), (0.0, 10**9, True)],
)
def test_significance_counts_the_series_of_the_scan(p_value: float, series: int, passed: bool) -> None:
    candidate = replace(build_candidate(), p_value=p_value)
    assert judge_significance(candidate, series=series).passed is passed
