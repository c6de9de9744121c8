"""releases: progress in, looks at new releases out, as scans that enter the pipeline at deduplication.

A look compares the latest release of a service with the one before, by requests and metrics of both, as soon
as the requests of all hosts are counted (see ``pipeline.releases.requests.looks``). It is a scan of the
workload RELEASE_COSTS: its findings are candidates and take the same way as all others; what it cannot judge
is among the scan's dropped candidates. Filters are skipped: they apply to change points only.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.analysis.detect.idleness import Readings
from pipeline.analysis.detect.schedule import ServiceProgress
from pipeline.messages.scans import decode_progress, scan_messages
from pipeline.model import Outgoing, Progress, Record, Scan
from pipeline.model.clock import Clock, to_iso
from pipeline.model.units import MINUTE_S
from pipeline.releases.requests import (
    LookConfig,
    ReleaseMetrics,
    RequestRollout,
    look,
    next_look,
    periods_ahead,
)
from pipeline.releases.requests.looks import FIRST_PERIODS
from pipeline.settings.workloads import RELEASE_COSTS
from pipeline.stages.abilities import Assignable, Counted, Divisible
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.rollouts import gather_looks, gather_metrics, gather_releases, gather_rollout
from pipeline.stages.gather.streams import COUNTED_TOPICS
from pipeline.stages.scan_rows import insert_scan
from pipeline.stages.upstream_progress import UpstreamProgress
from pipeline.storage.interface import Store
from pipeline.telemetry.instruments import Sample, counter, samples_of
from pipeline.telemetry.metrics import RELEASE_LOOKS

log = logging.getLogger(__name__)

TOPICS = ("requests", "metrics")
"""Topics whose progress a comparison waits for."""

WINDOW_S = 5 * MINUTE_S
"""Least width of the windows in which later stages read a look: a deployment takes minutes."""

MOST_SERVICES = 20_000
"""Most services whose progress is remembered; that of others is read from the store, as after a restart."""

_OUTCOMES = ("slower", "no change", "not judged")


@dataclass(slots=True)
class _Service:
    """The state of one service.

    Args:
        progress: Progress of its partitions.
        low: Event time up to which all live partitions are counted.
        next_at: Event time before which no look can be due.
        release: The release of the last look.
        types: Number of types of requests of that release and the one before; 0 until they are read.
    """

    progress: ServiceProgress = field(default_factory=ServiceProgress)
    low: float = 0.0
    next_at: float = 0.0
    release: str = ""
    types: int = 0


class ReleasesStage(Stage, Assignable, Divisible, Counted):
    """The stage that looks at new releases of services with counted requests; each look is a scan."""

    name = "releases"

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        streams: Mapping[str, str],
        partition_idle_s: float,
        metrics: ReleaseMetrics | None = None,
        config: LookConfig | None = None,
        readings: Readings | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._streams = streams
        self._partition_idle_s = partition_idle_s
        self._metrics = metrics or ReleaseMetrics()
        self._config = config or LookConfig()
        self._upstream = UpstreamProgress(readings, clock)
        self._services: dict[str, _Service] = {}
        self._waiting: list[str] = []
        self._unsettled: Scan | None = None
        self._outcomes = counter(RELEASE_LOOKS, "stage", "outcome")
        for outcome in _OUTCOMES:
            self._outcomes.labels(self.name, outcome)
        self.inputs: Mapping[str, Decoder] = {"windows": decode_progress}

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget every service: progress shows anew which ones are here, the store has their looks."""
        self._services.clear()
        self._upstream.clear()
        self._waiting.clear()

    @property
    def unfinished(self) -> bool:
        """True if more services may have a look due: each look is published before the next one is made."""
        return bool(self._waiting)

    def samples(self) -> list[Sample]:
        """Return the number of looks by outcome."""
        return samples_of(self._outcomes)

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Take progress in, and make one due look: the oldest of a service."""
        if not self._waiting:
            self._upstream.hear(batch)
            self._waiting = self._take(batch)
        self._unsettled = None
        while self._waiting:
            if (scan := self._look(self._waiting[0])) is not None:
                self._unsettled = scan
                return list(scan_messages("filtered", scan))
            self._waiting.pop(0)
        return []

    def settled(self) -> None:
        """Store the published look, so that it is not made again."""
        if (scan := self._unsettled) is None:
            return
        insert_scan(self._store, scan)
        outcome = "slower" if scan.candidates else "no change" if scan.series else "not judged"
        self._outcomes.labels(self.name, outcome).inc()
        self._unsettled = None

    def _take(self, batch: Sequence[Record]) -> list[str]:
        """Take the progress of a batch in; return the services that may have a look due."""
        now = self._clock()
        due: dict[str, None] = {}
        for record in batch:
            step: Progress = record.payload
            if step.topic not in TOPICS:
                continue
            state = self._services.pop(step.service, None) or self._restored(step.service, now)
            self._services[step.service] = state
            state.progress.advance(step, now)
            unread_s = self._upstream.unread_s(record.partition)
            state.low = state.progress.low_watermark(now, idle_s=self._partition_idle_s, unread_s=unread_s)
            if state.low >= state.next_at and any(
                topic == "requests" for topic, _ in state.progress.watermarks
            ):
                due[step.service] = None
        while len(self._services) > max(MOST_SERVICES, len(due)):
            del self._services[next(iter(self._services))]
        return list(due)

    def _restored(self, service: str, now: float) -> _Service:
        """Return a service's state from the store: partitions with data delay looks until heard or idle."""
        state = _Service()
        for topic in TOPICS:
            table = COUNTED_TOPICS[topic]
            extents = self._store.extents([table], self._streams[topic], service)
            for partition, extent in extents[table].items():
                if partition[0] == topic:
                    state.progress.restore(partition, extent.last_time, now)
        return state

    def _look(self, service: str) -> Scan | None:
        """Make the oldest due look of a service; None if none is due."""
        state = self._services[service]
        runs = gather_releases(self._store, service, state.low)
        if (succession := runs.succession) is None:
            # A release that begins now has run for this long at its first look.
            state.next_at = state.low + runs.width_s * (FIRST_PERIODS - runs.begun)
            return None
        made = gather_looks(self._store, service, succession)
        if state.release != succession.new:
            state.release, state.types = succession.new, 0
        if next_look(succession.new_ends, state.types, made) is not None:
            rollout = gather_rollout(self._store, service, succession)
            state.types = len(rollout.types)
            if (end := next_look(rollout.new_ends, state.types, made)) is not None:
                return self._scan(service, rollout.until(end), end)
        ahead = periods_ahead(succession.new_ends, state.types, made, runs.begun)
        state.next_at = state.low + runs.width_s * ahead
        return None

    def _scan(self, service: str, rollout: RequestRollout, end: float) -> Scan:
        metrics = gather_metrics(self._store, service, rollout, self._metrics)
        findings = look(rollout, metrics, self._config)
        log.info(
            "look service=%s release=%s before=%s end=%s periods=%d metrics=%d candidates=%d not_judged=%s",
            service,
            rollout.new,
            rollout.old,
            to_iso(end),
            len(rollout.starts),
            findings.compared,
            len(findings.candidates),
            ",".join(candidate.decision.code for candidate in findings.dropped) or "none",
        )
        return Scan(
            service=service,
            workload=RELEASE_COSTS.name,
            start=min(float(rollout.starts[0]), rollout.begun),
            analysis_start=rollout.begun,
            analysis_end=end,
            end=end,
            series=findings.compared,
            candidates=findings.candidates,
            dropped=findings.dropped,
            resolution_s=max(1.0, round(rollout.width_s * math.ceil(WINDOW_S / rollout.width_s))),
        )
