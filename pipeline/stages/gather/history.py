"""Candidates that a stage passed on in earlier scans, stored so that a restart changes nothing.

A stage stores them before it publishes, and ignores those of the present scan and of later ones. Scans are
ordered by the watermark that each of them waited for, as detect runs them.
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
"""Rows of the table ``memory`` that a scan adds; may be empty."""

MEMBERS = "dedup members"
"""Stage under which the members of groups are stored, besides the regressions that lead the groups."""


def read_history(
    store: Store,
    stage: str,
    scan: Scan,
    workloads: Mapping[str, Workload],
    *,
    same_workload: bool,
    back_s: float = 0.0,
) -> list[Reported]:
    """Return what ``stage`` passed on in earlier scans within this scan's windows, oldest first.

    Args:
        store: Holds it.
        stage: Name of the stage.
        scan: The present scan.
        workloads: By name, for the time that each one waits for late data.
        same_workload: True to leave other workloads out.
        back_s: Seconds before the scan's own windows that are included.
    """

    def turn(workload: str, end: float) -> tuple[float, str]:
        config = workloads.get(workload)
        return end + (config.wait_s if config else 0.0), workload

    def seen_until(workload: str, end: float) -> float:
        config = workloads.get(workload)
        return end - config.extended_s if config else math.inf

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
        # The id is derived from the name under which it was reported.
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
    """Return the rows of ``memory`` from which later scans read what ``stage`` passed on in a scan."""
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
