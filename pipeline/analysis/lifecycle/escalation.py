"""Escalation: a regression whose series rises beyond the level that was reported last."""

from __future__ import annotations

from pipeline.model import Candidate


def has_escalated(
    candidate: Candidate, *, before: float, reported: float, absolute: float | None, relative: float | None
) -> bool:
    """Return whether a level exceeds the last reported one by enough to report it again.

    Enough is the detection threshold at least, and half of all that was reported of the regression so far:
    both levels are estimates, and a series that grows every day should be reported a few times, not by every
    scan.

    Args:
        candidate: A change point further up in the same series.
        before: The level of this series before the regression.
        reported: The level that was reported last.
        absolute: The workload's absolute threshold, or None.
        relative: The workload's relative threshold, or None.
    """
    threshold = absolute if absolute is not None else (relative or 0.0) * abs(reported)
    sign = 1.0 if reported > before else -1.0
    return sign * (candidate.after - reported) >= max(threshold, abs(reported - before) / 2) * (1 - 1e-9)
