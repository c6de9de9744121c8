"""Data of a plot: the windows of a scan, and one series over them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.messages import fields
from pipeline.model import FloatArray, Scan, SeriesKey, SeriesMatrix
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.workloads import Workload


@dataclass(frozen=True, slots=True)
class ScanWindows:
    """The windows of a scan, in epoch seconds.

    ``analysis_end`` equals ``end`` if there is no extended window.
    """

    resolution_s: float
    start: float
    analysis_start: float
    analysis_end: float
    end: float


@dataclass(frozen=True, slots=True)
class DrawnSeries:
    """One drawn series. ``values`` is NaN where a window has no data."""

    times: FloatArray  # (windows,) start of each
    values: FloatArray  # (windows,)
    ratio: bool  # gCPU, shown in per cent; otherwise the metric's own unit


def line_of(series: SeriesMatrix, key: SeriesKey) -> DrawnSeries | None:
    """Return one series of a matrix; None if the matrix lacks it."""
    keys = series.series
    if key not in keys:
        return None
    row = keys.index(key)
    empty = np.full(series.totals.shape, np.nan)
    values: FloatArray = np.divide(series.samples[row], series.totals, out=empty, where=series.totals > 0)
    times: FloatArray = series.start + np.arange(len(values), dtype=np.float64) * series.resolution_s
    return DrawnSeries(times=times, values=values, ratio=is_gcpu(key.kind))


def windows_of(scan: Scan, workload: Workload) -> ScanWindows:
    """Return the windows of a scan."""
    return ScanWindows(
        resolution_s=workload.resolution_s,
        start=scan.start,
        analysis_start=scan.analysis_start,
        analysis_end=scan.analysis_end,
        end=scan.end,
    )


def _resolution_s(data: Mapping[str, Any], workload: Workload) -> float:
    """Return the length of windows: for costlier requests one period, in which the release began."""
    edges = data.get("change_time_interval")
    if not data.get("requests") or not isinstance(edges, list) or len(edges) != 2:
        return workload.resolution_s
    begun, end = map(fields.to_moment, edges)
    return max(workload.resolution_s, end - begun)


def scan_windows(event: Mapping[str, Any], workload: Workload) -> ScanWindows:
    """Return the windows that were scanned when the event was made.

    An event of an older version lacks them: its scan ended at the last re-run boundary at or before
    ``detected_time``.

    Raises:
        InvalidMessage: the event lacks a time, or it is wrong.
    """
    data = event["data"]
    if isinstance(scan := data.get("scan"), Mapping):
        names = ("start", "analysis_start", "analysis_end", "end")
        return ScanWindows(_resolution_s(data, workload), *(fields.moment(scan, name) for name in names))
    detected, change = fields.moment(data, "detected_time"), fields.moment(data, "change_time")
    step = workload.rerun_interval_s
    end = math.floor(detected / step + 1e-6) * step
    if change >= end - workload.extended_s:  # detected between boundaries: keep the change inside
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
