"""detect: progress in, one scan per service, workload and re-run boundary out.

Event time drives everything: a workload scans a service when the low watermark over the service's live
partitions passes a multiple of its re-run interval, by enough for late data. So the same input gives the
same scans, live or replayed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.clock import Clock, to_iso
from pipeline.codec.fields import EARLIEST_S, LATEST_S
from pipeline.codec.scans import decode_progress, encode_scan, split_scan
from pipeline.detect.kdd2018.cusum import TEAMS, find_kdd2018
from pipeline.detect.long_term import find_long_term
from pipeline.detect.noise.service import with_shared_prior
from pipeline.detect.share_normalisation import with_share_factor
from pipeline.detect.short_term import ScanConfig, Windows, find_candidates
from pipeline.model import Candidate, Detector, Outgoing, Progress, Record, Scan, SeriesMatrix
from pipeline.stages.ablation import NOTHING, Without, scan_config
from pipeline.stages.base import Decoder, Stage
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

log = logging.getLogger(__name__)

MAX_CATCH_UP = 1000
"""Most scans of one workload that one step of the watermark may cause. A host with a dead clock, or a service
that was silent for months, would otherwise ask for every scan since."""


_TOPICS = ("profiles", "metrics")  # whose progress holds scans back

LONGEST_SILENCE_S = 60.0
"""How much of a time in which nothing came at all counts as silence of a partition: after an outage of the
broker or the store no partition has spoken for long, and none of them is idle for that."""

LONG_TERM_EVERY_S = 12 * 3600.0
"""How often slow rises are looked for at most: the re-run interval of FBDetect Table 3's ct-supply-long."""


@dataclass(slots=True)
class _Service:
    """What is known of one service's progress."""

    watermarks: dict[tuple[str, int], float] = field(default_factory=dict)  # (topic, partition) → event time
    heard: dict[tuple[str, int], float] = field(default_factory=dict)  # (topic, partition) → listening time
    recalled: set[tuple[str, int]] = field(default_factory=set)  # known from the store, not heard yet
    scanned: dict[str, float] = field(default_factory=dict)  # workload → end of its last scan


class DetectStage(Stage):
    """Keeps watermarks, scans when they pass a boundary, and publishes scans with their candidates."""

    name = "detect"

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        stream: str,
        workloads: Sequence[Workload],
        window_s: float,
        partition_idle_s: float,
        without: Without = NOTHING,
    ) -> None:
        self._store = store
        self._clock = clock
        self._stream = stream
        self._window_s = window_s
        self._settled_at = clock()
        self._listened_s = 0.0  # up to the last batch that was settled
        self._workloads = tuple(workloads)
        self._partition_idle_s = partition_idle_s
        self._config = scan_config(without)
        self._share_normalisation = "composition" not in without
        self._shared_prior = "common_noise" not in without
        self._services: dict[str, _Service] = {}
        self._unsettled: list[Scan] = []
        self.inputs: Mapping[str, Decoder] = {"windows": decode_progress}

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget every service: which ones live in these partitions is learnt anew, scans from the store."""
        self._services.clear()

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Take progress in and run every scan that has become due, oldest first."""
        self._unsettled = []
        now = self._listening()
        for service in dict.fromkeys(record.payload.service for record in batch):
            progress = [record.payload for record in batch if record.payload.service == service]
            state = self._services.get(service) or self._recall(service, progress, now)
            for step in progress:
                place = (step.topic, step.partition)
                before = step.watermark if place in state.recalled else state.watermarks.get(place, 0.0)
                state.recalled.discard(place)
                state.watermarks[place] = max(before, step.watermark)
                state.heard[place] = now
            self._services[service] = state
            self._unsettled += self._due_scans(service, state, now)
        return [
            Outgoing("change-points", scan.service, encode_scan(part))
            for scan in self._unsettled
            for part in split_scan(scan)
        ]

    def settled(self) -> None:
        """Remember the scans that are on the topic, here and in the store."""
        self._listened_s, self._settled_at = self._listening(), self._clock()
        for scan in self._unsettled:
            self._services[scan.service].scanned[scan.workload] = scan.end
        if self._unsettled:
            self._store.insert(
                "scans",
                {
                    "service": [scan.service for scan in self._unsettled],
                    "workload": [scan.workload for scan in self._unsettled],
                    "time": [scan.end for scan in self._unsettled],
                    "series": [scan.series for scan in self._unsettled],
                    "candidates": [len(scan.candidates) for scan in self._unsettled],
                },
            )
        self._unsettled = []

    def _listening(self) -> float:
        """Return for how long this stage has listened, long silences and repeated batches left out."""
        return self._listened_s + min(max(0.0, self._clock() - self._settled_at), LONGEST_SILENCE_S)

    def _recall(self, service: str, progress: Sequence[Progress], now: float) -> _Service:
        """Start with what the store holds; a service new to it is scanned from its earliest data on.

        A partition of which the store has data holds scans back until it speaks, or turns out to be idle:
        else the first to speak after a restart would have scans run without what the others still bring.
        """
        state = _Service()
        for place, last in self._store.reached(self._stream, service).items():
            if place[0] not in _TOPICS:
                continue  # of a replay: its progress is told as that of the topic it was replayed to
            state.watermarks[place] = last + (self._window_s if place[0] == "profiles" else 0.0)
            state.heard[place] = now
            state.recalled.add(place)
        earliest = min(step.earliest for step in progress)
        known: dict[str, float] = {}
        for row in self._store.rows("scans", service, EARLIEST_S, LATEST_S):
            known[row["workload"]] = max(known.get(row["workload"], 0.0), row["time"])
        for workload in self._workloads:
            first = math.floor(earliest / workload.rerun_interval_s) * workload.rerun_interval_s
            state.scanned[workload.name] = known.get(workload.name, first)
        return state

    def _due_scans(self, service: str, state: _Service, now: float) -> list[Scan]:
        live = [
            watermark
            for place, watermark in state.watermarks.items()
            if now - state.heard[place] <= self._partition_idle_s
        ]
        low = min(live)
        due = []
        for workload in self._workloads:
            end = self._first_due(service, state, workload, low)
            while end + workload.wait_s <= low:
                due.append((end, workload))
                end += workload.rerun_interval_s
        # By the watermark that each waited for: one by one or all at once, the order is the same.
        due.sort(key=lambda item: (item[0] + item[1].wait_s, item[1].name))
        return [self._scan(service, workload, end) for end, workload in due]

    def _first_due(self, service: str, state: _Service, workload: Workload, low: float) -> float:
        """Return the end of the next scan, without those that lie too far back to be worth catching up."""
        interval_s = workload.rerun_interval_s
        following = state.scanned[workload.name] + interval_s
        oldest = (math.floor((low - workload.wait_s) / interval_s) - MAX_CATCH_UP + 1) * interval_s
        if following < oldest:
            skipped = round((oldest - following) / interval_s)
            log.warning("service=%s workload=%s: %d old scans skipped", service, workload.name, skipped)
        return max(following, oldest)

    def _scan(self, service: str, workload: Workload, end: float) -> Scan:
        start, detectors = end - workload.span_s, _detectors(workload, end)
        lead_s = workload.lead_s if "short_term" in detectors else 0.0
        matrix = self._store.series(workload.series, service, start - lead_s, end, workload.resolution_s)
        if workload.metrics is not None:
            matrix = _rows(matrix, [row for row, name in enumerate(matrix.names) if workload.looks_at(name)])
        columns = [workload.historical_s, workload.historical_s + workload.analysis_s, workload.span_s]
        lead, analysis, extended, last = (
            round(seconds / workload.resolution_s) for seconds in (lead_s, *(lead_s + c for c in columns))
        )
        windows = Windows(analysis, extended, last, history=lead)
        if self._share_normalisation:
            matrix = with_share_factor(matrix, history=analysis)
        if self._shared_prior:
            matrix = with_shared_prior(matrix, windows, config=self._config)
        candidates = _detect(matrix, windows, workload, detectors, self._config)
        log.info(
            "scan service=%s workload=%s end=%s series=%d candidates=%d",
            service,
            workload.name,
            to_iso(end),
            len(matrix.names),
            len(candidates),
        )
        return Scan(
            service=service,
            workload=workload.name,
            start=start,
            analysis_start=start + columns[0],
            analysis_end=start + columns[1],
            end=end,
            series=len(matrix.names),
            candidates=candidates,
        )


