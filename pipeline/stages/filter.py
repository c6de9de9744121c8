"""filter: scans in, the same scans out with only the candidates that look like lasting regressions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pipeline.analysis.dedup.evidence import Reported
from pipeline.analysis.filters import decide_filters, load_filters
from pipeline.messages.outcomes import ScanOutcome
from pipeline.messages.scans import decode_scan, scan_messages
from pipeline.model import Decision, Dropped, Outgoing, Record, Scan
from pipeline.model.steps import sentence
from pipeline.settings.workloads import Workload, workload_of
from pipeline.stages.abilities import Skipping
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.candidate_series import filter_config, gather_filters
from pipeline.stages.gather.history import MemoryRows, memory_rows
from pipeline.stages.gather.scan_store import as_scanned
from pipeline.stages.outcomes import Outcomes
from pipeline.storage.interface import Store

log = logging.getLogger(__name__)


class FilterStage(Stage, Skipping):
    """Runs the filters of each scan in the paper's order and passes on what survives."""

    name = "filter"

    def __init__(self, *, store: Store, workloads: Sequence[Workload], without: Without = NOTHING) -> None:
        self._store = store
        self._outcomes = Outcomes(store, self.name)
        self._without = without
        self._workloads = {workload.name: workload for workload in workloads}
        self.inputs: Mapping[str, Decoder] = {"change-points": decode_scan}
        load_filters()

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Filter each scan, in order."""
        outgoing: list[Outgoing] = []
        for record in batch:
            outcome = self._outcomes.of(record.payload, partial(self._filter, record.payload))
            # Kept before it is published: what later scans look back at.
            self._outcomes.write(outcome)
            outgoing += outcome.messages
        return outgoing

    def _filter(self, scan: Scan) -> ScanOutcome:
        workload = workload_of(scan, self._workloads)
        if workload is None:
            return _sent(_without_workload(scan))
        if not scan.candidates:
            return _sent(scan)
        store = as_scanned(self._store, scan, workload, self._without)
        evidence = gather_filters(store, self.name, scan, self._workloads, self._without)
        filtered = decide_filters(evidence, filter_config(workload, self._without), without=self._without)
        kept = [Reported(candidate) for candidate in (*filtered.passed, *filtered.escalated)]
        return _sent(
            replace(
                scan,
                candidates=filtered.passed,
                dropped=(*scan.dropped, *filtered.dropped),
                grown=filtered.escalated,
                share_factor=None,
            ),
            memory_rows(self.name, scan, kept),
        )


def _sent(scan: Scan, rows: MemoryRows = ()) -> ScanOutcome:
    return ScanOutcome(rows, tuple(scan_messages("filtered", scan)))


def _without_workload(scan: Scan) -> Scan:
    """Return a scan of which nothing is judged: only a worker that knows the workload could."""
    unknown = Decision("workload", False, code="unknown", subjects=(repr(scan.workload),))
    log.warning("scan dropped: %s", sentence(unknown))
    gone = tuple(Dropped(candidate, unknown) for candidate in scan.candidates)
    return replace(scan, candidates=(), dropped=(*scan.dropped, *gone), share_factor=None)
