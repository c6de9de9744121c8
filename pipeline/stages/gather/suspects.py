"""What root-cause analysis asks for: series, stacks and set-up metrics around the regressions of a scan."""

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
    """Return what a workload says of causes, without some steps."""
    return CauseConfig(
        resolution_s=workload.resolution_s,
        lookback_s=workload.lookback_s,
        history_s=HISTORY_S,
        ranking=ranking or RankingConfig(),
        without=without,
    )


class CauseEvidence:
    """Gathers the evidence against the changes of a service, for all regressions of a scan at once.

    It keeps the words of changes from scan to scan, which it would read again.
    """

    def __init__(self, store: Store, gates: Gates | None = None) -> None:
        self._store = store
        self._gates = gates or {}
        self._words = ChangeWords()

    def gather(self, scan: Scan, workload: Workload, changes: Sequence[Change]) -> Iterator[ClusterEvidence]:
        """Yield the evidence about a scan's candidates, those of one time together.

        One cluster's stacks are in memory at a time: those of a large service take hundreds of MB.

        Args:
            scan: With the candidates.
            workload: How it was scanned.
            changes: Those of ``recent_changes``.
        """
        store = as_scanned(self._store, scan, workload)
        common = self._common(store, scan, workload, changes)
        for cluster in cluster_by_time(scan.candidates, TOLERANCE_WINDOWS * workload.resolution_s):
            if workload.series == "service":
                asked = any(request_types(one) for one in cluster)
                served = stacks_around(store, scan, cluster, workload) if asked else None
                yield ClusterEvidence(common, tuple(cluster), None, served=served)
                continue
            stacks = stacks_around(store, scan, cluster, workload)
            days = stacks_on_earlier_days(store, scan, cluster, workload, known=stacks.stacks)
            yield ClusterEvidence(common, tuple(cluster), stacks, days)

    def servers(self, scan: Scan) -> float | None:
        """Return how many servers a service ran on when a scan ended, where a set-up metric says so."""
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
        asked = sorted({c.series for c in scan.candidates})
        span = (scan.service, scan.start, scan.end, workload.resolution_s)
        return ScanEvidence(
            scan=scan,
            announced=tuple(announced),
            history=history,
            # What many hosts announced is one text: as many copies would make its own words common.
            texts=self._words.texts(scan.service, history),
            gates=self._gates,
            series=store.series(SeriesQuery(workload.series, *span, asked)),
            setup=store.series(SeriesQuery("setup", *span)),
            trials=trial_findings(store, scan.service, scan.end - HISTORY_S, scan.end),
        )
