"""The windows of a scan whose workload fits them to when its service has data."""

from __future__ import annotations

from pipeline.analysis.detect.fitting import history_start, known_windows, widening
from pipeline.model import BoolArray, SeriesKey
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import Store


def fit_workload(store: Store, service: str, workload: Workload, end: float) -> Workload:
    """Return a workload with the windows of the scan of a service that ends at a time.

    They widen where data come less often, all spans with them, so that a scan has as many windows with data
    as the workload asks for. The history is as long as there is data, from the workload's up to its most.
    """
    longest = _longest(workload)
    most = round((workload.resolution_most_s or workload.resolution_s) / workload.resolution_s)
    known = _known(store, service, longest, end)
    times = widening(known, most)
    if times > 1:
        workload = workload.widened(times)
        longest = _longest(workload)
        known = _known(store, service, longest, end)
    spare_s = longest.historical_s - workload.historical_s
    begin = history_start(known, round(spare_s / workload.resolution_s))
    return workload.with_history(longest.historical_s - begin * workload.resolution_s)


def _longest(workload: Workload) -> Workload:
    """Return the workload with the longest history of whole windows that it may have."""
    most_s = max(workload.historical_most_s or 0.0, workload.historical_s)
    return workload.with_history(most_s // workload.resolution_s * workload.resolution_s)


def _known(store: Store, service: str, workload: Workload, end: float) -> BoolArray:
    """Return which windows of a scan have data: (windows,)."""
    start = end - workload.span_s
    # Of gCPU the totals say so, of whatever series.
    names: list[SeriesKey] | None = [] if workload.series == "gcpu" else None
    matrix = store.series(workload.series, service, start, end, workload.resolution_s, names)
    return known_windows(matrix)
