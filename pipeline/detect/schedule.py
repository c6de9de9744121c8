"""The schedule of a service's scans, by the progress of its partitions in event time.

A workload scans when the low watermark over the live partitions passes a multiple of its re-run interval, by
enough for late data. So the same input gives the same scans, live or replayed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.detect.idleness import Partition, is_idle
from pipeline.model import Progress

MAX_CATCH_UP = 1000
"""Most scans of one workload that one step of the watermark may cause. A host with a dead clock, or a service
that was silent for months, would otherwise ask for every scan since."""


@dataclass(frozen=True, slots=True)
class Cadence:
    """When a workload scans."""

    workload: str
    interval_s: float  # between scans
    wait_s: float  # for late data, after a scan's end


@dataclass(frozen=True, slots=True)
class DueScan:
    """One scan that is due, and how many before it lie too far back to be worth catching up."""

    workload: str
    end: float
    skipped: int = 0


@dataclass(slots=True)
class ServiceProgress:
    """What is known of one service's progress."""

    watermarks: dict[Partition, float] = field(default_factory=dict)  # event time
    heard: dict[Partition, float] = field(default_factory=dict)  # listening time
    restored: set[Partition] = field(default_factory=set)  # known from the store, not heard yet
    scanned: dict[str, float] = field(default_factory=dict)  # workload → end of its last scan

    def restore(self, partition: Partition, watermark: float, now: float) -> None:
        """Take over what the store holds of a partition, which holds scans back until it speaks or idles."""
        self.watermarks[partition], self.heard[partition] = watermark, now
        self.restored.add(partition)

    def advance(self, step: Progress, now: float) -> None:
        """Take one step of a partition in; a watermark never goes back, once it was heard."""
        partition = (step.topic, step.partition)
        before = step.watermark if partition in self.restored else self.watermarks.get(partition, 0.0)
        self.restored.discard(partition)
        self.watermarks[partition] = max(before, step.watermark)
        self.heard[partition] = now

    def low_watermark(
        self, now: float, *, idle_s: float, unread_s: Callable[[Partition], float] = lambda _: 0.0
    ) -> float:
        """Return the event time that every partition has reached that is not idle.

        Args:
            now: Listening time; of a partition that has just spoken.
            idle_s: See ``is_idle``.
            unread_s: Of a partition, likewise.
        """
        live = [
            partition
            for partition, heard in self.heard.items()
            if not is_idle(now - heard, unread_s(partition), idle_s)
        ]
        return min(self.watermarks[partition] for partition in live)


def first_boundary(earliest: float, interval_s: float) -> float:
    """Return the last multiple of an interval before a service's earliest data: where its scans begin."""
    return math.floor(earliest / interval_s) * interval_s


def due_scans(scanned: Mapping[str, float], low: float, cadences: Sequence[Cadence]) -> list[DueScan]:
    """Return the scans that a low watermark makes due, by the watermark that each waited for.

    So the order is the same whether they become due one by one or all at once.

    Args:
        scanned: The end of each workload's last scan.
        low: Event time that all live partitions have reached.
        cadences: Of all workloads.
    """
    due = []
    for cadence in cadences:
        end = scanned[cadence.workload] + cadence.interval_s
        latest = math.floor((low - cadence.wait_s) / cadence.interval_s)
        oldest = (latest - MAX_CATCH_UP + 1) * cadence.interval_s
        skipped = round((oldest - end) / cadence.interval_s) if end < oldest else 0
        end = max(end, oldest)
        while end + cadence.wait_s <= low:
            due.append((end + cadence.wait_s, DueScan(cadence.workload, end, skipped)))
            end, skipped = end + cadence.interval_s, 0
    return [scan for _, scan in sorted(due, key=lambda item: (item[0], item[1].workload))]
