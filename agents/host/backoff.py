"""Backoff from processes that cannot be sampled, and their reasons, each reported once."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_S = 5.0
LAST_S = 600.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Failures in a row to sample a process, the reason, and when the next try is due, in epoch seconds."""

    failures: int = 0
    until: float = 0.0
    reason: str = ""

    def after_failure(self, reason: str, now: float) -> Backoff:
        """Return the backoff after one more failure: twice as long as before, at most ten minutes."""
        wait_s = min(FIRST_S * 2**self.failures, LAST_S)
        return Backoff(self.failures + 1, now + wait_s, reason)
