"""States of events by people's verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.model import MetricKind, Verdict

FixState = Literal["waiting", "confirmed", "contradicted"]
"""State of a regression that somebody called fixed."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A reported regression with the fields that verdicts refer to. Times are epoch seconds."""

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
        """Rise of its level."""
        return self.after - self.before


def latest_verdicts(said: Iterable[Verdict]) -> dict[str, Verdict]:
    """Return the state of each event that has one: its latest verdict, causes left out, by the event's id.

    Of two verdicts of the same time, that of the alphabetically later author counts, whatever their order.
    """
    return _latest(verdict for verdict in said if verdict.verdict != "cause")


def confirmed_causes(said: Iterable[Verdict]) -> dict[str, Verdict]:
    """Return the latest confirmed cause of each event, by the event's id."""
    return _latest(verdict for verdict in said if verdict.verdict == "cause")


def original_of(event: str, states: Mapping[str, Verdict]) -> str:
    """Return the original of an event: the end of its chain of duplicates; itself if it is no duplicate.

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
    """Return the state of a regression that was called fixed.

    Args:
        fixed: The verdict.
        reported: What it is about.
        last_scan: End of the last scan of its service and workload, epoch seconds.
        due_s: How long scans need to see that a regression is gone.
    """
    if reported.resolved_time is not None:
        return "confirmed"
    return "contradicted" if last_scan >= fixed.time + due_s else "waiting"


def _latest(verdicts: Iterable[Verdict]) -> dict[str, Verdict]:
    ordered = sorted(verdicts, key=lambda verdict: (verdict.time, verdict.author))
    return {verdict.event: verdict for verdict in ordered}
