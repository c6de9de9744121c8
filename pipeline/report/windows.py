"""The windows of the scan that found a regression, put together again from its event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.codec import fields
from pipeline.workloads import Workload


@dataclass(frozen=True, slots=True)
class ScanWindows:
    """Where the windows of a scan lie, in epoch seconds.

    ``analysis_end`` equals ``end`` if there is no extended window.
    """

    resolution_s: float
    start: float
    analysis_start: float
    analysis_end: float
    end: float


def scan_windows(event: Mapping[str, Any], workload: Workload) -> ScanWindows:
    """Return the windows that were scanned when the event was made.

    The scan ended at the last re-run boundary at or before the event's ``detected_time``.

    Raises:
        InvalidMessage: the event lacks a time, or it is wrong.
    """
    data = event["data"]
    detected, change = fields.moment(data, "detected_time"), fields.moment(data, "change_time")
    step = workload.rerun_interval_s
    end = math.floor(detected / step + 1e-6) * step
    if change >= end - workload.extended_s:  # detected at a time that is no boundary: keep the change inside
        end = math.ceil((change + workload.extended_s) / step) * step
    analysis_end = end - workload.extended_s
    analysis_start = analysis_end - workload.analysis_s
    return ScanWindows(
        resolution_s=workload.resolution_s,
        start=analysis_start - workload.historical_s,
        analysis_start=analysis_start,
        analysis_end=analysis_end,
        end=end,
    )
