"""filter: scans in, the same scans out with only the candidates that look like lasting regressions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.codec.scans import decode_scan, encode_scan, split_scan
from pipeline.detect.composition import with_dilution
from pipeline.detect.normalise import normalise
from pipeline.filters.gone_away import judge_gone_away
from pipeline.filters.same_regression import judge_same_regression
from pipeline.filters.threshold import judge_significance, judge_threshold
from pipeline.filters.verdict import Verdict, divide
from pipeline.model import Candidate, Dropped, Outgoing, Record, Scan
from pipeline.stages.base import Decoder
from pipeline.stages.memory import recall, remember
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

log = logging.getLogger(__name__)


class FilterStage:
    """Runs the filters of each scan in the paper's order and passes on what survives."""

    name = "filter"

    def __init__(self, *, store: Store, workloads: Sequence[Workload]) -> None:
        self._store = store
        self._workloads = {workload.name: workload for workload in workloads}
        self.inputs: Mapping[str, Decoder] = {"change-points": decode_scan}

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Nothing to forget: what matters across scans is in the store."""

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Filter each scan, in order."""
        outgoing = []
        for record in batch:
            scan = self._filter(record.payload)
            outgoing += [Outgoing("filtered", scan.service, encode_scan(part)) for part in split_scan(scan)]
        return outgoing

    def settled(self) -> None:
        """Nothing to do: memory was written before publishing."""

    def _filter(self, scan: Scan) -> Scan:
        workload = self._workloads.get(scan.workload)
        if workload is None:
            reason = f"this worker does not know workload {scan.workload!r}"
            gone = tuple(Dropped(c, "workload", 0.0, 0.0, reason) for c in scan.candidates)
            log.warning("scan dropped: %s", reason)
            return replace(scan, candidates=(), dropped=(*scan.dropped, *gone))
        if not scan.candidates:
            return scan
        threshold = workload.threshold.model_dump()
        levels = _Levels(self._store, scan, workload)
        lasting, gone_away = divide("went_away", ((c, levels.judge_gone_away(c)) for c in scan.candidates))
        large, small = divide("threshold", ((c, judge_threshold(c, **threshold)) for c in lasting))
        sure, chance = divide("significance", ((c, judge_significance(c, series=scan.series)) for c in large))
        known = recall(self._store, self.name, scan, self._workloads, same_workload=True) if sure else []

        def judge_same(candidate: Candidate) -> Verdict:
            return judge_same_regression(
                candidate,
                [k for k in known if _same_series(k, candidate)],
                recent=levels.recent(candidate),
                analysis_s=workload.analysis_s,
                **threshold,
            )

        fresh, same = divide("same_regression", ((c, judge_same(c)) for c in sure))
        remember(self._store, self.name, [(scan, fresh)])
        return replace(scan, candidates=fresh, dropped=(*scan.dropped, *gone_away, *small, *chance, *same))


class _Levels:
    """The series of a scan, by window."""

    def __init__(self, store: Store, scan: Scan, workload: Workload) -> None:
        self._scan = scan
        self._workload = workload
        resolution_s = workload.resolution_s
        matrix = store.series(workload.series, scan.service, scan.start, scan.end, resolution_s)
        history = round(workload.historical_s / resolution_s)
        series = normalise(
            with_dilution(matrix, history=history),
            history=history,
            longest=round((workload.analysis_s + workload.extended_s) / resolution_s),
            apart=1,
        )
        self._values, weights = series.levels(), series.exposure
        self._weights = np.broadcast_to(weights, self._values.shape)
        self._rows = {series: row for row, series in enumerate(zip(matrix.kinds, matrix.names, strict=True))}

    def judge_gone_away(self, candidate: Candidate) -> Verdict:
        """Judge whether the change is still there at the end."""
        row = self._rows.get((candidate.metric_kind, candidate.metric))
        if row is None:  # its rows have outlived their retention since the scan
            return Verdict(False, 0.0, 0.0, "the store no longer holds the series")
        return judge_gone_away(
            candidate,
            self._values[row],
            self._weights[row],
            change_index=self._column(candidate.change_time),
            extended_index=self._column(self._scan.analysis_end),
        )

    def recent(self, candidate: Candidate) -> float:
        """Return the level over an analysis window just before the change; the one before without data."""
        row = self._rows[candidate.metric_kind, candidate.metric]
        end = self._column(candidate.change_time)
        span = slice(max(end - round(self._workload.analysis_s / self._workload.resolution_s), 0), end)
        known = self._weights[row, span] > 0
        if not known.any():
            return candidate.before
        weights = self._weights[row, span][known]
        return float(np.average(self._values[row, span][known], weights=weights))

    def _column(self, time: float) -> int:
        return round((time - self._scan.start) / self._workload.resolution_s)


def _same_series(one: Candidate, other: Candidate) -> bool:
    return (one.metric_kind, one.metric, one.kind) == (other.metric_kind, other.metric, other.kind)
