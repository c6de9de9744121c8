"""dedup: scans in, the same scans out with one candidate per cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pipeline.analysis.dedup.decision import decide
from pipeline.messages.outcomes import ScanOutcome
from pipeline.messages.scans import decode_scan, scan_messages
from pipeline.model import Outgoing, Record, Scan
from pipeline.settings.workloads import Workload, workload_of
from pipeline.stages.abilities import Skipping
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.deduplication import dedup_config, gather_dedup
from pipeline.stages.gather.history import MEMBERS, memory_rows
from pipeline.stages.gather.release_effects import dated_by_releases
from pipeline.stages.gather.scan_store import as_scanned
from pipeline.stages.gather.scopes import with_scopes
from pipeline.stages.outcomes import Outcomes
from pipeline.storage.interface import Store


class DedupStage(Stage, Skipping):
    """Merges what one cause made rise, within a scan and across scans."""

    name = "dedup"

    def __init__(self, *, store: Store, workloads: Sequence[Workload], without: Without = NOTHING) -> None:
        self._store = store
        self._outcomes = Outcomes(store, self.name)
        self._workloads = {workload.name: workload for workload in workloads}
        self._without = without
        self.inputs: Mapping[str, Decoder] = {"filtered": decode_scan}

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Deduplicate each scan, in order."""
        outgoing: list[Outgoing] = []
        for record in batch:
            scan: Scan = record.payload
            if not scan.candidates:  # nothing to decide: what filter kept of the scan is all there is
                outgoing += scan_messages("unique", scan)
                continue
            outcome = self._outcomes.of(scan, partial(self._dedup, scan))
            # Kept before it is published: what later scans look back at.
            self._outcomes.write(outcome)
            outgoing += outcome.messages
        return outgoing

    def _dedup(self, scan: Scan) -> ScanOutcome:
        workload = workload_of(scan, self._workloads)
        if workload is None:
            return ScanOutcome(messages=tuple(scan_messages("unique", scan)))
        scan = dated_by_releases(scan, scan.resolution_s or workload.resolution_s)
        config = dedup_config(workload, self._without)
        store = as_scanned(self._store, scan, workload, self._without)
        evidence = gather_dedup(store, scan, workload, self._workloads, config)
        decision = decide(evidence, config)
        unique = replace(
            scan,
            candidates=with_scopes(store, scan, decision.unique, workload),
            joined=tuple(decision.joined),
            dropped=(*scan.dropped, *decision.dropped),
        )
        return ScanOutcome(
            (
                *memory_rows(self.name, scan, decision.reported),
                *memory_rows(MEMBERS, scan, decision.members),
            ),
            tuple(scan_messages("unique", unique)),
        )
