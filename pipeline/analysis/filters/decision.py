"""The decision of a scan's filters, in the order of the registry of steps.

The filter of a step is ``decide`` in the module of this package that is named by the step's key.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from pipeline.analysis.filters.evidence import FilterCase, FilterConfig, FilterEvidence, open_case
from pipeline.analysis.filters.same_regression import ESCALATED
from pipeline.model import Candidate, Decision, Dropped, divide
from pipeline.model.steps import FILTERS, Step


class Filter(Protocol):
    """One filter."""

    def __call__(self, candidates: Sequence[Candidate], case: FilterCase) -> Sequence[Decision]:
        """Return a decision on each candidate, in their order."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """Result of filtering a scan's candidates."""

    passed: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...]
    escalated: tuple[Candidate, ...]  # of those dropped: what a regression of an earlier scan has become


def decide_filters(
    evidence: FilterEvidence,
    config: FilterConfig,
    *,
    without: Collection[str] = (),
    steps: Sequence[Step] = FILTERS,
) -> Filtered:
    """Apply the filters in order, each to the candidates that the former ones pass.

    An optional step is applied if ``config`` names it.

    Args:
        evidence: What was gathered of the scan.
        config: Of its workload.
        without: Keys of steps to leave out.
        steps: The filters' steps, in their order.
    """
    case = open_case(evidence, config)
    left, dropped = evidence.scan.candidates, list[Dropped]()
    for step in steps:
        if step.key in without or (step.optional and step.key not in config.optional):
            continue
        asked = [candidate for candidate in left if candidate.kind in step.kinds]
        rest = [candidate for candidate in left if candidate.kind not in step.kinds]
        passed, gone = divide(zip(asked, filter_of(step)(asked, case), strict=True))
        left, dropped = (*passed, *rest), [*dropped, *gone]
    escalated = tuple(line.candidate for line in dropped if line.decision.code == ESCALATED)
    return Filtered(left, tuple(dropped), escalated)


def load_filters() -> None:
    """Import every filter, so that the first scan does not wait for imports."""
    for step in FILTERS:
        filter_of(step)


def filter_of(step: Step) -> Filter:
    """Return the filter of a step."""
    return cast("Filter", import_module(f"pipeline.analysis.filters.{step.key}").decide)
