"""Data of a page, fetched from the store: the only module of this package that reads anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pipeline.messages import fields
from pipeline.model import SeriesKey
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import SeriesQuery, StackQuery, Store
from pipeline.views.report.case import events_with, frame_of
from pipeline.views.report.ids import NOT_REPORTED, full_id, id_prefix
from pipeline.views.report.page import ReportData
from pipeline.views.report.windows import scan_windows


def find_event(store: Store, text: str) -> dict[str, Any]:
    """Return the event of the regression whose id, or an update's, begins with a text.

    Raises:
        ConfigError: there is none, there are several, or it is no id.
        InvalidMessage: the stored event cannot be read.
        StoreUnavailable: the store did not answer.
    """
    prefix = id_prefix(text)
    events = events_with(store, prefix)
    return events[full_id(prefix, events, f"{NOT_REPORTED}: smidgen why {prefix}")]


def gather(store: Store, event: Mapping[str, Any], workload: Workload) -> ReportData:
    """Return the series and stacks around a regression.

    The series goes on after the scan for as long as the analysis window, so that a page drawn later shows its
    course. Stacks next to the change point are left out: they may hold both regimes.

    Raises:
        InvalidMessage: the event lacks something that every event has.
        StoreUnavailable: the store did not answer.
    """
    data = event["data"]
    windows = scan_windows(event, workload)
    change_time = fields.moment(data, "change_time")
    service = fields.text(data, "service")
    later = windows.end + workload.analysis_s
    source: Literal["gcpu", "service"] = "gcpu" if is_gcpu(data["metric_kind"]) else "service"
    shown = [data, *fields.listing(data, "group", optional=True)]
    names = [
        SeriesKey(line["metric_kind"], str(line["metric"])) for line in shown if isinstance(line, Mapping)
    ]
    series = store.series(SeriesQuery(source, service, windows.start, later, workload.resolution_s, names))
    after_end = max(windows.end, change_time + workload.analysis_s + workload.extended_s)
    stacks = store.counts(
        StackQuery(
            service,
            (windows.start, change_time - workload.resolution_s),
            (change_time + workload.resolution_s, after_end),
        )
    )
    frame = frame_of(store, service, names[0]) if names else ""
    return ReportData(event=event, windows=windows, series=series, stacks=stacks, frame=frame)
