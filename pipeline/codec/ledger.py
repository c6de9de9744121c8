"""The ledger's lines: what became of each candidate of each scan, as rows of the store and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from pipeline.clock import to_iso
from pipeline.codec import fields
from pipeline.codec.domains import domain_to_json
from pipeline.codec.events import regression_id, windows_to_json
from pipeline.codec.scans import candidate_from_json, candidate_to_json, decision_from_json, decision_to_json
from pipeline.errors import InvalidMessage
from pipeline.model import Candidate, Decision, Scan
from pipeline.steps import sentence

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
    """Return entries as columns of the table ``ledger``."""
    found = [entry.candidate for entry in entries]
    decisions = [entry.dropped or _REPORTED for entry in entries]
    return {
        "id": [entry.id for entry in entries],
        "service": [entry.scan.service for entry in entries],
        "workload": [entry.scan.workload for entry in entries],
        "time": [entry.scan.end for entry in entries],
        "scan_start": [entry.scan.start for entry in entries],
        "analysis_start": [entry.scan.analysis_start for entry in entries],
        "analysis_end": [entry.scan.analysis_end for entry in entries],
        "metric_kind": [candidate.metric_kind for candidate in found],
        "metric": [candidate.metric for candidate in found],
        "kind": [candidate.kind for candidate in found],
        "change_time": [candidate.change_time for candidate in found],
        "before": [candidate.before for candidate in found],
        "after": [candidate.after for candidate in found],
        "p_value": [candidate.p_value for candidate in found],
        "statistic": [candidate.statistic for candidate in found],
        "step": [decision.step for decision in decisions],
        "value": [decision.statistic for decision in decisions],
        "bound": [decision.bound for decision in decisions],
        "reason": [sentence(decision) for decision in decisions],
        "code": [decision.code for decision in decisions],
        "subjects": [list(decision.subjects) for decision in decisions],
        "passed": [_json(map(decision_to_json, candidate.passed)) for candidate in found],
        "domains": [_json(map(domain_to_json, candidate.domains)) for candidate in found],
    }


def entry_from_row(row: Mapping[str, Any]) -> LedgerEntry:
    """Return an entry from a row of the table ``ledger``.

    Raises:
        InvalidMessage: a version that is not known wrote the row.
    """
    return LedgerEntry(
        id=row["id"],
        scan=Scan(
            service=row["service"],
            workload=row["workload"],
            start=row["scan_start"],
            analysis_start=row["analysis_start"],
            analysis_end=row["analysis_end"],
            end=row["time"],
            series=0,
        ),
        candidate=candidate_from_json({**row, "passed": _parsed(row, "passed"), "domains": _domains(row)}),
        dropped=_dropped({**row, "statistic": row["value"]}),
    )


def entry_to_json(entry: LedgerEntry) -> dict[str, Any]:
    """Return an entry as a line of a ledger file."""
    candidate = candidate_to_json(entry.candidate)
    decision = decision_to_json(entry.dropped or _REPORTED)
    return {
        "id": entry.id,
        "service": entry.scan.service,
        "workload": entry.scan.workload,
        "scan_end": to_iso(entry.scan.end),
        "metric": entry.candidate.metric,
        "candidate": {key: value for key, value in candidate.items() if key not in ("passed", "domains")},
        **decision,
        "step": decision["step"] or None,
        "passed": [decision_to_json(passed) for passed in entry.candidate.passed],
        "domains": [domain_to_json(domain) for domain in entry.candidate.domains],
        "scan": windows_to_json(entry.scan),
    }


def entry_from_json(raw: Mapping[str, Any]) -> LedgerEntry:
    """Return an entry from a line of a ledger file, or from the event of a reported regression.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    if "specversion" in raw:
        return _entry_from_event(raw)
    candidate = raw.get("candidate")
    if not isinstance(candidate, Mapping):
        raise InvalidMessage("candidate: should be an object")
    found = candidate_from_json({**candidate, "passed": raw.get("passed"), "domains": raw.get("domains")})
    scan = _scan_from_json(raw)
    return LedgerEntry(
        id=fields.text(raw, "id", "") or _id(scan, found),
        scan=scan,
        candidate=found,
        dropped=_dropped({**raw, "step": raw.get("step") or ""}),
    )


def _entry_from_event(raw: Mapping[str, Any]) -> LedgerEntry:
    data = raw.get("data")
    if not isinstance(data, Mapping):
        raise InvalidMessage("data: should be an object")
    return LedgerEntry(fields.text(raw, "id"), _scan_from_json(data), candidate_of_event(data))


def candidate_of_event(data: Mapping[str, Any]) -> Candidate:
    """Return the candidate that an event's data tells of, with its group.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    defaults = {"kind": data.get("kind"), "p_value": 0.0, "statistic": 0.0}
    members = [
        {**defaults, **member} if isinstance(member, dict) else member
        for member in fields.listing(data, "group", optional=True)
    ]
    domains = data.get("cost_domains")
    return candidate_from_json({"statistic": 0.0, **data, "group": members, "domains": domains})


def _dropped(raw: Mapping[str, Any]) -> Decision | None:
    """Return the decision of a line, None if its candidate was reported."""
    return decision_from_json(raw, passed=False) if raw["step"] else None


def _scan_from_json(raw: Mapping[str, Any]) -> Scan:
    windows = raw.get("scan")
    if not isinstance(windows, Mapping):
        raise InvalidMessage("scan: should be an object with the windows of the scan")
    scan = Scan(
        service=fields.text(raw, "service"),
        workload=fields.text(raw, "workload"),
        start=fields.moment(windows, "start"),
        analysis_start=fields.moment(windows, "analysis_start"),
        analysis_end=fields.moment(windows, "analysis_end"),
        end=fields.moment(windows, "end"),
        series=0,
    )
    if not scan.start <= scan.analysis_start <= scan.analysis_end <= scan.end:
        raise InvalidMessage("scan: its windows should follow each other")
    return scan


def _windows_alone(scan: Scan) -> Scan:
    return replace(scan, candidates=(), dropped=(), grown=())


def _id(scan: Scan, candidate: Candidate) -> str:
    return regression_id(scan.service, scan.workload, candidate, scan.end)


def _json(items: Iterable[object]) -> str:
    return orjson.dumps(list(items)).decode()


def _domains(row: Mapping[str, Any]) -> Any:
    return _parsed(row, "domains") if row.get("domains") else []  # older rows have none


def _parsed(row: Mapping[str, Any], column: str) -> Any:
    try:
        return orjson.loads(row[column])
    except orjson.JSONDecodeError:
        raise InvalidMessage(f"{column}: not JSON") from None
