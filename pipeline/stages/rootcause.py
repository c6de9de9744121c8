"""rootcause: deduplicated scans in, regression events out: detected with ranked suspects, updated, resolved.

It is the last to see a scan, with everything that was dropped on the way: so it writes the ledger.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from pipeline.codec.events import encode_event, regression_event, regression_id, update_event
from pipeline.codec.ledger import dropped_entries, ledger_columns, reported_entries
from pipeline.codec.lifecycle import regression_columns, update_columns
from pipeline.codec.scans import decode_scan
from pipeline.lifecycle import Update, confirm_fallbacks, decide_updates, find_fallbacks
from pipeline.model import Change, Outgoing, Record, Regression, Scan
from pipeline.rootcause import Cause, Gates, RankingConfig, find_causes
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.changes import recent_changes
from pipeline.stages.gather.lifecycle import FallbackContext, gather_lifecycle, lifecycle_config, with_changes
from pipeline.stages.gather.renamed import by_present_names
from pipeline.stages.gather.scanned import as_scanned
from pipeline.stages.gather.suspects import CauseEvidence, cause_config
from pipeline.storage.interface import Store
from pipeline.workloads import Workload, workload_of

log = logging.getLogger(__name__)

LEDGER_ROWS = 10_000
"""Most rows of the ledger in one insert: a scan of a large service drops hundreds of thousands."""

Changes = Callable[[], Sequence[Change]]
"""Returns the changes of a scan's service; read once, when they are first asked for."""


class RootcauseStage(Stage):
    """Finds the changes that may have caused each regression, reports it, and follows it from then on."""

    name = "rootcause"

    def __init__(
        self,
        *,
        store: Store,
        workloads: Sequence[Workload],
        gates: Gates | None = None,
        config: RankingConfig | None = None,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._store = store
        self._ranking = config
        self._without = without
        self._causes = CauseEvidence(store, gates)
        self._fallbacks = FallbackContext(store)
        self._workloads = {workload.name: workload for workload in workloads}
        self.inputs: Mapping[str, Decoder] = {"unique": decode_scan}

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Report every candidate that is left of each scan, and what has become of earlier regressions."""
        scans: list[Scan] = [record.payload for record in batch]
        events = [(scan.service, event) for scan in scans for event in self._judge(scan)]
        self._write_ledger(scans)
        content_type = (("content-type", b"application/cloudevents+json"),)
        return [Outgoing("regressions", service, event, content_type) for service, event in events]

    def _judge(self, scan: Scan) -> list[bytes]:
        """Return a scan's events. They are kept at once: the next scan of the batch asks for them."""
        workload = workload_of(scan, self._workloads)
        changes = cache(partial(recent_changes, by_present_names(self._store, scan), scan))
        regressions = self._explain(scan, workload, changes) if scan.candidates else []
        updates = self._follow(scan, workload, changes) if workload else []
        return self._record(scan, regressions, updates)

    def _explain(self, scan: Scan, workload: Workload | None, changes: Changes) -> list[Regression]:
        """Return the regressions of a scan with what is found about their causes."""
        causes: dict[tuple[str, str, str], Cause] = {}
        if workload is None:
            log.warning("no suspects sought: this worker does not know workload %s", scan.workload)
        else:
            config = cause_config(workload, self._ranking, self._without)
            for cluster in self._causes.gather(scan, workload, changes()):
                for one, cause in zip(cluster.candidates, find_causes(cluster, config), strict=True):
                    causes[one.metric_kind, one.metric, one.kind] = cause
        servers = self._causes.servers(scan)
        regressions = []
        for one in scan.candidates:
            cause = causes.get((one.metric_kind, one.metric, one.kind), Cause())
            regressions.append(
                Regression(
                    id=regression_id(scan.service, scan.workload, one, scan.end),
                    service=scan.service,
                    workload=scan.workload,
                    candidate=one,
                    detected_time=scan.end,
                    suspects=cause.suspects,
                    stacks=cause.stacks,
                    servers=servers,
                )
            )
        return regressions

    def _follow(self, scan: Scan, workload: Workload, changes: Changes) -> list[Update]:
        """Return what has become of the regressions that earlier scans reported."""
        config = lifecycle_config(workload)
        evidence = gather_lifecycle(as_scanned(self._store, scan, workload), scan, workload, config)
        found = find_fallbacks(evidence, config)
        # Gathered last, and for these alone: share factors read many series, changes carry diffs.
        found = self._fallbacks.with_share_factors(found, scan, workload, config)
        confirmed = confirm_fallbacks(evidence, found, config)
        return decide_updates(evidence, with_changes(confirmed, workload, changes), config)

    def _record(
        self, scan: Scan, regressions: Sequence[Regression], updates: Sequence[Update]
    ) -> list[bytes]:
        """Store regressions and updates, and return their events."""
        detected = [encode_event(regression_event(regression, scan)) for regression in regressions]
        updated = [encode_event(update_event(update)) for update in updates]
        if regressions:
            self._store.insert("regressions", regression_columns(regressions, detected))
        if updates:
            self._store.insert("updates", update_columns(updates, updated))
        return [*detected, *updated]

    def _write_ledger(self, scans: Sequence[Scan]) -> None:
        """Write the ledger; reported ones last, so that they win where a series was dropped as well."""
        entries = [
            *(entry for scan in scans for entry in dropped_entries(scan)),
            *(entry for scan in scans for entry in reported_entries(scan)),
        ]
        for first in range(0, len(entries), LEDGER_ROWS):
            self._store.insert("ledger", ledger_columns(entries[first : first + LEDGER_ROWS]))
