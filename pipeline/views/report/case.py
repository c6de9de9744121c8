"""Lookup of a candidate: in the store, or in the files of a backtest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.messages import fields
from pipeline.messages.events import RESOLVED, UPDATED, decode_event, windows_to_json
from pipeline.messages.ledger import LedgerEntry, entry_from_json, entry_from_row
from pipeline.model import FloatArray, Scan, SeriesKey
from pipeline.model.errors import ConfigError, InvalidMessage, file_errors
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import RowQuery, SeriesQuery, Store
from pipeline.views.report.ids import full_id
from pipeline.views.report.windows import DrawnSeries, line_of, scan_windows

Known = Mapping[str, Workload]


@dataclass(frozen=True, slots=True)
class ReportedCase:
    """A candidate: its line of the ledger, its event if it was reported, and the events that followed.

    ``frame`` is a sampler's name of its symbol, empty if there is none or it is the symbol itself.
    """

    entry: LedgerEntry
    event: Mapping[str, Any] | None = None
    updates: tuple[Mapping[str, Any], ...] = ()
    frame: str = ""


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """Conditions on lines of the ledger; empty and None match all."""

    service: str | None = None
    metric: str | None = None
    since: float = fields.EARLIEST_S  # end of the scan, epoch seconds

    def wants(self, entry: LedgerEntry) -> bool:
        """Return whether a line matches."""
        return (
            (self.service is None or entry.scan.service == self.service)
            and (self.metric is None or entry.candidate.metric == self.metric)
            and entry.scan.end >= self.since
        )


def case_in_store(store: Store, prefix: str, known: Known) -> ReportedCase:
    """Return the candidate whose id has this beginning; an update's id gives its regression.

    Raises:
        ConfigError: there is none, or there are several.
        InvalidMessage: its stored event cannot be read.
        StoreUnavailable: the store did not answer.
    """
    every = (None, fields.EARLIEST_S, fields.LATEST_S)
    entries = {
        row["id"]: entry_from_row(row) for row in store.rows(RowQuery("ledger", *every, id_prefix=prefix))
    }
    events = events_with(store, prefix)
    key = full_id(prefix, (*entries, *events), "neither the ledger nor the table of regressions has it")
    event = events.get(key)
    if event is None:
        return ReportedCase(entries[key], frame=_frame_of_entry(store, entries[key]))
    entry = entries.get(key) or _entry_of_event(event, known)
    updates = store.rows(
        RowQuery("updates", entry.scan.service, *every[1:], equal={"regression": event["id"]})
    )
    followed = tuple(decode_event(row["event"].encode()) for row in updates)
    return ReportedCase(entry, event, followed, _frame_of_entry(store, entry))


def events_with(store: Store, prefix: str) -> dict[str, dict[str, Any]]:
    """Return the events of regressions whose ids, or their updates' ids, have this beginning, by id.

    Raises:
        InvalidMessage: a stored event cannot be read.
        StoreUnavailable: the store did not answer.
    """
    every = (None, fields.EARLIEST_S, fields.LATEST_S)
    events = {
        row["id"]: decode_event(row["event"].encode())
        for row in store.rows(RowQuery("regressions", *every, id_prefix=prefix))
    }
    for row in store.rows(RowQuery("updates", *every, id_prefix=prefix)):
        for reported in store.rows(
            RowQuery("regressions", row["service"], *every[1:], equal={"id": row["regression"]})
        ):
            events[row["id"]] = decode_event(reported["event"].encode())
    return events


def frame_of(store: Store, service: str, series: SeriesKey) -> str:
    """Return a sampler's name of a symbol's frame; empty if none is stored.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    if series.kind != "subroutine":
        return ""
    rows = store.rows(RowQuery("symbols", service, equal={"symbol": series.name}))
    return str(rows[-1]["name"]) if rows else ""


