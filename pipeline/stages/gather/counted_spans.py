"""Where there are data of a service: what a scan has to look at, after years of which little is known."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pipeline.analysis.detect.fitting import known_windows, runs_of
from pipeline.storage.interface import SeriesSource, Store

MOST_WINDOWS = 4096
"""Windows of one read."""

SHORT = 2
"""So many coarse windows in a row are looked at more closely."""


def counted_spans(
    store: Store, source: SeriesSource, service: str, start: float, end: float, resolution_s: float
) -> Iterator[tuple[float, float]]:
    """Yield the spans of [start, end) that have data, oldest first, read as they are asked for.

    Short ones are as exact as ``resolution_s``, as after a message from a dead clock. An end of a long one
    may be off by a coarse window.
    """
    coarse_s = max(1, math.ceil((end - start) / resolution_s / MOST_WINDOWS)) * resolution_s
    aligned = math.floor(start / coarse_s) * coarse_s
    matrix = store.series(source, service, aligned, end, coarse_s, () if source == "gcpu" else None)
    if source != "gcpu" and not matrix.names:
        return
    for first, last in runs_of(known_windows(matrix)):
        span = (max(start, aligned + first * coarse_s), min(end, aligned + last * coarse_s))
        if coarse_s > resolution_s and last - first <= SHORT:
            yield from counted_spans(store, source, service, *span, resolution_s)
        else:
            yield span
