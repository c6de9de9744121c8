"""Messages that wait to be published, and counts of them."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.model import Outgoing
from pipeline.model.units import counted


@dataclass(frozen=True, slots=True)
class Pending:
    """A message that waits, and the stack samples in it."""

    message: Outgoing
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of messages, and of the stack samples in them."""

    messages: int = 0
    samples: int = 0

    def plus(self, pending: Pending) -> Tally:
        """Return the tally with one message more."""
        return Tally(self.messages + 1, self.samples + pending.samples)

    def __add__(self, added: Tally) -> Tally:
        return Tally(self.messages + added.messages, self.samples + added.samples)

    def minus(self, earlier: Tally) -> Tally:
        """Return what came since an earlier tally."""
        return Tally(self.messages - earlier.messages, self.samples - earlier.samples)

    def __str__(self) -> str:
        return f"{counted(self.messages, 'message')} ({counted(self.samples, 'sample')})"
