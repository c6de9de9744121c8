"""Counts of rootcause: what became of every candidate, and its events by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.instruments import OTHER, Histogram, LabelBound
from pipeline.lifecycle import Update
from pipeline.model import Dropped, Regression, Scan
from pipeline.steps import BY_KEY, FUNNEL
from pipeline.telemetry import (
    CANDIDATES,
    EVENT_BOUNDS_S,
    EVENT_DELAY_S,
    EVENTS,
    MOST_WORKLOADS,
    Sample,
)

REPORTED = "reported"
"""Stands for a step where none dropped a candidate."""

TYPES = ("detected", "updated", "resolved")
"""Types of events, without the prefix that they share."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What the last stage makes of a scan.

    Attributes:
        scan: With everything that the stages before dropped.
        dropped: What this stage dropped.
        reported: Regressions that the scan found.
        late: How many were found and silenced by earlier scans, and are reported now.
        updates: Of regressions that were reported before.
    """

    scan: Scan
    dropped: Sequence[Dropped]
    reported: Sequence[Regression]
    late: int
    updates: Sequence[Update]


class EventCounts:
    """What one rootcause worker shows on /metrics: the funnel (FBDetect Table 5) as it runs, and events.

    What a batch brings is held until ``publish``: the batch may come again before. One thread writes,
    another may ask for the samples.
    """

    def __init__(self, stage: str, workloads: Iterable[str]) -> None:
        self._stage = stage
        self._workloads = LabelBound(MOST_WORKLOADS)
        self._delays = Histogram(EVENT_DELAY_S, EVENT_BOUNDS_S, ["stage", "workload"])
        self._events = Counter(dict.fromkeys(TYPES, 0))
        self._candidates: Counter[tuple[str, str]] = Counter()  # by workload and step
        self._held: list[Brought] = []
        for workload in map(self._workloads.of, workloads):
            self._delays.show(stage, workload)
            self._candidates.update(dict.fromkeys([(workload, step) for step in (*FUNNEL, REPORTED)], 0))

    def begin(self) -> None:
        """Forget what was not published."""
        self._held.clear()

    def hold(self, brought: Brought) -> None:
        """Note what a scan brings."""
        self._held.append(brought)

    def publish(self, now: float) -> None:
        """Count what is held: it is on its topic, at a time by the clock."""
        for brought in self._held:
            workload = self._workloads.of(brought.scan.workload)
            steps = [line.decision.step for line in (*brought.scan.dropped, *brought.dropped)]
            self._candidates.update((workload, step if step in BY_KEY else OTHER) for step in steps)
            self._candidates[workload, REPORTED] += len(brought.reported)
            self._events["detected"] += len(brought.reported) + brought.late
            self._events.update(update.kind for update in brought.updates)
            for regression in brought.reported:
                self._delays.observe(now - regression.candidate.change_time, self._stage, workload)
        self._held.clear()

    def samples(self) -> list[Sample]:
        """Return everything counted."""
        stage = {"stage": self._stage}
        return [
            *((EVENTS, {**stage, "type": kind}, float(n)) for kind, n in self._events.copy().items()),
            *(
                (CANDIDATES, {**stage, "workload": workload, "step": step}, float(n))
                for (workload, step), n in self._candidates.copy().items()
            ),
            *self._delays.samples(),
        ]
