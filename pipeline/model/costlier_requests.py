"""Requests that cost more in a new release, as the comparison of releases says it: a decision of its step."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.model import Candidate, Decision
from pipeline.model.step_codes import RELEASE_COSTS

_CODE = "dearer"
_FEWEST = 3
"""Subjects of such a decision: the type and both releases; other types follow."""


@dataclass(frozen=True, slots=True)
class CostlierRequests:
    """One change of cost, and the types of requests whose change it may be.

    Args:
        type: The likeliest type.
        release: The new one.
        former_release: The one before.
        share: Of the metric, that the change makes.
        share_error: Its standard error.
        or_types: Other types that it may be instead, the likeliest first.
        chances: Probability of the type, then of each other one; together at most 1, as unlikely types are
            not named. Empty where it is not known, as of former versions.
    """

    type: str
    release: str
    former_release: str
    share: float
    share_error: float
    or_types: tuple[str, ...] = ()
    chances: tuple[float, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The type and all that it may be instead."""
        return (self.type, *self.or_types)

    @property
    def likely(self) -> dict[str, float]:
        """Type → probability that the change is its own; empty where it is not known."""
        if len(self.chances) != len(self.types) or not sum(self.chances) > 0.0:
            return {}
        return dict(zip(self.types, self.chances, strict=True))

    def decision(self) -> Decision:
        """Return the decision that says it."""
        subjects = (self.type, self.release, self.former_release, *self.or_types)
        return Decision(RELEASE_COSTS, True, self.share, self.share_error, _CODE, subjects, self.chances)


def costlier_requests(candidate: Candidate) -> list[CostlierRequests]:
    """Return the changes of cost that a candidate consists of; none of other candidates."""
    return [
        _read(one)
        for one in candidate.passed
        if one.step == RELEASE_COSTS and one.code == _CODE and len(one.subjects) >= _FEWEST
    ]


def _read(one: Decision) -> CostlierRequests:
    type_, release, former, *others = one.subjects
    return CostlierRequests(type_, release, former, one.statistic, one.bound, tuple(others), one.chances)
