"""Regression events as CloudEvents 1.0.

An event has at most MAX_EVENT_BYTES: lists and texts that grow with a service or a change are cut, each at
a limit of its own. A field states that a part was cut; the store has it whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import orjson
import xxhash

from pipeline.messages import fields
from pipeline.messages.fitting import fitting
from pipeline.messages.records import plain, to_json, written
from pipeline.messages.scans import decision_to_json
from pipeline.messages.schema import events as shapes
from pipeline.model import AppliedSilence, Candidate, Change, Regression, Scan, Suspect
from pipeline.model.clock import to_iso
from pipeline.model.errors import InvalidMessage
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.steps import step_of

if TYPE_CHECKING:  # numpy, which the client's base install lacks
    from pipeline.analysis.lifecycle import Update, UpdateKind

DETECTED: Literal["smidgen.regression.detected"] = "smidgen.regression.detected"
UPDATED: Literal["smidgen.regression.updated"] = "smidgen.regression.updated"
RESOLVED: Literal["smidgen.regression.resolved"] = "smidgen.regression.resolved"

GROUP_BYTES = 64 * 1024  # about 250 series: more than a person reads
SUSPECTS_BYTES = 96 * 1024
STACKS_BYTES = 24 * 1024
DOMAINS_BYTES = 8 * 1024
PASSED_BYTES = 8 * 1024

_LONGEST: Mapping[str, int] = {"title": 500, "author": 500, "summary": 2000}  # characters
_LISTS = ("files", "subroutines", "gates")
NAMES_BYTES = 4 * 1024  # of the files of a change, of its subroutines, of its gates

_TYPES: Mapping[UpdateKind, str] = {"updated": UPDATED, "resolved": RESOLVED}


def regression_id(service: str, workload: str, candidate: Candidate, scan_end: float) -> str:
    """Derive an event's id from its series and scan.

    Estimates (change time, levels) are left out, so that a scan that is repeated after a crash, with late
    samples, still derives the same id.
    """
    content = orjson.dumps(
        [service, workload, candidate.metric_kind, candidate.metric, candidate.kind, scan_end]
    )
    return xxhash.xxh3_128_hexdigest(content)


def update_id(update: Update) -> str:
    """Derive the id of an update from its regression, type and scan.

    The workload is part of it for joined series: they may be of any workload, and scans of two workloads may
    end at the same time.
    """
    joins = update.kind == "updated" and update.escalated is None
    scan = [update.time, update.workload] if joins else [update.time]
    content = orjson.dumps([update.regression.id, _TYPES[update.kind], *scan])
    return xxhash.xxh3_128_hexdigest(content)


def regression_event(regression: Regression, scan: Scan | None = None) -> dict[str, Any]:
    """Return a regression as a CloudEvent (structured mode), with the windows of its scan if given."""
    candidate = regression.candidate
    data = written(
        shapes.DetectedData,
        candidate,
        regression,
        relative=_relative(candidate),
        group=fitting([_member(member) for member in candidate.group], GROUP_BYTES),
        group_size=len(candidate.group),
        root_causes=fitting([_suspect(suspect) for suspect in regression.suspects], SUSPECTS_BYTES),
        cost_domains=fitting([plain(domain) for domain in candidate.domains], DOMAINS_BYTES),
        stacks=fitting([to_json(line) for line in regression.stacks], STACKS_BYTES),
        waste_servers=_waste_servers(regression),
        passed=fitting([decision_to_json(decision) for decision in candidate.passed], PASSED_BYTES),
        **_interval(candidate),
        **_explanations(regression),
        **_senders(candidate),
        **_requests(candidate),
        **_silences(regression.silences),
        **({"scan": windows_to_json(scan)} if scan else {}),
    )
    attributes = _attributes(regression.id, regression.service, candidate, regression.detected_time)
    # The type stays third, for compatibility.
    return {"specversion": "1.0", "id": regression.id, "type": DETECTED, **attributes, "data": data}


def late_event(event: Mapping[str, Any], regression: Regression, joined: int = 0) -> dict[str, Any]:
    """Return the event of a formerly silenced regression, as it is reported now.

    Args:
        event: The event that the regression would have had when it was found.
        regression: Its present state; ``detected_time`` is the end of the scan that reports it.
        joined: Number of series that have joined it since.
    """
    candidate, data = regression.candidate, event["data"]
    now = {
        "detected_time": to_iso(regression.detected_time),
        **{"after": candidate.after, "delta": candidate.delta, "relative": _relative(candidate)},
        "group": fitting([_member(member) for member in candidate.group], GROUP_BYTES),
        "group_size": data["group_size"] + joined,
        "passed": fitting([decision_to_json(decision) for decision in candidate.passed], PASSED_BYTES),
        **_silences(regression.silences),
    }
    return {**event, "time": to_iso(regression.detected_time), "data": {**data, **now}}


def update_event(update: Update) -> dict[str, Any]:
    """Return an update of a regression as a CloudEvent (structured mode).

    Metric, kind, ``before`` and ``after`` are those of the regression as it was reported; ``level`` and
    ``change_time`` are new.
    """
    reported = update.regression.candidate
    own: dict[str, Any] = {
        "kind": reported.kind,
        "regression": update.regression.id,
        "regression_time": reported.change_time,
        "detected_time": update.time,
        **_senders(reported),
    }
    if update.kind == "resolved":
        own["resolved_by"] = fitting([_reported_change(change) for change in update.changes], SUSPECTS_BYTES)
        data = written(shapes.ResolvedData, update, reported, **own)
    else:
        own["grown"] = _member(update.escalated) if update.escalated else None
        own["joined"] = fitting([_member(candidate) for candidate in update.joined], GROUP_BYTES)
        if update.suspects:
            own["root_causes"] = fitting([_suspect(suspect) for suspect in update.suspects], SUSPECTS_BYTES)
        data = written(shapes.UpdatedData, update, reported, **own, joined_size=len(update.joined))
    attributes = _attributes(update_id(update), update.service, reported, update.time)
    return {**attributes, "type": _TYPES[update.kind], "data": data}


def windows_to_json(scan: Scan) -> dict[str, Any]:
    """Return the bounds of the windows of a scan."""
    silent = {"silent_partitions": scan.silent_partitions} if scan.silent_partitions else {}
    return written(shapes.ScanWindows, scan, **silent)


def encode_event(event: Mapping[str, Any]) -> bytes:
    """Encode a CloudEvent."""
    return orjson.dumps(event)


def decode_event(value: bytes | None) -> dict[str, Any]:
    """Decode a CloudEvent and check the attributes that every event has.

    Raises:
        InvalidMessage: the attribute that is missing or wrong.
    """
    raw = fields.parse_object(value)
    for attribute in ("specversion", "id", "type", "source", "time"):
        fields.text(raw, attribute)
    if not isinstance(raw.get("data"), dict):
        raise InvalidMessage("data: should be an object")
    return raw


def _attributes(event_id: str, service: str, candidate: Candidate, time: float) -> dict[str, Any]:
    return written(
        shapes.CloudEvent,
        specversion="1.0",
        id=event_id,
        source=f"/smidgen/{service}",
        subject=candidate.metric,
        time=time,
        datacontenttype="application/json",
    )


def _silences(applied: Sequence[AppliedSilence]) -> dict[str, Any]:
    """Return silences as a field, or no field without silences."""
    return {"silences": [_silence(silence) for silence in applied]} if applied else {}


def _silence(applied: AppliedSilence) -> dict[str, Any]:
    silence, announced = applied.silence, applied.silence.kind == "expected"
    cost = silence.cost if applied.cost is None else applied.cost
    return written(
        shapes.AppliedSilence,
        silence,
        cost=cost if announced else None,
        total=applied.total if announced else None,
        end=None if silence.end is None else to_iso(silence.end),
        reason=silence.reason[: _LONGEST["summary"]],
    )


def _interval(candidate: Candidate) -> dict[str, Any]:
    """Return the interval of the change time as a field; candidates of former versions have none."""
    interval = candidate.change_time_interval
    return {"change_time_interval": [to_iso(edge) for edge in interval]} if interval else {}


def _senders(candidate: Candidate) -> dict[str, list[str]]:
    """Return the label that holds the regression and the releases that cause it, as far as decisions say."""
    by_field: dict[str, list[str]] = {}
    for decision in candidate.passed:
        if decision.subjects and (field := step_of(decision.step).event_field):
            by_field.setdefault(field, []).extend(decision.subjects)
    return by_field


def _requests(candidate: Candidate) -> dict[str, Any]:
    """Return the types of requests that cost more in a new release as a field, or no field without any."""
    requests = [
        written(
            shapes.CostlierRequests,
            request_type,
            or_types=list(request_type.or_types),
            **({"likely": request_type.likely} if request_type.likely else {}),
        )
        for request_type in candidate.costlier_requests
    ]
    return {"requests": requests} if requests else {}


def _explanations(regression: Regression) -> dict[str, Any]:
    explanations = [written(shapes.SetupExplanation, setup) for setup in regression.explanations]
    return {"explanations": explanations} if explanations else {}


def _member(candidate: Candidate) -> dict[str, Any]:
    return written(shapes.Member, candidate, relative=_relative(candidate))


def _relative(candidate: Candidate) -> float | None:
    """Return the relative change; None if it is infinite, which JSON cannot hold."""
    return candidate.relative if math.isfinite(candidate.relative) else None


def _waste_servers(regression: Regression) -> float | None:
    """Return delta × servers: the number of servers whose whole CPU the regression uses."""
    if regression.servers is None or not is_gcpu(regression.candidate.metric_kind):
        return None
    return regression.candidate.delta * regression.servers


def _suspect(suspect: Suspect) -> dict[str, Any]:
    switches = [_switched_change(change) for change in suspect.switches]
    return written(
        shapes.Suspect,
        suspect,
        change=_reported_change(suspect.change),
        factors=dict(suspect.factors),
        **({"switches": switches} if switches else {}),
        **({} if suspect.evidence is None else {"evidence": dict(suspect.evidence)}),
    )


def _switched_change(change: Change) -> dict[str, Any]:
    texts = {name: getattr(change, name)[: _LONGEST[name]] for name in ("title", "author")}
    return written(shapes.SwitchedChange, change, **texts)


def _reported_change(change: Change) -> dict[str, Any]:
    """Return a change without its diff, with long texts and lists cut; the store has all of it."""
    texts = {name: getattr(change, name)[:most] for name, most in _LONGEST.items()}
    lists = {name: fitting(getattr(change, name), NAMES_BYTES) for name in _LISTS}
    is_cut = any(len(shown) < len(getattr(change, name)) for name, shown in (texts | lists).items())
    return written(shapes.ReportedChange, change, **texts, **lists, **({"cut": True} if is_cut else {}))
