"""Data of a page, fetched from the store: the only module of this package that reads anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pipeline.messages import fields
from pipeline.messages.events import decode_event
from pipeline.model import SeriesKey
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import RowQuery, SeriesQuery, StackQuery, Store
from pipeline.views.report.case import frame_of
from pipeline.views.report.page import ReportData
from pipeline.views.report.windows import scan_windows


def find_event(store: Store, event_id: str) -> dict[str, Any] | None:
    """Return a regression's event by its id, None if there is no such one.

    Raises:
        InvalidMessage: the stored event cannot be read.
        StoreUnavailable: the store did not answer.
    """
    rows = store.rows(RowQuery("regressions", None, equal={"id": event_id}))
    return decode_event(rows[0]["event"].encode()) if rows else None


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
