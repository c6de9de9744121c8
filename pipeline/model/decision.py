"""What one step says of one candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
    chances: tuple[float, ...] = ()  # of one that passed: probabilities of the types that its subjects name


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
