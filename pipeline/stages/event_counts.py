"""Counts of rootcause: what became of every candidate, and its events by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.model import Scan
from pipeline.model.steps import BY_KEY, FUNNEL
from pipeline.telemetry.instruments import OTHER, Histogram, LabelBound
from pipeline.telemetry.metrics import (
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
        dropped: The step of each candidate that this stage dropped.
        change_times: Of the regressions that the scan found and that are reported.
        late: How many were found and silenced by earlier scans, and are reported now.
        updates: The kind of each update of a regression that was reported before.
    """

    scan: Scan
    dropped: Sequence[str]
    change_times: Sequence[float]
    late: int
    updates: Sequence[str]


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
            steps = [*(line.decision.step for line in brought.scan.dropped), *brought.dropped]
            self._candidates.update((workload, step if step in BY_KEY else OTHER) for step in steps)
            self._candidates[workload, REPORTED] += len(brought.change_times)
            self._events["detected"] += len(brought.change_times) + brought.late
            self._events.update(brought.updates)
            for change_time in brought.change_times:
                self._delays.observe(now - change_time, self._stage, workload)
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
