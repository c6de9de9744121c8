"""Significance: chance makes some change points in a scan of many series; only surer ones pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pipeline.analysis.filters.evidence import FilterCase
from pipeline.model import Candidate, Decision
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.units import DAY_S

BY_CHANCE = 0.01
"""False change points per scan that are tolerated."""

A_MONTH = 0.05
"""False change points of one service-level metric in a month that are tolerated."""

_MONTH_S = 30 * DAY_S


def decide(candidates: Sequence[Candidate], case: FilterCase) -> list[Decision]:
    """Decide on each candidate by how many series the scan looked at."""
    return [
        judge_significance(
            candidate, series=counted_series(candidate, case.scan.series, case.config.analysis_s)
        )
        for candidate in candidates
    ]


def counted_series(candidate: Candidate, series: int, analysis_s: float) -> int:
    """Return how many series a candidate is one of.

    A service-level metric may be alone in its scans. It counts as so many series that its false change points
    are no more in a month than are tolerated, in which analysis windows follow each other.

    Args:
        candidate: A change point of a subroutine or a metric.
        series: How many series the scan looked at.
        analysis_s: Length of the analysis window.
    """
    if is_gcpu(candidate.metric_kind):
        return series
    return max(series, math.ceil(_MONTH_S / analysis_s * BY_CHANCE / A_MONTH))


def judge_significance(candidate: Candidate, *, series: int, expected: float = BY_CHANCE) -> Decision:
    """Pass a change point if a scan of as many steady series has at most ``expected`` such by chance.

    A scan looks at thousands of series: at the detector's level of 0.01 each (§5.4.2), dozens of them are
    candidates whenever nothing happened at all. The paper leaves those to its other filters.

    Args:
        candidate: Its ``p_value`` is for its series alone.
        series: How many series the scan looked at.
        expected: False change points per scan that are tolerated.
    """
    statistic = candidate.p_value * series
    rare = statistic <= expected
    return Decision("significance", rare, statistic, expected, "" if rare else "chance")
