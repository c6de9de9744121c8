"""The schedule of a service's scans, by the progress of its partitions in event time.

A workload scans when the low watermark over the live partitions passes a multiple of its re-run interval, by
enough for late data. So the same input gives the same scans, live or replayed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.analysis.detect.idleness import Partition, is_idle
from pipeline.model import Progress
from pipeline.model.units import HOUR_S

MAX_CATCH_UP = 1000
"""If more scans of a workload are due at once, those that would see nothing new are left out. A host with a
dead clock, or a service that was silent for months, would otherwise ask for every scan since."""

LONG_TERM_EVERY_S = 12 * HOUR_S
"""Least interval of searches for slow rises: the re-run interval of ct-supply-long in FBDetect Table 3."""

NEW_S = 24 * HOUR_S
"""A service whose data go back no further has no scan yet since it is new, not since a workload is."""

Counted = Callable[[str, float, float], Iterable[tuple[float, float]]]
"""Returns where there are data for a workload between two times: spans, oldest first, none twice."""


def nowhere(_workload: str, _start: float, _end: float) -> tuple[tuple[float, float], ...]:
    """Return the extent of a service without stored data."""
    return ()


@dataclass(frozen=True, slots=True)
class Cadence:
    """When a workload scans."""

    workload: str
    interval_s: float  # between scans
    wait_s: float  # for late data, after a scan's end
    analysis_s: float = 0.0  # where it looks for a change
    extended_s: float = 0.0  # after that, where it confirms one
    searches_slowly: bool = False  # some scans look for slow rises, too
    topic: str = "profiles"  # what it looks at: that or ``metrics``

    @property
    def reach_s(self) -> float:
        """Delay of data, in event time, up to which another scan reads them."""
        return self.analysis_s + self.extended_s + self.wait_s - self.interval_s


@dataclass(frozen=True, slots=True)
class DueScan:
    """One scan that is due, and how many between it and the one before are left out."""

    workload: str
    end: float
    skipped: int = 0


@dataclass(slots=True)
class ServiceProgress:
    """Progress of a service."""

    watermarks: dict[Partition, float] = field(default_factory=dict)  # event time
    heard: dict[Partition, float] = field(default_factory=dict)  # listening time
    restored: set[Partition] = field(default_factory=set)  # known from the store, not heard yet
    scanned: dict[str, float] = field(default_factory=dict)  # workload → end of its last scan
    begun: set[str] = field(default_factory=set)  # workloads that have made a scan
    idle: frozenset[Partition] = frozenset()  # those that the last low watermark left out

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

    def made(self, workload: str, end: float) -> None:
        """Go on after a scan."""
        self.scanned[workload] = end
        self.begun.add(workload)

    def begin(self, step: Progress, cadences: Sequence[Cadence]) -> None:
        """Begin earlier if a partition that speaks later has older data, until the first scan is made.

        Which of them is heard first is chance; a scan waits until all have come so far.
        """
        for cadence in cadences:
            if cadence.workload not in self.begun:
                first = first_boundary(cadence, step.earliest)
                self.scanned[cadence.workload] = min(first, self.scanned[cadence.workload])

    def low_watermark(
        self, now: float, *, idle_s: float, unread_s: Callable[[Partition], float] = lambda _: 0.0
    ) -> float:
        """Return the event time that every partition that is not idle has reached.

        Args:
            now: Listening time; of a partition that has just spoken.
            idle_s: See ``is_idle``.
            unread_s: Of a partition, likewise.
        """
        self.idle = frozenset(
            partition
            for partition, heard in self.heard.items()
            if is_idle(now - heard, unread_s(partition), idle_s)
        )
        return min(time for partition, time in self.watermarks.items() if partition not in self.idle)

    def lateness(self, step: Progress, cadences: Sequence[Cadence]) -> tuple[bool, bool]:
        """Return whether data of a step came after a scan of their time, and whether no later one looks.

        That is, for a change: to later scans they are history. Call it before ``advance``.
        """
        of_topic = [cadence for cadence in cadences if cadence.topic == step.topic]
        late = any(step.earliest < self.scanned[cadence.workload] for cadence in of_topic)
        unseen = late and all(
            step.earliest < self.scanned[c.workload] - c.reach_s + c.wait_s for c in of_topic
        )
        return late, unseen

    def silent_since(self, topic: str, start: float, end: float) -> int:
        """Return how many idle partitions of a topic have data up to somewhere between two times.

        What they still bring comes too late for a scan of that span. One that fell silent before it has
        nothing that the scan could miss in part.
        """
        return sum(
            start < self.watermarks[partition] < end for partition in self.idle if partition[0] == topic
        )


def first_boundary(cadence: Cadence, heard: float, counted: Counted = nowhere) -> float:
    """Return the last multiple of a workload's interval before a service's data: where its scans begin.

    Those are the data from ``heard`` on, the earliest that progress names; and where a service is new, whose
    data begin no earlier than NEW_S before, from there on: progress that came before a restart and made no
    scan due does not come again. How far it goes depends on the partition that is behind most.
    """
    oldest = heard - max(NEW_S, cadence.interval_s + cadence.wait_s)
    begin = min((start for start, _ in counted(cadence.workload, oldest, heard)), default=oldest)
    first = begin if begin > oldest else heard
    return math.floor(first / cadence.interval_s) * cadence.interval_s


def due_scans(
    scanned: Mapping[str, float], low: float, cadences: Sequence[Cadence], counted: Counted = nowhere
) -> list[DueScan]:
    """Return the scans that a low watermark makes due, with the watermark that each waited for.

    So the order is the same whether they become due one by one or all at once. Where more than MAX_CATCH_UP
    of a workload are due, those are left out that others cover, see ``_covering``.

    Args:
        scanned: The end of each workload's last scan.
        low: Event time that all live partitions have reached.
        cadences: Of all workloads.
        counted: Asked where data lie, if that many are due.
    """
    due: list[tuple[float, DueScan]] = []
    for cadence in cadences:
        first = scanned[cadence.workload] + cadence.interval_s
        latest = math.floor((low - cadence.wait_s) / cadence.interval_s)
        oldest = (latest - MAX_CATCH_UP + 1) * cadence.interval_s
        ends = _every(first, low - cadence.wait_s, cadence.interval_s)
        if first < oldest:
            ends = _covering(cadence, first, oldest, latest * cadence.interval_s, counted)
        before = scanned[cadence.workload]
        for end in ends:
            skipped = round((end - before) / cadence.interval_s) - 1
            due.append((end + cadence.wait_s, DueScan(cadence.workload, end, max(0, skipped))))
            before = end
    return [scan for _, scan in sorted(due, key=lambda item: (item[0], item[1].workload))]


def _every(first: float, last: float, interval_s: float) -> Iterator[float]:
    end = first
    while end <= last:
        yield end
        end += interval_s


def _covering(
    cadence: Cadence, first: float, oldest: float, last: float, counted: Counted
) -> Iterator[float]:
    """Yield the ends of those scans from ``first`` on that leave no data unseen, and of the last one.

    A scan is left out if no data lie where it looks for a change or confirms one. Of those before ``oldest``
    also if the next one that is made looks at all that it would have looked at, and as thoroughly. Which
    these are depends on their ends alone, so that a restart amid them changes nothing.
    """
    interval_s = cadence.interval_s
    stride = max(1, math.floor(cadence.analysis_s / interval_s))
    looks_s = cadence.analysis_s + cadence.extended_s + stride * interval_s
    end = first
    for start, stop in counted(cadence.workload, first - looks_s, last):
        end = max(end, math.floor(start / interval_s + 1) * interval_s)
        while end < min(stop + looks_s, last):
            slow = cadence.searches_slowly and is_slow(end, interval_s=interval_s)
            if end >= oldest or slow or round(end / interval_s) % stride == 0:
                yield end
            end += interval_s
    yield last


def is_slow(end: float, *, interval_s: float) -> bool:
    """Return whether a scan that ends ``interval_s`` after the former one searches for slow rises."""
    return math.floor(end / LONG_TERM_EVERY_S) > math.floor((end - interval_s) / LONG_TERM_EVERY_S)
