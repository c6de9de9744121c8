"""Verdicts: what people say of an event once they have looked into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

VerdictKind = Literal[
    "true", "false", "cost-shift", "expected", "fixed", "duplicate", "acknowledged", "cause"
]
"""What a person found: a regression, none, moved cost, a planned one, a repaired one, one that another event
has reported; or no more than that somebody looks into it; or which change did it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one person said of one event. Times are epoch seconds.

    Of an event and an author the latest one counts, and a ``cause`` beside it: naming the change says nothing
    of whether it is repaired.
    """

    event: str  # id of the event of a detected regression
    service: str
    verdict: VerdictKind
    time: float
    author: str = ""
    comment: str = ""
    subject: str = ""  # of a duplicate: id of the other event; of a cause: id of the change
    end: float | None = None  # of an expected one: until when it stays silent; None: as long as the default