def _detectors(workload: Workload, end: float) -> tuple[Detector, ...]:
    """Return what a scan runs: slow rises need not be looked for as often as steps."""
    interval_s = workload.rerun_interval_s
    slow = math.floor(end / LONG_TERM_EVERY_S) > math.floor((end - interval_s) / LONG_TERM_EVERY_S)
    return tuple(detector for detector in workload.detectors if slow or detector != "long_term")


def _detect(
    matrix: SeriesMatrix,
    windows: Windows,
    workload: Workload,
    detectors: Sequence[Detector],
    config: ScanConfig,
) -> tuple[Candidate, ...]:
    """Run detectors; where two find the same kind of change in a series, the first counts."""
    found: dict[tuple[str, str, str], Candidate] = {}
    own = _from_history(matrix, windows)
    for detector in detectors:
        match detector:
            case "short_term":
                candidates = find_candidates(matrix, windows, direction=workload.direction, config=config)
            case "kdd2018":
                team = TEAMS[workload.kdd2018 or "efficiency_infra"]
                candidates = find_kdd2018(*own, direction=workload.direction, config=team)
            case "long_term":
                candidates = find_long_term(
                    *own, direction=workload.direction, **workload.threshold.model_dump()
                )
        for candidate in candidates:
            found.setdefault((candidate.metric_kind, candidate.metric, candidate.kind), candidate)
    usable = {key: candidate for key, candidate in found.items() if _is_finite(candidate)}
    if len(usable) < len(found):
        log.error("dropped %d candidates with numbers that are not finite", len(found) - len(usable))
    return tuple(usable.values())


def _rows(matrix: SeriesMatrix, rows: Sequence[int]) -> SeriesMatrix:
    """Return some series of a matrix."""
    return replace(
        matrix,
        kinds=tuple(matrix.kinds[row] for row in rows),
        names=tuple(matrix.names[row] for row in rows),
        samples=matrix.samples[list(rows)],
    )


def _from_history(matrix: SeriesMatrix, windows: Windows) -> tuple[SeriesMatrix, Windows]:
    """Return a scan without what lies before its history, which one detector alone compares with."""
    lead = windows.history
    if not lead:
        return matrix, windows
    cut = replace(
        matrix,
        start=matrix.start + lead * matrix.resolution_s,
        samples=matrix.samples[:, lead:],
        totals=matrix.totals[lead:],
        share_factor=None if matrix.share_factor is None else matrix.share_factor[lead:],
    )
    return cut, Windows(windows.analysis - lead, windows.extended - lead, windows.end - lead)


def _is_finite(candidate: Candidate) -> bool:
    """Tell whether JSON can carry a candidate: one that it cannot would take its whole scan down."""
    numbers = (candidate.before, candidate.after, candidate.p_value, candidate.statistic)
    return all(math.isfinite(number) for number in numbers)
