"""Watermarks of services: how far each has come in event time, and which of its scans that makes due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pipeline.analysis.detect.idleness import Readings
from pipeline.analysis.detect.schedule import Cadence, DueScan, ServiceProgress, due_scans
from pipeline.model import Progress, Record, Scan
from pipeline.model.clock import Clock
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.scan_history import ScanHistory
from pipeline.stages.gather.streams import SCANNED_TOPICS
from pipeline.stages.upstream_progress import UpstreamProgress

LONGEST_SILENCE_S = 60.0
"""How much of a time in which nothing came at all counts as silence of a partition: after an outage of the
broker or the store no partition has spoken for long, and none of them is idle for that."""

MOST_SERVICES = 20_000
"""Services whose progress is remembered. Of others the store knows as much as after a restart."""


class ListeningTime:
    """The seconds for which progress was listened to, long silences and repeated batches left out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._settled_at = clock()
        self._listened_s = 0.0  # up to the last batch that was settled
        self.now = 0.0
        """When the last batch came, in this time."""

    def take(self) -> None:
        """Note that a batch came."""
        self.now = self._listened_s + min(max(0.0, self._clock() - self._settled_at), LONGEST_SILENCE_S)

    def settle(self) -> None:
        """Note that the batch is done: while it was worked on, nobody was heard."""
        self._listened_s, self._settled_at = self.now, self._clock()


class Watermarks:
    """Keeps the progress of every service that is heard.

    Args:
        history: What the store holds of services.
        workloads: All that scan.
        clock: The wall clock.
        idle_s: Silence after which a partition is idle.
        readings: How far aggregate has read; None where it is done with all that there is.
    """

    def __init__(
        self,
        history: ScanHistory,
        workloads: Sequence[Workload],
        clock: Clock,
        idle_s: float,
        readings: Readings | None,
    ) -> None:
        self._history = history
        self._cadences = [cadence_of(workload) for workload in workloads]
        self._topics = {cadence.workload: cadence.topic for cadence in self._cadences}
        self._idle_s = idle_s
        self._upstream = UpstreamProgress(readings, clock)
        self._services: dict[str, ServiceProgress] = {}
        self.listening = ListeningTime(clock)
        self.limited: Counter[str] = Counter()
        """Steps with data that came after a scan of their time, and those that no later scan looks at."""

    def clear(self) -> None:
        """Forget every service."""
        self._services.clear()
        self._upstream.clear()

    def take(self, batch: Sequence[Record]) -> dict[str, list[DueScan]]:
        """Take the progress of a batch in, and return the scans that are due of each service in it."""
        self.listening.take()
        self._upstream.hear(batch)
        steps: dict[str, list[Progress]] = {}
        for step in (record.payload for record in batch if record.payload.topic in SCANNED_TOPICS):
            steps.setdefault(step.service, []).append(step)
        partitions = {record.payload.service: record.partition for record in batch}
        due = {
            service: self._advance(service, progress, partitions[service])
            for service, progress in steps.items()
        }
        while len(self._services) > max(MOST_SERVICES, len(steps)):
            del self._services[next(iter(self._services))]
        return due

    def scanned(self, service: str) -> Mapping[str, float]:
        """Return the end of the last scan of each workload, kept up to date."""
        return self._services[service].scanned

    def made(self, service: str, due: DueScan) -> None:
        """Go on after a scan."""
        self._services[service].made(due.workload, due.end)

    def silent_partitions(self, scan: Scan) -> int:
        """Return how many partitions fell silent within the time that a scan judges."""
        state = self._services[scan.service]
        return state.silent_since(self._topics[scan.workload], scan.analysis_start, scan.end)

    def _advance(self, service: str, progress: Sequence[Progress], partition: int) -> list[DueScan]:
        """Return the scans that are due after some steps, which came in a partition of ``windows``."""
        now = self.listening.now
        state = self._services.pop(service, None)
        if state is None:
            state = self._history.restore(service, progress, self._cadences, now)
        for step in progress:
            state.begin(step, self._cadences)
            late, unseen = state.lateness(step, self._cadences)
            self.limited["late_data"] += late
            self.limited["unseen_data"] += unseen
            state.advance(step, now)
        self._services[service] = state  # the service heard longest ago is first
        unread_s = self._upstream.unread_s(partition)
        low = state.low_watermark(now, idle_s=self._idle_s, unread_s=unread_s)
        return due_scans(state.scanned, low, self._cadences, self._history.counted(service))


def cadence_of(workload: Workload) -> Cadence:
    """Return when a workload scans."""
    return Cadence(
        workload.name,
        workload.rerun_interval_s,
        workload.wait_s,
        workload.analysis_s,
        workload.extended_s,
        searches_slowly="long_term" in workload.detectors,
        topic="profiles" if workload.series == "gcpu" else "metrics",
    )
