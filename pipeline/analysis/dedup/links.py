"""The link between two regressions that may be one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.model import Decision


@dataclass(frozen=True, slots=True)
class Link:
    """What links two regressions: in which way they are similar, how much, and the bound of that."""

    code: str  # of the steps that deduplicate, in pipeline.model.steps
    similarity: float
    bound: float

    def joined(self, step: str, subjects: Sequence[str]) -> Decision:
        """Return the decision that one is part of the other: its metric, and its event if that is known."""
        return Decision(step, False, self.similarity, self.bound, self.code, tuple(subjects))

    def apart(self, step: str, subject: str) -> Decision:
        """Return the decision that one came nearest to the other without being part of it."""
        code, subjects = (self.code, (subject,)) if self.similarity > 0 else ("unlike", ())
        return Decision(step, True, self.similarity, self.bound, code, subjects)
