"""The ledger's lines: what became of each candidate of each scan, as rows of the store and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from pipeline.messages import fields
from pipeline.messages.events import regression_id, windows_to_json
from pipeline.messages.records import check, columns_of, plain, read, to_json
from pipeline.messages.scans import candidate_from_json, decision_of, decision_to_json
from pipeline.messages.schema import ledger as shapes
from pipeline.model import Candidate, Decision, Scan
from pipeline.model.clock import to_iso
from pipeline.model.errors import InvalidMessage
from pipeline.model.steps import sentence

_REPORTED = Decision("", passed=True)
"""Stands in columns and lines where nothing dropped a candidate."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One candidate of one scan and its end: the decision that dropped it, or None if it was reported.

    What let the candidate through before is in ``candidate.passed``, what its cost domains said in
    ``candidate.domains``. The id of a reported one is the id of its event.
    """

    id: str
    scan: Scan  # its service, workload and windows alone
    candidate: Candidate
    dropped: Decision | None = None


def dropped_entries(scan: Scan) -> list[LedgerEntry]:
    """Return one entry for each candidate that a step of a scan dropped."""
    windows = _windows_alone(scan)
    return [
        LedgerEntry(_id(scan, line.candidate), windows, line.candidate, line.decision)
        for line in scan.dropped
    ]


def reported_entries(scan: Scan) -> list[LedgerEntry]:
    """Return one entry for each candidate that is left of a scan."""
    windows = _windows_alone(scan)
    return [LedgerEntry(_id(scan, candidate), windows, candidate) for candidate in scan.candidates]


def ledger_columns(entries: Sequence[LedgerEntry]) -> dict[str, list[Any]]:
    """Return entries, one at least, as columns of the table ``ledger``: its candidate's fields and more."""
    return columns_of(map(_row, entries))


def _row(entry: LedgerEntry) -> dict[str, Any]:
    candidate = plain(entry.candidate)
    del candidate["group"]
    interval = list(candidate.pop("change_time_interval") or ())
    decision = entry.dropped or _REPORTED
    return {
        "id": entry.id,
        "service": entry.scan.service,
        "workload": entry.scan.workload,
        "time": entry.scan.end,
        "scan_start": entry.scan.start,
        "analysis_start": entry.scan.analysis_start,
        "analysis_end": entry.scan.analysis_end,
        **{name: _cell(value) for name, value in candidate.items()},
        "change_time_interval": interval,
        "step": decision.step,
        "value": decision.statistic,
        "bound": decision.bound,
        "reason": sentence(decision),
        "code": decision.code,
        "subjects": list(decision.subjects),
    }


def entry_from_row(row: Mapping[str, Any]) -> LedgerEntry:
    """Return an entry from a row of the table ``ledger``.

    Raises:
        InvalidMessage: a version that is not known wrote the row.
    """
    windows = (row["scan_start"], row["analysis_start"], row["analysis_end"], row["time"])
    lists = {column: _parsed(row, column) for column in ("passed", "domains")}
    lists["change_time_interval"] = row.get("change_time_interval") or None  # older rows have none
    return LedgerEntry(
        id=row["id"],
        scan=Scan(row["service"], row["workload"], *windows, series=0),
        candidate=candidate_from_json({**row, **lists}, ""),
        dropped=_dropped({**row, "statistic": row["value"]}),
    )


def entry_to_json(entry: LedgerEntry) -> dict[str, Any]:
    """Return an entry as a line of a ledger file."""
    candidate = {"passed": [], "domains": [], **to_json(entry.candidate)}
    decision = decision_to_json(entry.dropped or _REPORTED)
    return {
        "id": entry.id,
        "service": entry.scan.service,
        "workload": entry.scan.workload,
        "scan_end": to_iso(entry.scan.end),
        "metric": entry.candidate.metric,
        **decision,
        "step": decision["step"] or None,
        "passed": candidate.pop("passed"),
        "domains": candidate.pop("domains"),
        "candidate": candidate,
        "scan": windows_to_json(entry.scan),
    }


def entry_from_json(raw: Mapping[str, Any]) -> LedgerEntry:
    """Return an entry from a line of a ledger file, or from the event of a reported regression.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    if "specversion" in raw:
        data = raw.get("data")
        if not isinstance(data, Mapping):
            raise InvalidMessage("data: should be an object")
        scan = _scan_of(check(shapes.ScanOf, dict(data)))
        return LedgerEntry(fields.text(raw, "id"), scan, candidate_of_event(data))
    if not isinstance(raw.get("candidate"), Mapping):
        raise InvalidMessage("candidate: should be an object")
    line = check(shapes.LedgerLine, dict(raw))
    lists = {name: line.get(name) for name in ("passed", "domains")}
    found, scan = candidate_from_json({**line["candidate"], **lists}), _scan_of(line)
    return LedgerEntry(line.get("id") or _id(scan, found), scan, found, _dropped(line))


def candidate_of_event(data: Mapping[str, Any]) -> Candidate:
    """Return the candidate that an event's data describes, with its group.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    defaults = {"kind": data.get("kind"), "p_value": 0.0, "statistic": 0.0}
    members = [
        {**defaults, **member} if isinstance(member, dict) else member
        for member in fields.listing(data, "group", optional=True)
    ]
    domains = data.get("cost_domains")
    return candidate_from_json({"statistic": 0.0, **data, "group": members, "domains": domains}, "")


def _dropped(checked: Mapping[str, Any]) -> Decision | None:
    """Return the decision of a line, None if its candidate was reported."""
    return decision_of(checked, passed=False) if checked.get("step") else None


def _scan_of(checked: Mapping[str, Any]) -> Scan:
    scan = read(
        Scan, {"service": checked["service"], "workload": checked["workload"], "series": 0, **checked["scan"]}
    )
    if not scan.start <= scan.analysis_start <= scan.analysis_end <= scan.end:
        raise InvalidMessage("scan: its windows should follow each other")
    return scan


def _windows_alone(scan: Scan) -> Scan:
    return replace(scan, candidates=(), dropped=(), grown=())


def _id(scan: Scan, candidate: Candidate) -> str:
    return regression_id(scan.service, scan.workload, candidate, scan.end)


def _cell(value: object) -> object:
    """Return a candidate's field as a value of a column: lists are texts there."""
    return orjson.dumps([to_json(item) for item in value]).decode() if isinstance(value, tuple) else value


def _parsed(row: Mapping[str, Any], column: str) -> Any:
    try:
        return orjson.loads(row.get(column) or b"[]")  # older rows have no domains
    except orjson.JSONDecodeError:
        raise InvalidMessage(f"{column}: not JSON") from None
