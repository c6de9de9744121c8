"""rootcause: deduplicated scans in, regression events out: detected with ranked suspects, updated, resolved.

It is the last to see a scan, with everything that was dropped on the way: so it writes the ledger.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pipeline.codec.events import encode_event, regression_event, regression_id, update_event
from pipeline.codec.ledger import dropped_entries, ledger_columns, reported_entries
from pipeline.codec.scans import decode_scan
from pipeline.model import Outgoing, Record, Regression, Scan
from pipeline.rootcause.gates import Gates
from pipeline.rootcause.ranking import RankingConfig
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.lifecycle import Follower, update_columns
from pipeline.stages.gather.suspects import Findings, SuspectFinder
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

log = logging.getLogger(__name__)

LEDGER_ROWS = 10_000
"""Most rows of the ledger in one insert: a scan of a large service drops hundreds of thousands."""


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
    ) -> None:
        self._store = store
        self._follower = Follower(store)
        self._finder = SuspectFinder(store, gates=gates, config=config)
        self._workloads = {workload.name: workload for workload in workloads}
        self.inputs: Mapping[str, Decoder] = {"unique": decode_scan}

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Report every candidate that is left of each scan, and what has become of earlier regressions."""
        events = [(scan.service, event) for scan in _scans(batch) for event in self._judge(scan)]
        self._note(_scans(batch))
        content_type = (("content-type", b"application/cloudevents+json"),)
        return [Outgoing("regressions", service, event, content_type) for service, event in events]

    def _judge(self, scan: Scan) -> list[bytes]:
        """Return a scan's events. They are kept at once: the next scan of the batch asks for them."""
        workload = self._workloads.get(scan.workload)
        regressions = self._explain(scan, workload) if scan.candidates else []
        detected = [encode_event(regression_event(regression, scan)) for regression in regressions]
        updates = self._follower.follow(scan, workload) if workload else []
        told = [encode_event(update_event(update)) for update in updates]
        if regressions:
            self._keep(regressions, detected)
        if updates:
            self._store.insert("updates", update_columns(updates, told))
        return [*detected, *told]

    def _note(self, scans: Sequence[Scan]) -> None:
        """Write the ledger; reported ones last, so that they win where a series was dropped as well."""
        entries = [
            *(entry for scan in scans for entry in dropped_entries(scan)),
            *(entry for scan in scans for entry in reported_entries(scan)),
        ]
        for first in range(0, len(entries), LEDGER_ROWS):
            self._store.insert("ledger", ledger_columns(entries[first : first + LEDGER_ROWS]))

    def _explain(self, scan: Scan, workload: Workload | None) -> list[Regression]:
        found: Sequence[Findings] = [Findings()] * len(scan.candidates)
        if workload is None:
            log.warning("no suspects sought: this worker does not know workload %s", scan.workload)
        else:
            found = self._finder.find(scan, workload)
        servers = self._finder.servers(scan)
        return [
            Regression(
                id=regression_id(scan.service, scan.workload, candidate, scan.end),
                service=scan.service,
                workload=scan.workload,
                candidate=candidate,
                detected_time=scan.end,
                suspects=one.suspects,
                stacks=one.stacks,
                servers=servers,
            )
            for candidate, one in zip(scan.candidates, found, strict=True)
        ]

    def _keep(self, regressions: Sequence[Regression], events: Sequence[bytes]) -> None:
        candidates = [regression.candidate for regression in regressions]
        self._store.insert(
            "regressions",
            {
                "id": [regression.id for regression in regressions],
                "service": [regression.service for regression in regressions],
                "workload": [regression.workload for regression in regressions],
                "metric_kind": [candidate.metric_kind for candidate in candidates],
                "metric": [candidate.metric for candidate in candidates],
                "time": [candidate.change_time for candidate in candidates],
                "detected_time": [regression.detected_time for regression in regressions],
                "before": [candidate.before for candidate in candidates],
                "after": [candidate.after for candidate in candidates],
                "delta": [candidate.delta for candidate in candidates],
                "p_value": [candidate.p_value for candidate in candidates],
                "event": [event.decode() for event in events],
            },
        )


def _scans(batch: Sequence[Record]) -> list[Scan]:
    return [record.payload for record in batch]
