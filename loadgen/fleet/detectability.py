"""Visibility of injected changes: their first data, and their size against their series' sampling noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from loadgen.fleet.timeline import Timeline
from pipeline.model import FloatArray
from pipeline.model.units import DAY_S

AFTER_S = 10 * 3600.0
"""What is compared: ten hours, the analysis and extended window of FrontFaaS (FBDetect Table 3) ..."""

BEFORE_S = 2 * DAY_S
"""... with two days before."""


def since_seen(row: Mapping[str, Any], totals: FloatArray, timeline: Timeline) -> Mapping[str, Any]:
    """Return a truth row that starts with the first data after its change.

    A change deployed while a service is closed, or while nothing arrives, shows with the next samples; no
    data can date it earlier. Changes that end or grow in that time stay as they are.

    Args:
        row: The truth.
        totals: (windows,) of the service.
        timeline: The windows.
    """
    change = int((row["start"] - timeline.start) // timeline.window_s)
    silent = np.flatnonzero(totals[change:])[:1]
    if not len(silent) or not silent[0]:
        return row
    seen = timeline.start + (change + int(silent[0])) * timeline.window_s
    ends = [row[key] for key in ("end", "ramp_end") if row.get(key) is not None]
    return row if any(end <= seen for end in ends) else {**row, "start": seen}


def with_standard_error(
    row: Mapping[str, Any],
    samples: FloatArray,
    totals: FloatArray,
    dispersion: FloatArray,
    timeline: Timeline,
) -> Mapping[str, Any]:
    """Return a truth row with the standard error of its change, as a gCPU ratio.

    The error comes from sampling and from the servers' variance (FBDetect, Expression 7): no method can do
    better.

    Args:
        row: The truth.
        samples: (windows,) of the main series.
        totals: (windows,) of the service.
        dispersion: (windows,) by which the variance of counts exceeds their mean, relative.
        timeline: The windows.
    """
    change = int((row["start"] - timeline.start) / timeline.window_s)
    before = slice(max(change - round(BEFORE_S / timeline.window_s), 0), change)
    after = slice(change, change + round(AFTER_S / timeline.window_s))
    variance = 0.0
    for span in (before, after):
        total = float(totals[span].sum())
        if not total:
            return row
        share = max(float(samples[span].sum()), 1.0) / total
        spread = 1 + float(dispersion[span].mean())
        variance += share * max(1 - share, 0.0) * spread / total
    return {**row, "standard_error": math.sqrt(variance)}
