"""How a filter answers: the number it looked at, the bound it held it against, and whether it passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pipeline.model import Candidate, Dropped, Judgement


@dataclass(frozen=True, slots=True)
class Verdict:
    """One filter's decision on one candidate."""

    passed: bool
    statistic: float
    bound: float
    reason: str = ""  # of the decision that was taken


def divide(
    step: str, judged: Iterable[tuple[Candidate, Verdict]]
) -> tuple[tuple[Candidate, ...], tuple[Dropped, ...]]:
    """Split judged candidates into those that passed and the ledger's lines for those that did not.

    What passed carries the decision along, with the reason if there is one.
    """
    judged = list(judged)
    passed = tuple(
        replace(candidate, passed=(*candidate.passed, Judgement(step, v.statistic, v.bound, v.reason)))
        for candidate, v in judged
        if v.passed
    )
    dropped = tuple(
        Dropped(candidate, step, v.statistic, v.bound, v.reason) for candidate, v in judged if not v.passed
    )
    return passed, dropped
