"""States of events by what people said of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.model import MetricKind, Verdict

FixState = Literal["waiting", "confirmed", "contradicted"]
"""What became of a regression that somebody called fixed."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A reported regression, as far as verdicts are about it. Times are epoch seconds."""

    id: str
    service: str
    workload: str
    metric_kind: MetricKind
    metric: str
    change_time: float
    detected_time: float
    before: float
    after: float
    resolved_time: float | None = None

    @property
    def delta(self) -> float:
        """By how much its level rose."""
        return self.after - self.before


def latest_verdicts(said: Iterable[Verdict]) -> dict[str, Verdict]:
    """Return the state of each event that has one: its latest verdict, causes left out, by the event's id.

    Of two of the same time that of the later author by name counts, so that the order they come in does not.
    """
    return _latest(one for one in said if one.verdict != "cause")


def confirmed_causes(said: Iterable[Verdict]) -> dict[str, Verdict]:
    """Return the latest cause that was confirmed of each event, by the event's id."""
    return _latest(one for one in said if one.verdict == "cause")


def original_of(event: str, states: Mapping[str, Verdict]) -> str:
    """Return the event that stands for one: what it is a duplicate of, and so on; itself if of none.

    Of events that are called duplicates of each other, the one with the smallest id stands for all.
    """
    seen: list[str] = []
    while (state := states.get(event)) and state.verdict == "duplicate":
        if event in seen:
            return min(seen[seen.index(event) :])
        seen.append(event)
        event = state.subject
    return event


def fix_state(fixed: Verdict, reported: Reported, last_scan: float, due_s: float) -> FixState:
    """Return what became of a regression that was called fixed.

    Args:
        fixed: The verdict.
        reported: What it is about.
        last_scan: End of the last scan of its service and workload, epoch seconds.
        due_s: How long scans need to see that a regression is gone.
    """
    if reported.resolved_time is not None:
        return "confirmed"
    return "contradicted" if last_scan >= fixed.time + due_s else "waiting"


def _latest(said: Iterable[Verdict]) -> dict[str, Verdict]:
    ordered = sorted(said, key=lambda one: (one.time, one.author))
    return {one.event: one for one in ordered}
