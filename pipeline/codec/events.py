"""What leaves: regression events as CloudEvents 1.0.

An event stays below MAX_EVENT_BYTES: lists and texts that grow with a service or a change are cut, each at
its own room, so that no part crowds out another. What was cut says so, and stands whole in the store.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import orjson
import xxhash

from pipeline.clock import to_iso
from pipeline.codec import fields
from pipeline.codec.records import plain, to_json
from pipeline.codec.scans import decision_to_json
from pipeline.errors import InvalidMessage
from pipeline.lifecycle import Update, UpdateKind
from pipeline.model import Candidate, Change, Regression, Scan, Suspect
from pipeline.model.metric_kind import is_gcpu

if TYPE_CHECKING:
    from pipeline.codec.schema import events as shapes  # the type checker holds events to them

DETECTED: Literal["smidgen.regression.detected"] = "smidgen.regression.detected"
UPDATED: Literal["smidgen.regression.updated"] = "smidgen.regression.updated"
RESOLVED: Literal["smidgen.regression.resolved"] = "smidgen.regression.resolved"

MAX_EVENT_BYTES = 256 * 1024
"""No event is larger, however long names are: the parts below, and the longest names in what is left."""

GROUP_BYTES = 64 * 1024  # some 250 series: more than a person looks at
SUSPECTS_BYTES = 96 * 1024
STACKS_BYTES = 24 * 1024
DOMAINS_BYTES = 8 * 1024
PASSED_BYTES = 8 * 1024

TITLE_CHARACTERS = 500
SUMMARY_CHARACTERS = 2000
NAMES_BYTES = 4 * 1024  # of the files of a change, of its subroutines, of its gates

_TYPES: Mapping[UpdateKind, str] = {"updated": UPDATED, "resolved": RESOLVED}

Item = TypeVar("Item")


def regression_id(service: str, workload: str, candidate: Candidate, scan_end: float) -> str:
    """Derive an event's id from its content: which series of which scan.

    The estimates (change time, levels) are left out, so that a scan that is repeated after a crash with
    late samples in it still gives the same id.
    """
    content = orjson.dumps(
        [service, workload, candidate.metric_kind, candidate.metric, candidate.kind, scan_end]
    )
    return xxhash.xxh3_128_hexdigest(content)


def update_id(update: Update) -> str:
    """Derive the id of an update: which regression, what became of it, which scan.

    Series of any workload may join a regression, and scans of two may end at the same time.
    """
    joins = update.kind == "updated" and update.escalated is None
    scan = [update.time, update.workload] if joins else [update.time]
    content = orjson.dumps([update.regression.id, _TYPES[update.kind], *scan])
    return xxhash.xxh3_128_hexdigest(content)


def regression_event(regression: Regression, scan: Scan | None = None) -> dict[str, Any]:
    """Return a regression as a CloudEvent (structured mode), with the windows of its scan if given."""
    candidate = regression.candidate
    passed: list[Any] = [decision_to_json(decision) for decision in candidate.passed]
    domains: list[Any] = [plain(domain) for domain in candidate.domains]
    stacks: list[Any] = [to_json(line) for line in regression.stacks]
    data: shapes.DetectedData = {
        "service": regression.service,
        "workload": regression.workload,
        "metric": candidate.metric,
        "metric_kind": candidate.metric_kind,
        "change_time": to_iso(candidate.change_time),
        "before": candidate.before,
        "after": candidate.after,
        "delta": candidate.delta,
        "relative": _relative(candidate),
        "kind": candidate.kind,
        "detected_time": to_iso(regression.detected_time),
        "p_value": candidate.p_value,
        "statistic": candidate.statistic,
        "group": _fitting([_member(member) for member in candidate.group], GROUP_BYTES),
        "group_size": len(candidate.group),
        "root_causes": _fitting([_suspect(suspect) for suspect in regression.suspects], SUSPECTS_BYTES),
        "cost_domains": _fitting(domains, DOMAINS_BYTES),
        "stacks": _fitting(stacks, STACKS_BYTES),
        "servers": regression.servers,
        "waste_servers": _waste_servers(regression),
        "passed": _fitting(passed, PASSED_BYTES),
    }
    if scan:
        data["scan"] = windows_to_json(scan)
    event: shapes.RegressionDetected = {
        "specversion": "1.0",
        "id": regression.id,
        "type": DETECTED,
        "source": f"/smidgen/{regression.service}",
        "subject": candidate.metric,
        "time": to_iso(regression.detected_time),
        "datacontenttype": "application/json",
        "data": data,
    }
    return dict(event)


def update_event(update: Update) -> dict[str, Any]:
    """Return what has become of a regression as a CloudEvent (structured mode).

    Metric, kind, ``before`` and ``after`` are those of the regression as it was reported; ``level`` and
    ``change_time`` are new.
    """
    reported = update.regression.candidate
    data: shapes.UpdateData = {
        "service": update.service,
        "workload": update.workload,
        "metric": reported.metric,
        "metric_kind": reported.metric_kind,
        "kind": reported.kind,
        "regression": update.regression.id,
        "regression_time": to_iso(reported.change_time),
        "change_time": to_iso(update.change_time),
        "detected_time": to_iso(update.time),
        "before": reported.before,
        "after": reported.after,
        "level": update.level,
        "share_remaining": update.share_remaining,
    }
    attributes: shapes.CloudEvent = {
        "specversion": "1.0",
        "id": update_id(update),
        "source": f"/smidgen/{update.service}",
        "subject": reported.metric,
        "time": to_iso(update.time),
        "datacontenttype": "application/json",
    }
    event: shapes.RegressionUpdated | shapes.RegressionResolved
    if update.kind == "resolved":
        fixes = _fitting([_told_change(change) for change in update.changes], SUSPECTS_BYTES)
        event = {**attributes, "type": RESOLVED, "data": {**data, "resolved_by": fixes}}
    else:
        told: shapes.UpdatedData = {
            **data,
            "grown": _member(update.escalated) if update.escalated else None,
            "joined": _fitting([_member(candidate) for candidate in update.joined], GROUP_BYTES),
            "joined_size": len(update.joined),
        }
        event = {**attributes, "type": UPDATED, "data": told}
    return dict(event)


def windows_to_json(scan: Scan) -> shapes.ScanWindows:
    """Return where the windows of a scan lie."""
    return {
        "start": to_iso(scan.start),
        "analysis_start": to_iso(scan.analysis_start),
        "analysis_end": to_iso(scan.analysis_end),
        "end": to_iso(scan.end),
    }


def encode_event(event: Mapping[str, Any]) -> bytes:
    """Encode a CloudEvent."""
    return orjson.dumps(event)


def decode_event(value: bytes | None) -> dict[str, Any]:
    """Decode a CloudEvent and check what every event has.

    Raises:
        InvalidMessage: the attribute that is missing or wrong.
    """
    raw = fields.parse_object(value)
    for attribute in ("specversion", "id", "type", "source", "time"):
        fields.text(raw, attribute)
    if not isinstance(raw.get("data"), dict):
        raise InvalidMessage("data: should be an object")
    return raw


def _member(candidate: Candidate) -> shapes.Member:
    return {
        "metric": candidate.metric,
        "metric_kind": candidate.metric_kind,
        "change_time": to_iso(candidate.change_time),
        "before": candidate.before,
        "after": candidate.after,
        "delta": candidate.delta,
        "relative": _relative(candidate),
    }


def _relative(candidate: Candidate) -> float | None:
    """Return the relative change; None for what was not there before, since JSON has no infinity."""
    return candidate.relative if math.isfinite(candidate.relative) else None


def _waste_servers(regression: Regression) -> float | None:
    """Return delta × servers: a share of the CPU of all servers is as many of them at work for it alone."""
    if regression.servers is None or not is_gcpu(regression.candidate.metric_kind):
        return None
    return regression.candidate.delta * regression.servers


def _suspect(suspect: Suspect) -> shapes.Suspect:
    return {
        "change": _told_change(suspect.change),
        "score": suspect.score,
        "factors": dict(suspect.factors),
    }


def _told_change(change: Change) -> shapes.ToldChange:
    """Return a change without its diff, long texts and lists cut: an event names it, the store has it."""
    told: shapes.ToldChange = {
        "id": change.id,
        "service": change.service,
        "time": change.time,
        "title": change.title[:TITLE_CHARACTERS],
        "author": change.author[:TITLE_CHARACTERS],
        "summary": change.summary[:SUMMARY_CHARACTERS],
        "files": _fitting(change.files, NAMES_BYTES),
        "subroutines": _fitting(change.subroutines, NAMES_BYTES),
        "gates": _fitting(change.gates, NAMES_BYTES),
    }
    texts = (told["title"], told["author"], told["summary"])
    lists = (told["files"], told["subroutines"], told["gates"])
    if texts != (change.title, change.author, change.summary) or [*map(len, lists)] != [
        len(change.files),
        len(change.subroutines),
        len(change.gates),
    ]:
        told["cut"] = True
    return told


def _fitting(items: Sequence[Item], room_bytes: int) -> list[Item]:
    """Return as many of the first items as fit a room when they are encoded."""
    fitting: list[Item] = []
    for item in items:
        room_bytes -= len(orjson.dumps(item)) + 1  # and a comma
        if room_bytes < 0:
            break
        fitting.append(item)
    return fitting
