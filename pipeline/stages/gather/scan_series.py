"""The series of a scan: windows fitted to the data, metrics chosen by direction and name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.analysis.detect.fitting import history_start, known_windows, over_gaps, widening
from pipeline.analysis.detect.matrix import select_rows
from pipeline.analysis.detect.metric_direction import worse_direction
from pipeline.analysis.detect.scan_config import WindowIndexes
from pipeline.model import BoolArray, MetricMetadata, SeriesKey, SeriesMatrix, Unjudged
from pipeline.settings.workloads import Workload, unknown_direction
from pipeline.storage.interface import RowQuery, SeriesQuery, Store

ROLLED_WINDOWS = 5
"""Least number of counted windows per window of scans for which rollups are stored: fewer save too little."""


@dataclass(frozen=True, slots=True)
class ScanSeries:
    """The series and windows of one scan."""

    workload: Workload  # with the windows of this scan
    matrix: SeriesMatrix  # all series, from the lead before the history on
    windows: WindowIndexes  # the scan's windows as indexes into the matrix
    undirected: tuple[str, ...] = ()  # metrics left out, as the direction in which they get worse is unknown

    @property
    def is_empty(self) -> bool:
        """True if the workload scans metrics and the service has none for it."""
        return self.workload.series == "service" and not (self.matrix.names or self.undirected)


class ScanReader:
    """Reader of the series of scans.

    Args:
        store: Holds the counts of all services.
        workloads: All workloads that scan, by name.
        window_s: Width of the windows in which samples are counted.
    """

    def __init__(self, store: Store, workloads: Mapping[str, Workload], window_s: float) -> None:
        self._store = store
        self._workloads = workloads
        self._window_s = window_s

    def gather_series(self, service: str, workload: Workload, end: float, *, with_lead: bool) -> ScanSeries:
        """Return the series of a workload's scan of a service that ends at ``end``.

        ``with_lead`` adds the time before the history that steps are compared with.
        """
        declared = workload
        if workload.is_fitted:
            workload = fit_workload(self._store, service, workload, end)
        lead_s = workload.lead_s if with_lead else 0.0
        rolls_up = workload.series == "gcpu" and workload.resolution_s >= ROLLED_WINDOWS * self._window_s
        start = end - workload.span_s - lead_s
        matrix = self._store.series(
            SeriesQuery(workload.series, service, start, end, workload.resolution_s, rolls_up=rolls_up)
        )
        undirected: tuple[str, ...] = ()
        if workload.series == "service":
            everything = [*self._workloads.values()]
            matrix, undirected = choose_metrics(self._store, service, matrix, declared, everything)
        return ScanSeries(workload, matrix, _windows(workload, matrix, lead_s), undirected)


def _windows(workload: Workload, matrix: SeriesMatrix, lead_s: float) -> WindowIndexes:
    """Return the windows of a scan as indexes into a matrix, which begins with the lead."""
    columns = (workload.historical_s, workload.historical_s + workload.analysis_s, workload.span_s)
    analysis, extended, last = (round((lead_s + c) / workload.resolution_s) for c in columns)
    lead = round(lead_s / workload.resolution_s)
    return over_gaps(WindowIndexes(analysis, extended, last, history=lead), known_windows(matrix))


def fit_workload(store: Store, service: str, workload: Workload, end: float) -> Workload:
    """Return a workload with the windows of the scan of a service that ends at ``end``.

    Windows and all spans widen if data come less often, so that a scan has as many windows with data as the
    workload requires. The history is as long as the data, between the workload's least and most.
    """
    longest = _longest(workload)
    most = round((workload.resolution_most_s or workload.resolution_s) / workload.resolution_s)
    has_data = _known(store, service, longest, end)
    times = widening(has_data, most)
    if times > 1:
        workload = workload.widened(times)
        longest = _longest(workload)
        has_data = _known(store, service, longest, end)
    spare_s = longest.historical_s - workload.historical_s
    begin = history_start(has_data, round(spare_s / workload.resolution_s))
    return workload.with_history(longest.historical_s - begin * workload.resolution_s)


def _longest(workload: Workload) -> Workload:
    """Return the workload with the longest history of whole windows that it may have."""
    most_s = max(workload.historical_most_s or 0.0, workload.historical_s)
    return workload.with_history(most_s // workload.resolution_s * workload.resolution_s)


def _known(store: Store, service: str, workload: Workload, end: float) -> BoolArray:
    """Return (windows,) whether each window of a scan has data."""
    start = end - workload.span_s
    # For gCPU the totals show it, so no series is read.
    names: list[SeriesKey] | None = [] if workload.series == "gcpu" else None
    matrix = store.series(SeriesQuery(workload.series, service, start, end, workload.resolution_s, names))
    return known_windows(matrix)


def choose_metrics(
    store: Store, service: str, matrix: SeriesMatrix, workload: Workload, workloads: Sequence[Workload]
) -> tuple[SeriesMatrix, tuple[str, ...]]:
    """Return the metrics that a workload looks at, and those whose direction is unknown.

    Args:
        store: Holds the metadata of metrics.
        service: The service.
        matrix: All metrics of the service.
        workload: One of ``workloads``.
        workloads: All workloads that run.
    """
    if not matrix.names:
        return matrix, ()
    rows = store.rows(RowQuery("metric_metadata", service))
    worse = {
        row["metric"]: worse_direction(MetricMetadata(row["unit"], row["kind"], row["direction"]))
        for row in rows
    }
    unknown = [
        name for name in matrix.names if worse.get(name) is None and unknown_direction(name, workloads)
    ]
    skipped = frozenset(unknown) if workload.opposite else frozenset[str]()
    wanted = [
        row
        for row, name in enumerate(matrix.names)
        if name not in skipped and workload.looks_at(name, worse.get(name))
    ]
    return select_rows(matrix, wanted), tuple(unknown) if _says_so(workload, workloads) else ()


def direction_unknown(metrics: Sequence[str]) -> Unjudged:
    """Return the reason why metrics are not judged: it is unknown whether a rise or a drop is worse."""
    return Unjudged("direction_unknown", len(metrics), 0.0, 1.0)


def _says_so(workload: Workload, workloads: Sequence[Workload]) -> bool:
    """Return whether this workload reports the metrics that none judges: the first that guesses does."""
    return workload == next((candidate for candidate in workloads if candidate.opposite), None)
