"""filter: scans in, the same scans out with only the candidates that look like lasting regressions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.codec.scans import decode_scan, encode_scan, split_scan
from pipeline.detect.scan import values_and_weights
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
        lasting, gone_away = divide("went_away", self._judge_gone_away(scan, workload))
        large, small = divide("threshold", ((c, judge_threshold(c, **threshold)) for c in lasting))
        sure, chance = divide("significance", ((c, judge_significance(c, series=scan.series)) for c in large))
        known = recall(self._store, self.name, scan, self._workloads, same_workload=True) if sure else []
        fresh, same = divide(
            "same_regression",
            (
                (c, judge_same_regression(c, [k for k in known if _same_series(k, c)], **threshold))
                for c in sure
            ),
        )
        remember(self._store, self.name, [(scan, fresh)])
        return replace(scan, candidates=fresh, dropped=(*scan.dropped, *gone_away, *small, *chance, *same))

    def _judge_gone_away(self, scan: Scan, workload: Workload) -> list[tuple[Candidate, Verdict]]:
        resolution_s = workload.resolution_s
        matrix = self._store.series(workload.series, scan.service, scan.start, scan.end, resolution_s)
        values, weights = values_and_weights(matrix)
        weights = np.broadcast_to(weights, values.shape)
        row_of = {series: row for row, series in enumerate(zip(matrix.kinds, matrix.names, strict=True))}
        extended = round((scan.analysis_end - scan.start) / resolution_s)
        judged = []
        for candidate in scan.candidates:
            row = row_of.get((candidate.metric_kind, candidate.metric))
            if row is None:  # its rows have outlived their retention since the scan
                judged.append((candidate, Verdict(False, 0.0, 0.0, "the store no longer holds the series")))
                continue
            change = round((candidate.change_time - scan.start) / resolution_s)
            verdict = judge_gone_away(
                candidate, values[row], weights[row], change_index=change, extended_index=extended
            )
            judged.append((candidate, verdict))
        return judged


def _same_series(one: Candidate, other: Candidate) -> bool:
    return (one.metric_kind, one.metric, one.kind) == (other.metric_kind, other.metric, other.kind)
