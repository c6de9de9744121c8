"""The history of a service's scans: where it has data, how far it was counted and what was scanned of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from pipeline.analysis.detect.fitting import known_windows, runs_of
from pipeline.analysis.detect.schedule import Cadence, Counted, ServiceProgress, first_boundary
from pipeline.model import Progress
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.streams import SCANNED_TOPICS
from pipeline.storage.interface import RowQuery, SeriesQuery, SeriesSource, Store

MOST_WINDOWS = 4096
"""Windows of one read."""

SHORT = 2
"""So many coarse windows in a row are looked at more closely."""


class ScanHistory:
    """Reads what the store holds of a service's progress.

    Args:
        store: With counts and scans.
        streams: By topic, the name of its log.
        workloads: All that scan, by name.
        window_s: Width of the windows in which samples are counted.
    """

    def __init__(
        self, store: Store, streams: Mapping[str, str], workloads: Mapping[str, Workload], window_s: float
    ) -> None:
        self._store = store
        self._streams = streams
        self._workloads = workloads
        self._window_s = window_s

    def counted(self, service: str) -> Counted:
        """Return what says where a service has data for a workload; see ``counted_spans``."""
        return partial(self._counted, service)

    def restore(
        self, service: str, progress: Sequence[Progress], cadences: Sequence[Cadence], now: float
    ) -> ServiceProgress:
        """Start with what the store holds; a service new to it is scanned from its earliest data on.

        A partition of which the store has data holds scans back until it speaks, or turns out to be idle:
        else the first to speak after a restart would have scans run without what the others still bring.
        """
        state = ServiceProgress()
        for topic, table in SCANNED_TOPICS.items():
            last_s = self._window_s if topic == "profiles" else 0.0
            extents = self._store.extents([table], self._streams[topic], service)[table]
            for partition, extent in extents.items():
                if partition[0] == topic:  # a replay's progress counts as that of the topic it went to
                    state.restore(partition, extent.last_time + last_s, now)
        earliest = min(step.earliest for step in progress)
        scanned: dict[str, float] = {}
        for row in self._store.rows(RowQuery("scans", service)):
            scanned[row["workload"]] = max(scanned.get(row["workload"], 0.0), row["time"])
        for cadence in cadences:
            if cadence.workload in scanned:
                state.made(cadence.workload, scanned[cadence.workload])
            else:
                first = first_boundary(cadence, earliest, self.counted(service))
                state.scanned[cadence.workload] = first
        return state

    def _counted(
        self, service: str, workload: str, start: float, end: float
    ) -> Iterator[tuple[float, float]]:
        series, resolution_s = self._workloads[workload].series, self._workloads[workload].resolution_s
        return counted_spans(self._store, series, service, start, end, resolution_s)


def counted_spans(
    store: Store, source: SeriesSource, service: str, start: float, end: float, resolution_s: float
) -> Iterator[tuple[float, float]]:
    """Yield the spans of [start, end) that have data, oldest first, read as they are asked for.

    Short ones are as exact as ``resolution_s``, as after a message from a dead clock. An end of a long one
    may be off by a coarse window.
    """
    coarse_s = max(1, math.ceil((end - start) / resolution_s / MOST_WINDOWS)) * resolution_s
    aligned = math.floor(start / coarse_s) * coarse_s
    matrix = store.series(
        SeriesQuery(source, service, aligned, end, coarse_s, () if source == "gcpu" else None)
    )
    if source != "gcpu" and not matrix.names:
        return
    for first, last in runs_of(known_windows(matrix)):
        span = (max(start, aligned + first * coarse_s), min(end, aligned + last * coarse_s))
        if coarse_s > resolution_s and last - first <= SHORT:
            yield from counted_spans(store, source, service, *span, resolution_s)
        else:
            yield span
