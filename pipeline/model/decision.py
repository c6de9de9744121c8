"""Decisions of steps on candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.model.step_codes import RELEASE_COSTS


@dataclass(frozen=True, slots=True)
class CostlierRequests:
    """A change of cost in a new release, with the types of requests that may have caused it.

    Args:
        type: The likeliest type.
        release: The new release.
        former_release: The release before.
        share: The change as a share of the metric.
        share_error: Standard error of ``share``.
        or_types: Other possible types, the likeliest first.
        chances: Probability of ``type``, then of each of ``or_types``; their sum is at most 1, as unlikely
            types are not listed. Empty if unknown, as in decisions of former versions.
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
        """The likeliest type, then the other possible ones."""
        return (self.type, *self.or_types)

    @property
    def likely(self) -> dict[str, float]:
        """Type → probability that it caused the change; empty if unknown."""
        if len(self.chances) != len(self.types) or not sum(self.chances) > 0.0:
            return {}
        return dict(zip(self.types, self.chances, strict=True))

    def decision(self) -> Decision:
        """Return the decision that carries this change of cost."""
        named = (self.type, self.release, self.former_release)
        return Decision(RELEASE_COSTS, True, self.share, self.share_error, "dearer", named, self)


@dataclass(frozen=True, slots=True)
class Decision:
    """A step's decision on a candidate: passed or dropped, the statistic, and its bound.

    ``code`` is one of the step's codes in ``pipeline.model.steps``, which has the words for it; empty if a
    candidate passed without a remark. Both numbers are 0 if there was nothing to compare.
    """

    step: str
    passed: bool
    statistic: float = 0.0
    bound: float = 0.0
    code: str = ""
    subjects: tuple[str, ...] = ()  # names in the code's words: a metric, a domain, an event
    requests: CostlierRequests | None = None  # the change of cost, from the step that compares releases


DomainFinding = Literal["new", "too large", "rose", "shifted"]
"""Finding on a cost domain (FBDetect §5.4.6): it did not exist before; its own noise is too large to see the
change; it rose with the candidate; it did not rise, so the cost moved within it."""


@dataclass(frozen=True, slots=True)
class DomainDecision:
    """The decision of one cost domain on a candidate; the first three findings let it pass."""

    domain: str  # kind and name, for people: "callers: shop.cart.total"
    finding: DomainFinding
    before: float  # the domain's gCPU before the change
    after: float
    statistic: float  # rise of the domain, as a share of the rise expected of a true regression
    bound: float
