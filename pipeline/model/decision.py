"""What one step says of one candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.model.step_codes import RELEASE_COSTS


@dataclass(frozen=True, slots=True)
class CostlierRequests:
    """One change of cost in a new release, and the types of requests whose change it may be.

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
        named = (self.type, self.release, self.former_release)
        return Decision(RELEASE_COSTS, True, self.share, self.share_error, "dearer", named, self)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a step says of a candidate: passed or dropped, the number it looked at, and the bound of that.

    ``code`` is one of the step's in ``pipeline.model.steps``, which holds its words; empty where a candidate
    passed without a remark. Both numbers are 0 where there was nothing to compare with.
    """

    step: str
    passed: bool
    statistic: float = 0.0
    bound: float = 0.0
    code: str = ""
    subjects: tuple[str, ...] = ()  # what the code's words name: a metric, a domain, an event
    requests: CostlierRequests | None = None  # that cost more in a new release, by the step that compares


DomainFinding = Literal["new", "too large", "rose", "shifted"]
"""What became of a cost domain (FBDetect §5.4.6): it did not exist before; it is too large to separate the
change from its own noise; it rose with the candidate; it did not, so that the cost came from within."""


@dataclass(frozen=True, slots=True)
class DomainDecision:
    """What one cost domain says of a candidate; the first three findings let it pass."""

    domain: str  # its kind and what it is, for people: "callers: shop.cart.total"
    finding: DomainFinding
    before: float  # the domain's gCPU before the change
    after: float
    statistic: float  # by how much of what was expected of a true regression the domain rose
    bound: float
