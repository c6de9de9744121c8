"""releases: progress in, looks at new releases out, as scans that join the chain where deduplication is.

A look compares the latest release of a service with the one before, by requests and metrics of both, once the
requests of all hosts are counted so far (see ``pipeline.releases.requests.looks``). It is a scan of the
workload RELEASE_COSTS: what it finds are candidates, which go the way of all others from there; what it
cannot judge is in the scan as dropped. Filters are for change points, and nothing is left for them to ask.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.analysis.detect.idleness import Readings
from pipeline.analysis.detect.schedule import ServiceProgress
from pipeline.messages.scans import decode_progress, scan_messages
from pipeline.model import Outgoing, Progress, Record, Scan
from pipeline.model.clock import Clock, to_iso
from pipeline.model.units import MINUTE_S
from pipeline.releases.requests import LookConfig, ReleaseMetrics, Rollout, look, next_look, periods_ahead
from pipeline.releases.requests.looks import FIRST_PERIODS
from pipeline.settings.workloads import RELEASE_COSTS
from pipeline.stages.abilities import Assignable, Counted, Divisible
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.rollouts import gather_looks, gather_metrics, gather_releases, gather_rollout
from pipeline.stages.gather.streams import COUNTED_TOPICS
from pipeline.stages.scan_rows import insert_scan
from pipeline.stages.upstream_progress import UpstreamProgress
from pipeline.storage.interface import Store
from pipeline.telemetry.metrics import RELEASE_LOOKS, Sample

log = logging.getLogger(__name__)

TOPICS = ("requests", "metrics")
"""What a comparison waits for."""

WINDOW_S = 5 * MINUTE_S
"""Least width of the windows by which later stages look at a look: a deployment takes minutes."""

MOST_SERVICES = 20_000
"""Services whose progress is remembered. Of others the store knows as much as after a restart."""

_OUTCOMES = ("slower", "no change", "not judged")


@dataclass(slots=True)
class _Service:
    """What is known of one service.

    Args:
        progress: Of its partitions.
        low: Event time up to which all that is live is counted.
        next_at: Event time before which no look can be due.
        release: The one that was looked at last.
        types: How many types of requests it and the one before had then; 0 until they are read.
    """

    progress: ServiceProgress = field(default_factory=ServiceProgress)
    low: float = 0.0
    next_at: float = 0.0
    release: str = ""
    types: int = 0


class ReleasesStage(Stage, Assignable, Divisible, Counted):
    """Looks at new releases of services whose requests are counted, and publishes each look as a scan."""

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
        self._outcomes = Counter(dict.fromkeys(_OUTCOMES, 0))
        self.inputs: Mapping[str, Decoder] = {"windows": decode_progress}

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget every service: which ones live in these partitions is learnt anew, looks from the store."""
        self._services.clear()
        self._upstream.clear()
        self._waiting.clear()

    @property
    def unfinished(self) -> bool:
        """Whether more services may have a look due: each look is published before the next one."""
        return bool(self._waiting)

    def samples(self) -> list[Sample]:
        """Return the looks by what came of them."""
        return [
            (RELEASE_LOOKS, {"stage": self.name, "outcome": outcome}, float(many))
            for outcome, many in self._outcomes.copy().items()
        ]

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Take progress in, and make one look that has become due, of a service the oldest."""
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
        """Note the look that is on its topic: it is not made again."""
        if (scan := self._unsettled) is None:
            return
        insert_scan(self._store, scan)
        self._outcomes["slower" if scan.candidates else "no change" if scan.series else "not judged"] += 1
        self._unsettled = None

    def _take(self, batch: Sequence[Record]) -> list[str]:
        """Take the progress of a batch in; return the services of which a look may be due."""
        now = self._clock()
        due: dict[str, None] = {}
        for record in batch:
            step: Progress = record.payload
            if step.topic not in TOPICS:
                continue
            one = self._services.pop(step.service, None) or self._restored(step.service, now)
            self._services[step.service] = one
            one.progress.advance(step, now)
            unread_s = self._upstream.unread_s(record.partition)
            one.low = one.progress.low_watermark(now, idle_s=self._partition_idle_s, unread_s=unread_s)
            if one.low >= one.next_at and any(topic == "requests" for topic, _ in one.progress.watermarks):
                due[step.service] = None
        while len(self._services) > max(MOST_SERVICES, len(due)):
            del self._services[next(iter(self._services))]
        return list(due)

    def _restored(self, service: str, now: float) -> _Service:
        """Start with what the store holds: partitions with data hold looks back until they speak or idle."""
        one = _Service()
        for topic in TOPICS:
            extents = self._store.extents(COUNTED_TOPICS[topic], self._streams[topic], service)
            for partition, extent in extents.items():
                if partition[0] == topic:
                    one.progress.restore(partition, extent.last_time, now)
        return one

    def _look(self, service: str) -> Scan | None:
        """Make the oldest look that is due of a service; None if none is."""
        one = self._services[service]
        runs = gather_releases(self._store, service, one.low)
        if (succession := runs.succession) is None:
            # A release that begins now has run for so long at its first look.
            one.next_at = one.low + runs.width_s * (FIRST_PERIODS - runs.begun)
            return None
        made = gather_looks(self._store, service, succession)
        if one.release != succession.new:
            one.release, one.types = succession.new, 0
        if next_look(succession.new_ends, one.types, made) is not None:
            rollout = gather_rollout(self._store, service, succession)
            one.types = len(rollout.types)
            if (end := next_look(rollout.new_ends, one.types, made)) is not None:
                return self._scan(service, rollout.until(end), end)
        ahead = periods_ahead(succession.new_ends, one.types, made, runs.begun)
        one.next_at = one.low + runs.width_s * ahead
        return None

    def _scan(self, service: str, rollout: Rollout, end: float) -> Scan:
        metrics = gather_metrics(self._store, service, rollout, self._metrics)
        looked = look(rollout, metrics, self._config)
        log.info(
            "look service=%s release=%s before=%s end=%s periods=%d metrics=%d candidates=%d not_judged=%s",
            service,
            rollout.new,
            rollout.old,
            to_iso(end),
            len(rollout.starts),
            looked.compared,
            len(looked.candidates),
            ",".join(one.decision.code for one in looked.dropped) or "none",
        )
        return Scan(
            service=service,
            workload=RELEASE_COSTS.name,
            start=min(float(rollout.starts[0]), rollout.begun),
            analysis_start=rollout.begun,
            analysis_end=end,
            end=end,
            series=looked.compared,
            candidates=looked.candidates,
            dropped=looked.dropped,
            resolution_s=max(1.0, round(rollout.width_s * math.ceil(WINDOW_S / rollout.width_s))),
        )
