"""Counts of rootcause: candidates by step, and events by type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.model import Scan
from pipeline.model.steps import BY_KEY, FUNNEL
from pipeline.telemetry.instruments import OTHER, LabelBound, counter, histogram, samples_of
from pipeline.telemetry.metrics import (
    CANDIDATES,
    EVENT_BOUNDS_S,
    EVENT_DELAY_S,
    EVENTS,
    MOST_WORKLOADS,
    Sample,
)

REPORTED = "reported"
"""Stands for the step of a candidate that no step dropped."""

TYPES = ("detected", "updated", "resolved")
"""Types of events, without the prefix that they share."""


@dataclass(frozen=True, slots=True)
class Brought:
    """The outcome of a scan in the last stage.

    Attributes:
        scan: The scan, with all candidates that earlier stages dropped.
        dropped: The step of each candidate that this stage dropped.
        change_times: Change times of the scan's reported regressions.
        late: Number of regressions that earlier scans found and silenced, and that are reported now.
        updates: The kind of each update of a regression that was reported before.
    """

    scan: Scan
    dropped: Sequence[str]
    change_times: Sequence[float]
    late: int
    updates: Sequence[str]


class EventCounts:
    """Metrics of one rootcause worker: the running funnel (FBDetect Table 5), and events.

    The counts of a batch are held until ``publish``, since the batch may be repeated before. One thread
    writes, another may read the samples.
    """

    def __init__(self, stage: str, workloads: Iterable[str]) -> None:
        self._stage = stage
        self._workloads = LabelBound(MOST_WORKLOADS)
        self._delays = histogram(EVENT_DELAY_S, EVENT_BOUNDS_S, "stage", "workload")
        self._events = counter(EVENTS, "stage", "type")
        self._candidates = counter(CANDIDATES, "stage", "workload", "step")
        self._held: list[Brought] = []
        for kind in TYPES:
            self._events.labels(stage, kind)
        for workload in map(self._workloads.of, workloads):
            self._delays.labels(stage, workload)
            for step in (*FUNNEL, REPORTED):
                self._candidates.labels(stage, workload, step)

    def begin(self) -> None:
        """Drop the outcomes that were not published."""
        self._held.clear()

    def hold(self, brought: Brought) -> None:
        """Hold the outcome of a scan until it is published."""
        self._held.append(brought)

    def publish(self, now: float) -> None:
        """Count the held outcomes, which were published at the time ``now``."""
        for brought in self._held:
            workload = self._workloads.of(brought.scan.workload)
            for step in (*(line.decision.step for line in brought.scan.dropped), *brought.dropped):
                self._candidates.labels(self._stage, workload, step if step in BY_KEY else OTHER).inc()
            self._candidates.labels(self._stage, workload, REPORTED).inc(len(brought.change_times))
            self._events.labels(self._stage, "detected").inc(len(brought.change_times) + brought.late)
            for kind in brought.updates:
                self._events.labels(self._stage, kind).inc()
            for change_time in brought.change_times:
                self._delays.labels(self._stage, workload).observe(max(0.0, now - change_time))
        self._held.clear()

    def samples(self) -> list[Sample]:
        """Return everything counted."""
        return samples_of(self._events, self._candidates, self._delays)
