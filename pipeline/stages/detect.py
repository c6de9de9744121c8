"""detect: progress in, one scan per service, workload and re-run boundary out.

Event time drives everything: see ``pipeline.analysis.detect.schedule``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from pipeline.analysis.detect.fitting import known_windows, over_gaps
from pipeline.analysis.detect.idleness import Readings
from pipeline.analysis.detect.schedule import (
    Cadence,
    DueScan,
    ServiceProgress,
    due_scans,
    first_boundary,
)
from pipeline.analysis.detect.search import Found, SearchConfig, due_detectors
from pipeline.analysis.detect.short_term import Windows
from pipeline.analysis.detect.unjudged import STORE_REFUSED, merge_unjudged
from pipeline.analysis.published.kdd2018.cusum import find_kdd2018
from pipeline.analysis.published.kdd2018.setups import TEAMS
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.messages.records import columns_of
from pipeline.messages.scans import decode_progress, scan_messages
from pipeline.model import Outgoing, Progress, Record, Scan, SeriesMatrix, Unjudged
from pipeline.model.clock import Clock, to_iso
from pipeline.model.errors import QueryRefused
from pipeline.settings.workloads import Workload
from pipeline.stages.ablation import NOTHING, Without, scan_config
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.counted_spans import counted_spans
from pipeline.stages.gather.fitting import fit_workload
from pipeline.stages.gather.metric_choice import choose_metrics, direction_unknown
from pipeline.stages.gather.streams import SCANNED_TOPICS
from pipeline.stages.mix_search import Searched, find_at_constant_mix
from pipeline.stages.scan_counts import ScanCounts
from pipeline.stages.scan_queue import ScanQueue
from pipeline.stages.scan_rows import scan_row, unjudged_rows
from pipeline.stages.upstream_progress import UpstreamProgress
from pipeline.storage.interface import Store
from pipeline.telemetry.metrics import LIMITED_SCANS, Sample

log = logging.getLogger(__name__)

LONGEST_SILENCE_S = 60.0
"""How much of a time in which nothing came at all counts as silence of a partition: after an outage of the
broker or the store no partition has spoken for long, and none of them is idle for that."""

PART_S = 30.0
"""For how long scans of a batch are made before the next one is taken in, if one waits."""

ROLLED_WINDOWS = 5
"""Counted windows in a window of scans from which on rollups are kept: of fewer they would be copies."""

MOST_SERVICES = 20_000
"""Services whose progress is remembered. Of others the store knows as much as after a restart."""

MOST_UNDIRECTED = 10_000
"""Metrics of which it is remembered that the log has named them."""


class DetectStage(Stage):
    """Keeps watermarks, scans when they pass a boundary, and publishes scans with their candidates."""

    name = "detect"
    leaves_out = True
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
        self._store = store
        self._clock = clock
        self._streams = streams
        self._window_s = window_s
        self._settled_at = clock()
        self._listened_s = 0.0  # up to the last batch that was settled
        self._workloads = {workload.name: workload for workload in workloads}
        self._cadences = [cadence_of(workload) for workload in workloads]
        self._partition_idle_s = partition_idle_s
        self._upstream = UpstreamProgress(readings, clock)
        self._without = without
        self._services: dict[str, ServiceProgress] = {}
        self._unsettled: Scan | None = None
        self._unstable = 0  # names of that scan
        self._queue = ScanQueue()
        self._since = 0.0  # when the batch under way came, by the clock
        self._refused: tuple[str, DueScan] | None = None
        self._began = 0.0  # when that batch came, in listening time
        self.limited: Counter[str] = Counter()
        self._undirected: set[tuple[str, str]] = set()  # services and metrics that the log has named
        self._counts = ScanCounts(self.name, {w.name: w.rerun_interval_s for w in workloads})
        self.inputs: Mapping[str, Decoder] = {"windows": decode_progress}

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget every service: which ones live in these partitions is learnt anew, scans from the store."""
        self._services.clear()
        self._upstream.clear()
        self._queue.clear()
        self._counts.keep(partitions)
        self._counts.rest()

    @property
    def unfinished(self) -> bool:
        """Whether more scans are due: each is published before the next one is run."""
        return self._queue.unfinished

    def rest(self) -> bool:
        """Let what is left of a batch rest once it has taken PART_S: it goes on beside the next one."""
        return self._clock() - self._since >= PART_S and self._queue.rest()

    def held(self, topic: str) -> Mapping[int, int]:
        """Return from where on progress asks for scans that are still to be made."""
        return self._queue.held

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Take progress in and run one scan that has become due.

        Of a service it is the oldest, and of services the one with the fewest scans so far: who lags by a
        day keeps nobody waiting for long.
        """
        if not self.unfinished:
            self._began, self._since = self._listening(), self._clock()
            self._counts.take(batch, self._clock())
            self._upstream.hear(batch)
            self._take(batch)
        self._unsettled = None
        self._queue.ask({record.payload.service for record in batch})
        while self.unfinished:
            service, one = self._queue.next()
            asked = self._clock()
            try:
                scan = self._scanned(service, one)
            except QueryRefused as error:
                if not self._queue.is_resting(service):
                    raise
                log.warning("put off until more of its progress comes: %s", error)
                self._refused = None
                self._queue.put_off(service)
                continue
            if scan is not None:
                self._counts.ran(one.workload, self._clock() - asked)
                self._unsettled = scan
                return list(scan_messages("change-points", scan))
            self._done(service)
        return []

    def _take(self, batch: Sequence[Record]) -> None:
        """Take the progress of a batch in, and the scans that are due of its services."""
        steps: dict[str, list[Progress]] = {}
        for step in (record.payload for record in batch if record.payload.topic in SCANNED_TOPICS):
            steps.setdefault(step.service, []).append(step)
        partitions = {record.payload.service: record.partition for record in batch}
        waiting: dict[str, list[DueScan]] = {}
        for service, progress in steps.items():
            state = self._services.get(service) or self._restore(service, progress, self._began)
            for step in progress:
                state.begin(step, self._cadences)
                late, unseen = state.lateness(step, self._cadences)
                self.limited["late_data"] += late
                self.limited["unseen_data"] += unseen
                state.advance(step, self._began)
            self._services.pop(service, None)
            self._services[service] = state  # the one heard longest ago is first
            self._counts.follow(service, state.scanned)
            unread_s = self._upstream.unread_s(partitions[service])
            low = state.low_watermark(self._began, idle_s=self._partition_idle_s, unread_s=unread_s)
            if due := due_scans(state.scanned, low, self._cadences, partial(self._counted, service)):
                waiting[service] = due
        while len(self._services) > max(MOST_SERVICES, len(steps)):
            del self._services[next(iter(self._services))]
        first: dict[str, tuple[int, int]] = {}
        for record in batch:
            first.setdefault(record.payload.service, (record.partition, record.offset))
        latest = {record.partition: record.offset for record in batch}
        self._queue.begin(waiting, first, latest)

    def _counted(
        self, service: str, workload: str, start: float, end: float
    ) -> Iterable[tuple[float, float]]:
        one = self._workloads[workload]
        return counted_spans(self._store, one.series, service, start, end, one.resolution_s)

    def _done(self, service: str) -> None:
        """Go on after the oldest scan that is due of a service."""
        due = self._queue.done(service)
        self._services[service].made(due.workload, due.end)
        if due.skipped:
            log.warning("service=%s workload=%s: %d old scans skipped", service, due.workload, due.skipped)
            self.limited["skipped_scans"] += due.skipped

    def left_out(self, record: Record) -> None:
        """Go on after the scan that the store refused: the next one of the workload covers most of it."""
        if self._refused is not None:
            service, due = self._refused
            end = due.end
            scan = Scan(service, due.workload, end, end, end, end, series=0, unjudged=(STORE_REFUSED,))
            self._store.insert("unjudged", columns_of(unjudged_rows(scan)))
            self._store.insert("scans", columns_of([scan_row(scan)]))
            self._done(service)
            self._refused = None

    def _scanned(self, service: str, due: DueScan) -> Scan | None:
        """Run a scan; see ``_scan``.

        Raises:
            QueryRefused: the store refuses what it takes; it says which scan this is.
        """
        self._refused = None
        try:
            return self._scan(service, due)
        except QueryRefused as error:
            self._refused = service, due
            text = f"the scan of {service} by {due.workload} that ends at {to_iso(due.end)}: {error}"
            raise QueryRefused(text) from error

    def settled(self) -> None:
        """Remember the scan that is on the topic, here and in the store."""
        if (scan := self._unsettled) is not None:
            if unjudged := unjudged_rows(scan):
                self._store.insert("unjudged", columns_of(unjudged))
            self._store.insert("scans", columns_of([scan_row(scan, self._unstable)]))
            self._done(scan.service)
            self._counts.published(scan, self._clock())
            self._unsettled = None
        if not self.unfinished:  # while it works through a batch it hears nobody
            self._listened_s, self._settled_at = self._began, self._clock()
            self._counts.rest()

    def samples(self) -> list[Sample]:
        """Return the scans by workload, those that could not judge series, and who is silent."""
        return self._counts.samples(self._clock())

    def _listening(self) -> float:
        """Return for how long this stage has listened, long silences and repeated batches left out."""
        return self._listened_s + min(max(0.0, self._clock() - self._settled_at), LONGEST_SILENCE_S)

    def _restore(self, service: str, progress: Sequence[Progress], now: float) -> ServiceProgress:
        """Start with what the store holds; a service new to it is scanned from its earliest data on.

        A partition of which the store has data holds scans back until it speaks, or turns out to be idle:
        else the first to speak after a restart would have scans run without what the others still bring.
        """
        state = ServiceProgress()
        for topic, table in SCANNED_TOPICS.items():
            last_s = self._window_s if topic == "profiles" else 0.0
            for partition, extent in self._store.extents(table, self._streams[topic], service).items():
                if partition[0] == topic:  # a replay's progress counts as that of the topic it went to
                    state.restore(partition, extent.last_time + last_s, now)
        earliest = min(step.earliest for step in progress)
        known: dict[str, float] = {}
        for row in self._store.rows("scans", service, EARLIEST_S, LATEST_S):
            known[row["workload"]] = max(known.get(row["workload"], 0.0), row["time"])
        for cadence in self._cadences:
            if cadence.workload in known:
                state.made(cadence.workload, known[cadence.workload])
            else:
                first = first_boundary(cadence, earliest, partial(self._counted, service))
                state.scanned[cadence.workload] = first
        return state

    def _scan(self, service: str, due: DueScan) -> Scan | None:
        """Run a scan; None where a service has no metrics for a workload of them."""
        workload = declared = self._workloads[due.workload]
        config = search_config(workload, due.end, self._without)
        if workload.is_fitted:
            workload = fit_workload(self._store, service, workload, due.end)
        start = due.end - workload.span_s
        matrix, windows, unknown = self._gather(service, workload, due.end, config)
        if workload.series == "service" and not (matrix.names or unknown):
            return None
        found = find_at_constant_mix(
            self._store, Searched(service, workload, matrix, windows), config, self._without
        )
        unjudged = self._with_unknown(service, found, unknown)
        analysis_start, analysis_end = (
            start + (index - windows.history) * workload.resolution_s
            for index in (windows.analysis, windows.extended)
        )
        if found.unusable:
            log.error("dropped %d candidates with numbers that are not finite", found.unusable)
        log.info(
            "scan service=%s workload=%s end=%s series=%d candidates=%d unstable_names=%d renames=%d "
            "unjudged=%s",
            service,
            workload.name,
            to_iso(due.end),
            len(matrix.names),
            len(found.candidates),
            found.one_life,
            len(found.renames),
            ",".join(f"{one.code}:{one.series}" for one in unjudged) or "none",
        )
        scan = Scan(
            service=service,
            workload=workload.name,
            start=start,
            analysis_start=analysis_start,
            analysis_end=analysis_end,
            end=due.end,
            series=len(matrix.names),
            candidates=found.candidates,
            share_factor=_shown(found),
            dropped=found.dropped,
            resolution_s=None if workload.resolution_s == declared.resolution_s else workload.resolution_s,
            unjudged=unjudged,
            renames=found.renames,
            silent_partitions=self._services[service].silent_since(
                _topic_of(workload), analysis_start, due.end
            ),
        )
        self._unstable = found.one_life
        self.limited["unstable_names"] += found.one_life
        self.limited["renamed_names"] += len(found.renames)
        return scan

    def _gather(
        self, service: str, workload: Workload, end: float, config: SearchConfig
    ) -> tuple[SeriesMatrix, Windows, tuple[str, ...]]:
        """Return all series that a scan looks at, where its windows lie among theirs, and what it leaves out.

        That are the metrics of which nobody knows in which direction they get worse.
        """
        lead_s = workload.lead_s if "short_term" in config.detectors else 0.0
        start = end - workload.span_s - lead_s
        if workload.series == "gcpu" and workload.resolution_s >= ROLLED_WINDOWS * self._window_s:
            self._store.roll_up(service, start, end, workload.resolution_s)
        matrix = self._store.series(workload.series, service, start, end, workload.resolution_s)
        unknown: tuple[str, ...] = ()
        if workload.series == "service":
            declared = self._workloads[workload.name]
            matrix, unknown = choose_metrics(
                self._store, service, matrix, declared, [*self._workloads.values()]
            )
        columns = (workload.historical_s, workload.historical_s + workload.analysis_s, workload.span_s)
        analysis, extended, last = (round((lead_s + c) / workload.resolution_s) for c in columns)
        lead = round(lead_s / workload.resolution_s)
        windows = over_gaps(Windows(analysis, extended, last, history=lead), known_windows(matrix))
        return matrix, windows, unknown

    def _with_unknown(self, service: str, found: Found, unknown: tuple[str, ...]) -> tuple[Unjudged, ...]:
        """Return what a scan could not judge, with the metrics that it left out; the log names them once."""
        if not unknown:
            return found.unjudged
        if new := [name for name in unknown if (service, name) not in self._undirected]:
            if len(self._undirected) > MOST_UNDIRECTED:
                self._undirected.clear()
            self._undirected.update((service, name) for name in new)
            log.warning(
                "service=%s: not judged, since nothing says in which direction they get worse: %s",
                service,
                ", ".join(new[:20]),
            )
        return merge_unjudged([*(one for one in found.unjudged if one.series), direction_unknown(unknown)])


def cadence_of(workload: Workload) -> Cadence:
    """Return when a workload scans."""
    return Cadence(
        workload.name,
        workload.rerun_interval_s,
        workload.wait_s,
        workload.analysis_s,
        workload.extended_s,
        searches_slowly="long_term" in workload.detectors,
        topic=_topic_of(workload),
    )


def _topic_of(workload: Workload) -> str:
    return "profiles" if workload.series == "gcpu" else "metrics"


def _shown(found: Found) -> tuple[float, ...] | None:
    """Return the share factor as a scan holds it; filters have no use for it without candidates."""
    if not found.candidates:
        return None
    return () if found.share_factor is None else tuple(found.share_factor.tolist())


def search_config(workload: Workload, end: float, without: Without = NOTHING) -> SearchConfig:
    """Return what looks for change points in a workload's scan that ends at a time."""
    return SearchConfig(
        detectors=due_detectors(workload.detectors, end, interval_s=workload.rerun_interval_s),
        direction=workload.direction,
        published={"kdd2018": partial(find_kdd2018, config=TEAMS[workload.kdd2018 or "efficiency_infra"])},
        short_term=scan_config(without),
        share_normalisation="composition" not in without,
        shared_prior="common_noise" not in without,
        exchanged_names="exchanged_names" not in without,
        renames="renames" not in without,
        **workload.threshold.model_dump(),
    )
