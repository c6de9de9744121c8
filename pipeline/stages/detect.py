"""detect: progress in, one scan per service, workload and re-run boundary out.

Event time drives everything: see ``pipeline.analysis.detect.schedule``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.analysis.detect.idleness import Readings
from pipeline.analysis.detect.schedule import DueScan
from pipeline.analysis.detect.unjudged import STORE_REFUSED
from pipeline.messages.scans import decode_progress, scan_messages
from pipeline.model import Outgoing, Record, Scan
from pipeline.model.clock import Clock
from pipeline.model.errors import QueryRefused
from pipeline.settings.workloads import Workload
from pipeline.stages.abilities import Assignable, Counted, Resumable, Skipping
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.scan_history import ScanHistory
from pipeline.stages.scan_counts import ScanCounts
from pipeline.stages.scan_queue import ScanQueue
from pipeline.stages.scan_rows import insert_scan
from pipeline.stages.scanner import FinishedScan, Scanner
from pipeline.stages.watermarks import Watermarks
from pipeline.storage.interface import Store
from pipeline.telemetry.metrics import LIMITED_SCANS, Sample

log = logging.getLogger(__name__)

PART_S = 30.0
"""Seconds for which scans of a batch are made before a waiting batch is taken in."""


class DetectStage(Stage, Assignable, Resumable, Skipping, Counted):
    """The stage that keeps watermarks, scans when they pass a boundary, and publishes scans."""

    name = "detect"
    limits = LIMITED_SCANS

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        streams: Mapping[str, str],
        workloads: Sequence[Workload],
        window_s: float,
        partition_idle_s: float,
        without: Without = NOTHING,
        readings: Readings | None = None,
    ) -> None:
        by_name = {workload.name: workload for workload in workloads}
        history = ScanHistory(store, streams, by_name, window_s)
        self._store = store
        self._clock = clock
        self._watermarks = Watermarks(history, workloads, clock, partition_idle_s, readings)
        self._queue = ScanQueue()
        self._scanner = Scanner(store, by_name, window_s, without)
        self._counts = ScanCounts(self.name, {w.name: w.rerun_interval_s for w in workloads})
        self._began = 0.0  # when the batch under way came, by the clock
        self._unpublished: FinishedScan | None = None
        self.limited: Counter[str] = self._watermarks.limited
        self.inputs: Mapping[str, Decoder] = {"windows": decode_progress}

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget every service: progress shows anew which ones are here, the store has their scans."""
        self._watermarks.clear()
        self._queue.clear()
        self._counts.keep(partitions)
        self._counts.rest()

    @property
    def unfinished(self) -> bool:
        """True if more scans are due: each is published before the next one is run."""
        return self._queue.unfinished

    def rest(self) -> bool:
        """Postpone the rest of a batch once it has taken PART_S: it continues beside the next one."""
        return self._clock() - self._began >= PART_S and self._queue.rest()

    def held(self, topic: str) -> Mapping[int, int]:
        """Return the offsets from which on progress has scans that are not made yet."""
        return self._queue.held

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Take progress in and run one due scan.

        It is the oldest scan of the service with the fewest scans so far: a service that lags by a day does
        not delay others for long.
        """
        if not self.unfinished:
            self._take(batch)
        self._unpublished = None
        self._queue.ask({record.payload.service for record in batch})
        while self.unfinished:
            service, due = self._queue.next()
            try:
                finished = self._scan(service, due)
            except QueryRefused as error:
                if not self._queue.is_resting(service):
                    raise
                log.warning("put off until more of its progress comes: %s", error)
                self._queue.put_off(service)
                continue
            if finished is not None:
                self._unpublished = finished
                return list(scan_messages("change-points", finished.scan))
            self._go_on(service)
        return []

    def settled(self) -> None:
        """Note the published scan, here and in the store."""
        if (finished := self._unpublished) is not None:
            insert_scan(self._store, finished.scan, finished.unstable_names)
            self._go_on(finished.scan.service)
            self._counts.published(finished.scan, self._clock())
            self._unpublished = None
        if not self.unfinished:
            self._watermarks.listening.settle()
            self._counts.rest()

    def left_out(self, record: Record) -> None:
        """Continue after the scan that the store refused: the workload's next scan covers most of it."""
        if self.unfinished:
            service, due = self._queue.next()
            end = due.end
            scan = Scan(service, due.workload, end, end, end, end, series=0, unjudged=(STORE_REFUSED,))
            insert_scan(self._store, scan)
            self._go_on(service)

    def samples(self) -> list[Sample]:
        """Return the scans by workload, those that could not judge series, and the silent services."""
        return self._counts.samples(self._clock())

    def _take(self, batch: Sequence[Record]) -> None:
        """Take the progress of a batch in, and queue the scans that it makes due."""
        self._began = self._clock()
        self._counts.take(batch, self._began)
        due = self._watermarks.take(batch)
        for service in due:
            self._counts.follow(service, self._watermarks.scanned(service))
        first: dict[str, tuple[int, int]] = {}
        for record in batch:
            first.setdefault(record.payload.service, (record.partition, record.offset))
        self._queue.begin(due, first, {record.partition: record.offset for record in batch})

    def _scan(self, service: str, due: DueScan) -> FinishedScan | None:
        """Run a scan, and count its figures."""
        began = self._clock()
        finished = self._scanner.scan(service, due)
        if finished is None:
            return None
        self._counts.ran(due.workload, self._clock() - began)
        self.limited["unstable_names"] += finished.unstable_names
        self.limited["renamed_names"] += len(finished.scan.renames)
        silent = self._watermarks.silent_partitions(finished.scan)
        return replace(finished, scan=replace(finished.scan, silent_partitions=silent))

    def _go_on(self, service: str) -> None:
        """Continue after the oldest due scan of a service."""
        due = self._queue.done(service)
        self._watermarks.made(service, due)
        if due.skipped:
            log.warning("service=%s workload=%s: %d old scans skipped", service, due.workload, due.skipped)
            self.limited["skipped_scans"] += due.skipped
