"""What a stage passed on in earlier scans, kept in the store so that a restart changes nothing.

A stage remembers before it publishes, and leaves out what the present scan and later ones remembered; so
a scan that comes again after a crash is judged exactly as the first time. Scans follow each other by the
watermark that each of them waited for, as detect runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.model import Candidate, Scan
from pipeline.storage.interface import Store
from pipeline.workloads import Workload


def recall(
    store: Store, stage: str, scan: Scan, workloads: Mapping[str, Workload], *, same_workload: bool
) -> list[Candidate]:
    """Return what ``stage`` passed on in earlier scans and this scan still sees, oldest first.

    Args:
        store: Where it is kept.
        stage: Name of the stage.
        scan: The present scan.
        workloads: What is known of how long each workload waits for late data.
        same_workload: Whether to leave other workloads out.
    """

    def turn(workload: str, end: float) -> tuple[float, str]:
        known = workloads.get(workload)
        return end + (known.wait_s if known else 0.0), workload

    equal = {"stage": stage} | ({"workload": scan.workload} if same_workload else {})
    rows = store.rows("memory", scan.service, scan.start, scan.end, **equal)
    return [
        Candidate(
            metric_kind=row["metric_kind"],
            metric=row["metric"],
            kind=row["kind"],
            change_time=row["time"],
            before=row["before"],
            after=row["after"],
            p_value=0.0,
            statistic=0.0,
        )
        for row in rows
        if turn(row["workload"], row["scan_end"]) < turn(scan.workload, scan.end)
    ]


def remember(store: Store, stage: str, scans: Sequence[tuple[Scan, Sequence[Candidate]]]) -> None:
    """Keep what ``stage`` passes on of each scan; repeating it changes nothing."""
    rows = [(scan, candidate) for scan, candidates in scans for candidate in candidates]
    if not rows:
        return
    store.insert(
        "memory",
        {
            "stage": [stage] * len(rows),
            "service": [scan.service for scan, _ in rows],
            "workload": [scan.workload for scan, _ in rows],
            "metric_kind": [candidate.metric_kind for _, candidate in rows],
            "metric": [candidate.metric for _, candidate in rows],
            "kind": [candidate.kind for _, candidate in rows],
            "time": [candidate.change_time for _, candidate in rows],
            "before": [candidate.before for _, candidate in rows],
            "after": [candidate.after for _, candidate in rows],
            "scan_end": [scan.end for scan, _ in rows],
        },
    )
