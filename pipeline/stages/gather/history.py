"""What a stage passed on in earlier scans, kept in the store so that a restart changes nothing.

A stage remembers before it publishes, and leaves out what the present scan and later ones remembered. Scans
follow each other by the watermark that each of them waited for, as detect runs them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.analysis.dedup.evidence import Reported
from pipeline.messages.events import regression_id
from pipeline.messages.records import columns_of
from pipeline.model import Candidate, Scan
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import RowQuery, Store

MemoryRows = tuple[tuple[str, Mapping[str, Sequence[Any]]], ...]
"""Rows of the table ``memory`` as part of a scan's outcome; empty without any."""

MEMBERS = "dedup members"
"""Stage under which the members of groups are kept, besides the regressions that stand for them."""


def read_history(
    store: Store,
    stage: str,
    scan: Scan,
    workloads: Mapping[str, Workload],
    *,
    same_workload: bool,
    back_s: float = 0.0,
) -> list[Reported]:
    """Return what ``stage`` passed on in earlier scans and this scan still sees, oldest first.

    Args:
        store: Where it is kept.
        stage: Name of the stage.
        scan: The present scan.
        workloads: What is known of how long each workload waits for late data.
        same_workload: Whether to leave other workloads out.
        back_s: For how long before the scan's own windows as well.
    """

    def turn(workload: str, end: float) -> tuple[float, str]:
        known = workloads.get(workload)
        return end + (known.wait_s if known else 0.0), workload

    def seen_until(workload: str, end: float) -> float:
        known = workloads.get(workload)
        return end - known.extended_s if known else math.inf

    def reported_of(row: Mapping[str, Any]) -> Reported:
        candidate = Candidate(
            metric_kind=row["metric_kind"],
            metric=row["metric"],
            kind=row["kind"],
            change_time=row["time"],
            before=row["before"],
            after=row["after"],
            p_value=0.0,
            statistic=0.0,
        )
        # Its id is of the name under which it was reported.
        named = replace(candidate, metric=row.get("stored_metric", row["metric"]))
        own = regression_id(scan.service, row["workload"], named, row["scan_end"])
        seen = seen_until(row["workload"], row["scan_end"])
        leads, onset = row["regression"] == own, tuple(row["change_time_interval"]) or None
        return Reported(candidate, row["regression"], row["scan_end"], seen, leads=leads, onset=onset)

    equal = {"stage": stage} | ({"workload": scan.workload} if same_workload else {})
    rows = store.rows(RowQuery("memory", scan.service, scan.start - back_s, scan.end, equal=equal))
    return [
        reported_of(row)
        for row in rows
        if turn(row["workload"], row["scan_end"]) < turn(scan.workload, scan.end)
    ]


def memory_rows(stage: str, scan: Scan, passed: Sequence[Reported]) -> MemoryRows:
    """Return the rows of ``memory`` by which later scans know what ``stage`` passes on of a scan."""
    if not passed:
        return ()
    columns = columns_of(
        {
            "stage": stage,
            "service": scan.service,
            "workload": scan.workload,
            "metric_kind": reported.candidate.metric_kind,
            "metric": reported.candidate.metric,
            "kind": reported.candidate.kind,
            "time": reported.candidate.change_time,
            "before": reported.candidate.before,
            "after": reported.candidate.after,
            "scan_end": scan.end,
            "regression": reported.event,
            "change_time_interval": list(reported.candidate.change_time_interval or ()),
        }
        for reported in passed
    )
    return (("memory", columns),)
