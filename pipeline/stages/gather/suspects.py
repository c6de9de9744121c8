"""Evidence for root-cause analysis: series, stacks and set-up metrics around the regressions of a scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.analysis.dedup.evidence import TOLERANCE_WINDOWS, cluster_by_time
from pipeline.analysis.rootcause import (
    SERVERS,
    CauseConfig,
    ClusterEvidence,
    Gates,
    RankingConfig,
    ScanEvidence,
    first_announcements,
    latest_value,
    request_types,
)
from pipeline.model import Change, Scan, SeriesKey
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.change_findings import trial_findings
from pipeline.stages.gather.changes import HISTORY_S, ChangeWords
from pipeline.stages.gather.evidence import stacks_around, stacks_on_earlier_days
from pipeline.stages.gather.scan_store import as_scanned
from pipeline.storage.interface import SeriesQuery, Store


def cause_config(
    workload: Workload, ranking: RankingConfig | None = None, without: frozenset[str] = frozenset()
) -> CauseConfig:
    """Return a workload's configuration of root-cause analysis, without some steps."""
    return CauseConfig(
        resolution_s=workload.resolution_s,
        lookback_s=workload.lookback_s,
        history_s=HISTORY_S,
        ranking=ranking or RankingConfig(),
        without=without,
    )


class CauseEvidence:
    """Reader of the evidence against the changes of a service, for all regressions of a scan together.

    It keeps the words of changes from scan to scan.
    """

    def __init__(self, store: Store, gates: Gates | None = None) -> None:
        self._store = store
        self._gates = gates or {}
        self._words = ChangeWords()

    def gather(self, scan: Scan, workload: Workload, changes: Sequence[Change]) -> Iterator[ClusterEvidence]:
        """Yield the evidence about a scan's candidates, grouped by time.

        One cluster's stacks are in memory at a time: those of a large service take hundreds of MB.

        Args:
            scan: The scan with its candidates.
            workload: The scan's workload.
            changes: The changes from ``recent_changes``.
        """
        store = as_scanned(self._store, scan, workload)
        common = self._common(store, scan, workload, changes)
        for cluster in cluster_by_time(scan.candidates, TOLERANCE_WINDOWS * workload.resolution_s):
            if workload.series == "service":
                has_requests = any(request_types(candidate) for candidate in cluster)
                served = stacks_around(store, scan, cluster, workload) if has_requests else None
                yield ClusterEvidence(common, tuple(cluster), None, served=served)
                continue
            stacks = stacks_around(store, scan, cluster, workload)
            days = stacks_on_earlier_days(store, scan, cluster, workload, known=stacks.stacks)
            yield ClusterEvidence(common, tuple(cluster), stacks, days)

    def servers(self, scan: Scan) -> float | None:
        """Return the number of servers of a service at the end of a scan, from a set-up metric; else None."""
        span_s = max(scan.end - scan.start, 1.0)
        return latest_value(
            self._store.series(
                SeriesQuery(
                    "setup", scan.service, scan.start, scan.end, span_s / 100, [SeriesKey("service", SERVERS)]
                )
            )
        )

    def _common(
        self, store: Store, scan: Scan, workload: Workload, announced: Sequence[Change]
    ) -> ScanEvidence:
        history = first_announcements(announced)
        candidate_series = sorted({c.series for c in scan.candidates})
        span = (scan.service, scan.start, scan.end, workload.resolution_s)
        return ScanEvidence(
            scan=scan,
            announced=tuple(announced),
            history=history,
            # A change that many hosts announced is one text: copies would make its words look common.
            texts=self._words.texts(scan.service, history),
            gates=self._gates,
            series=store.series(SeriesQuery(workload.series, *span, candidate_series)),
            setup=store.series(SeriesQuery("setup", *span)),
            trials=trial_findings(store, scan.service, scan.end - HISTORY_S, scan.end),
        )
