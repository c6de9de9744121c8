"""Rows that detect keeps of a scan."""

from __future__ import annotations

from typing import Any

from pipeline.messages.records import plain
from pipeline.model import Scan


def scan_row(scan: Scan, unstable_names: int = 0) -> dict[str, Any]:
    """Return the row of ``scans``: that the scan was made, and how much it found."""
    return {
        "service": scan.service,
        "workload": scan.workload,
        "time": scan.end,
        "series": scan.series,
        "candidates": len(scan.candidates),
        "unstable_names": unstable_names,
    }


def unjudged_rows(scan: Scan) -> list[dict[str, Any]]:
    """Return the rows of ``unjudged``: what the scan could not judge, by reason."""
    whose = {"service": scan.service, "workload": scan.workload, "time": scan.end}
    return [{**whose, **plain(one)} for one in scan.unjudged]