def entries_in_store(store: Store, wanted: LedgerFilter) -> list[LedgerEntry]:
    """Return lines of the ledger, newest first.

    Raises:
        InvalidMessage: what is stored cannot be read.
        StoreUnavailable: the store did not answer.
    """
    equal = {} if wanted.metric is None else {"metric": wanted.metric}
    rows = store.rows(RowQuery("ledger", wanted.service, wanted.since, equal=equal))
    return [entry_from_row(row) for row in reversed(rows)]


def case_in_files(paths: Sequence[Path], prefix: str) -> ReportedCase:
    """Return the candidate whose id has this beginning from ledger and events files.

    Raises:
        ConfigError: a file or a line is wrong; there is no such candidate, or there are several.
    """
    entries: dict[str, LedgerEntry] = {}
    events: dict[str, Mapping[str, Any]] = {}
    updates: list[Mapping[str, Any]] = []
    for where, raw in _lines(paths):
        if raw.get("type") in (UPDATED, RESOLVED):
            updates.append(raw)
            continue
        entry = _entry(where, raw)
        if entry.id.startswith(prefix):
            entries[entry.id] = entry
            if "specversion" in raw:
                events[entry.id] = raw
    hint = "ledgers hold what was dropped: for what was reported give the events file as well"
    key = full_id(prefix, entries, hint)
    about = [updated for updated in updates if updated["data"].get("regression") == key]
    return ReportedCase(entries[key], events.get(key), tuple(about))


def entries_in_files(paths: Sequence[Path], wanted: LedgerFilter) -> list[LedgerEntry]:
    """Return lines of ledger and events files, newest first.

    Raises:
        ConfigError: a file or a line is wrong.
    """
    lines = (pair for pair in _lines(paths) if pair[1].get("type") not in (UPDATED, RESOLVED))
    entries = [entry for entry in (_entry(where, raw) for where, raw in lines) if wanted.wants(entry)]
    return sorted(entries, key=lambda entry: (-entry.scan.end, entry.candidate.metric, entry.id))


def series_of(store: Store, entry: LedgerEntry, workload: Workload) -> tuple[DrawnSeries, FloatArray] | None:
    """Return a candidate's series from the start of its scan, and the weight of each window.

    It continues after the scan for the length of its analysis, to show the later course.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    scan, candidate = entry.scan, entry.candidate
    later = scan.end + (scan.end - scan.analysis_start)
    matrix = store.series(
        SeriesQuery(
            workload.series, scan.service, scan.start, later, workload.resolution_s, [candidate.series]
        )
    )
    line = line_of(matrix, candidate.series)
    if line is None:
        return None
    weights = np.isfinite(line.values) * (matrix.totals if line.ratio else np.ones(len(line.values)))
    return line, weights.astype(np.float64)


def _frame_of_entry(store: Store, entry: LedgerEntry) -> str:
    return frame_of(store, entry.scan.service, entry.candidate.series)


def _entry_of_event(event: Mapping[str, Any], known: Known) -> LedgerEntry:
    """Return an entry for an event whose line of the ledger has expired."""
    data = event["data"]
    if "scan" in data:
        return entry_from_json(event)
    workload = known.get(fields.text(data, "workload"))
    if workload is None:
        raise ConfigError(f"its workload {data['workload']!r} is not known; name its file with --workloads")
    windows = scan_windows(event, workload)
    service, name = fields.text(data, "service"), workload.name
    scan = Scan(service, name, windows.start, windows.analysis_start, windows.analysis_end, windows.end, 0)
    return entry_from_json({**event, "data": {**data, "scan": windows_to_json(scan)}})


def _lines(paths: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line of JSON-lines files with its file and number."""
    for path in paths:
        with file_errors(path):
            content = path.read_bytes()
        for number, line in enumerate(content.splitlines(), start=1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                raw = fields.parse_object(line)
                yield where, decode_event(line) if "specversion" in raw else raw
            except InvalidMessage as error:
                raise ConfigError(f"{where}: {error}") from None


def _entry(where: str, raw: Mapping[str, Any]) -> LedgerEntry:
    try:
        return entry_from_json(raw)
    except InvalidMessage as error:
        raise ConfigError(f"{where}: {error}") from None
