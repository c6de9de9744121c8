"""Width of windows and begin of the history, fitted to the times at which a service has data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pipeline.analysis.detect.scan_config import WindowIndexes
from pipeline.model import BoolArray, SeriesMatrix
from pipeline.model.metric_kind import is_gcpu

_LEAST_GAPS = 8
"""Fewest gaps between data whose middle half gives an interval."""


def known_windows(matrix: SeriesMatrix) -> BoolArray:
    """Return which windows have data of any series: (windows,)."""
    has_data = matrix.totals > 0
    if not matrix.names or is_gcpu(matrix.kinds[0]):  # counts are known wherever there are samples
        return np.asarray(has_data)
    return np.asarray(has_data & ~np.isnan(matrix.samples).all(axis=0))


def runs_of(has_data: BoolArray) -> list[tuple[int, int]]:
    """Return runs of windows with data: the first window of each, and the one after its last."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], has_data, [False])).astype(np.int8)))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def widening(has_data: BoolArray, most: int) -> int:
    """Return how many windows must be merged so that each has data: at least 1, at most ``most``.

    That is the interval at which data come, the mean of the middle half of the gaps between them:
    an outage does not widen windows, nor does a message that came late.

    Args:
        has_data: (windows,) where there is data.
        most: Windows that may be one.
    """
    gaps = np.sort(np.diff(np.flatnonzero(has_data)))
    if len(gaps) < _LEAST_GAPS:
        return 1
    quarter = len(gaps) // 4
    interval = float(gaps[quarter : len(gaps) - quarter].mean())
    return max(1, min(math.ceil(interval), most))


def history_start(has_data: BoolArray, latest: int) -> int:
    """Return the window in which a history begins: the first with data, but ``latest`` at the latest."""
    return min(int(has_data.argmax()), latest) if has_data.any() else latest


def over_gaps(windows: WindowIndexes, has_data: BoolArray) -> WindowIndexes:
    """Return windows of a scan that hold as much time with data as they are long, gaps left out.

    No change comes or goes away while a service is closed: what began at the end of a day is judged by the
    next day's data. A gap is what lasts for longer than data usually are apart. Where gaps would take half of
    the history, the windows stay as they are: then most of what a change is compared with would be gone.

    Args:
        windows: By the clock.
        has_data: (windows,) where there is data.
    """
    apart = widening(has_data, len(has_data))
    columns = np.arange(len(has_data))
    latest = np.maximum.accumulate(np.where(has_data, columns, -apart))
    # From each window on, how much time passes in which there could be data.
    passes = np.cumsum((columns - latest < apart)[::-1].astype(np.int64))[::-1]

    def begins(index: int) -> int:
        if index == windows.end:
            return index
        long_enough = int(np.searchsorted(-passes, index - windows.end, side="right"))
        return min(long_enough - 1, index)

    analysis = begins(windows.analysis)
    if analysis - windows.history < (windows.analysis - windows.history) / 2:
        return windows
    return replace(windows, analysis=analysis, extended=begins(windows.extended))
