"""filter: scans in, the same scans out with only the candidates that look like lasting regressions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.codec.scans import decode_scan, scan_messages
from pipeline.dedup.evidence import Reported
from pipeline.filters import Filtered, decide_filters, load_filters
from pipeline.model import Decision, Dropped, Outgoing, Record, Scan
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.candidate_series import filter_config, gather_filters
from pipeline.stages.gather.history import remember
from pipeline.stages.gather.scanned import as_scanned
from pipeline.steps import sentence
from pipeline.storage.interface import Store
from pipeline.workloads import Workload, workload_of

log = logging.getLogger(__name__)


class FilterStage(Stage):
    """Runs the filters of each scan in the paper's order and passes on what survives."""

    name = "filter"
    leaves_out = True

    def __init__(self, *, store: Store, workloads: Sequence[Workload], without: Without = NOTHING) -> None:
        self._store = store
        self._without = without
        self._workloads = {workload.name: workload for workload in workloads}
        self.inputs: Mapping[str, Decoder] = {"change-points": decode_scan}
        load_filters()

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Filter each scan, in order."""
        scans = (self._filter(record.payload) for record in batch)
        return [message for scan in scans for message in scan_messages("filtered", scan)]

    def _filter(self, scan: Scan) -> Scan:
        workload = workload_of(scan, self._workloads)
        if workload is None:
            return _without_workload(scan)
        if not scan.candidates:
            return scan
        store = as_scanned(self._store, scan, workload, self._without)
        evidence = gather_filters(store, self.name, scan, self._workloads, self._without)
        filtered = decide_filters(evidence, filter_config(workload, self._without), without=self._without)
        return self._record(scan, filtered)

    def _record(self, scan: Scan, filtered: Filtered) -> Scan:
        """Remember what passes, and what known regressions have become, before it is published."""
        kept = [Reported(candidate) for candidate in (*filtered.passed, *filtered.escalated)]
        remember(self._store, self.name, scan, kept)
        return replace(
            scan,
            candidates=filtered.passed,
            dropped=(*scan.dropped, *filtered.dropped),
            grown=filtered.escalated,
            share_factor=None,
        )


def _without_workload(scan: Scan) -> Scan:
    """Return a scan of which nothing is judged: only a worker that knows the workload could."""
    unknown = Decision("workload", False, code="unknown", subjects=(repr(scan.workload),))
    log.warning("scan dropped: %s", sentence(unknown))
    gone = tuple(Dropped(candidate, unknown) for candidate in scan.candidates)
    return replace(scan, candidates=(), dropped=(*scan.dropped, *gone), share_factor=None)
