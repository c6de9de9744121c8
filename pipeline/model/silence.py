"""Silences: what people said beforehand of regressions that are not to be reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SilenceKind = Literal["expected", "muted"]
"""A cost that was announced, which silences regressions up to that much; or a mute, which ends."""


CostMeasure = Literal["cpu", "metric", "relative"]
"""What a cost is: a share of the service's CPU; of a service-level metric a change in its own unit, or as a
share of its level before."""


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """A cost that a change announces for itself."""

    cost: float  # share of the service's CPU, 0 to 1
    subroutine: str = ""  # glob of names; empty: of whatever it makes slower


@dataclass(frozen=True, slots=True)
class Silence:
    """An expectation or a mute. Times are epoch seconds; a span does not include its end.

    A mute silences regressions for as long as scans end within its span. An expectation silences those whose
    change time lies within its span, or whose suspect is its change.
    """

    id: str
    service: str
    kind: SilenceKind
    time: float  # when it was made: a scan that ended before knows nothing of it
    start: float
    end: float | None = None  # None: never; a mute has an end
    owner: str = ""
    subroutine: str = ""  # glob of metrics' names; empty: the whole service
    cost: float = 0.0  # of an expectation: how much, by its measure
    change: str = ""  # of an expectation: the change whose cost it is, its id or the beginning of it
    reason: str = ""
    removed: float | None = None  # when it was taken back: scans that end later know nothing of it
    measure: CostMeasure = "cpu"

    @property
    def is_of_metric(self) -> bool:
        """Whether the cost is a service-level metric's."""
        return self.measure != "cpu"


@dataclass(frozen=True, slots=True)
class AppliedSilence:
    """A silence that is about a regression, and of an expectation what its regressions cost together."""

    silence: Silence
    total: float = 0.0  # share of the service's CPU or in the metric's own unit, this regression included
    cost: float | None = None  # what was announced, likewise; None: as the silence has it
