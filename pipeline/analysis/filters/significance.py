"""Significance: chance makes some change points in a scan of many series; only surer ones pass."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.filters.evidence import FilterCase
from pipeline.model import Candidate, Decision

BY_CHANCE = 0.01
"""False change points per scan that are tolerated."""


def decide(candidates: Sequence[Candidate], case: FilterCase) -> list[Decision]:
    """Decide on each candidate by how many series the scan looked at."""
    return [judge_significance(candidate, series=case.scan.series) for candidate in candidates]


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
