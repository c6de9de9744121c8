"""What leaves: regression events as CloudEvents 1.0.

An event stays below MAX_EVENT_BYTES: lists and texts that grow with a service or a change are cut, each at
its own room, so that no part crowds out another. What was cut says so, and stands whole in the store.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import orjson
import xxhash

from pipeline.analysis.lifecycle import Update, UpdateKind
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

_LONGEST: Mapping[str, int] = {"title": 500, "author": 500, "summary": 2000}  # characters
_LISTS = ("files", "subroutines", "gates")
NAMES_BYTES = 4 * 1024  # of the files of a change, of its subroutines, of its gates

_TYPES: Mapping[UpdateKind, str] = {"updated": UPDATED, "resolved": RESOLVED}


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
    # The type stands third, as it always has.
    return {"specversion": "1.0", "id": regression.id, "type": DETECTED, **attributes, "data": data}


def late_event(event: Mapping[str, Any], regression: Regression, joined: int = 0) -> dict[str, Any]:
    """Return the event of a regression that was silent so far, as it is reported now.

    Args:
        event: As it would have been when the regression was found.
        regression: As it is now: ``detected_time`` is the end of the scan that reports it.
        joined: How many series have joined it since.
    """
    candidate, found = regression.candidate, event["data"]
    now = {
        "detected_time": to_iso(regression.detected_time),
        **{"after": candidate.after, "delta": candidate.delta, "relative": _relative(candidate)},
        "group": fitting([_member(member) for member in candidate.group], GROUP_BYTES),
        "group_size": found["group_size"] + joined,
        "passed": fitting([decision_to_json(decision) for decision in candidate.passed], PASSED_BYTES),
        **_silences(regression.silences),
    }
    return {**event, "time": to_iso(regression.detected_time), "data": {**found, **now}}


def update_event(update: Update) -> dict[str, Any]:
    """Return what has become of a regression as a CloudEvent (structured mode).

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
    """Return where the windows of a scan lie."""
    silent = {"silent_partitions": scan.silent_partitions} if scan.silent_partitions else {}
    return written(shapes.ScanWindows, scan, **silent)


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
    """Return silences as a field, none where there are none."""
    return {"silences": [_silence(one) for one in applied]} if applied else {}


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
    """Return the interval of the change time as a field, none where a former version found the candidate."""
    found = candidate.change_time_interval
    return {"change_time_interval": [to_iso(edge) for edge in found]} if found else {}


def _senders(candidate: Candidate) -> dict[str, list[str]]:
    """Return the one label where a regression holds and the releases that make it, as far as known."""
    found: dict[str, list[str]] = {}
    for one in candidate.passed:
        if one.subjects and (field := step_of(one.step).event_field):
            found.setdefault(field, []).extend(one.subjects)
    return found


def _requests(candidate: Candidate) -> dict[str, Any]:
    """Return the types of requests that cost more in a new release as a field, none where none was found."""
    found = [
        written(
            shapes.CostlierRequests,
            one,
            or_types=list(one.or_types),
            **({"likely": one.likely} if one.likely else {}),
        )
        for one in candidate.costlier_requests
    ]
    return {"requests": found} if found else {}


def _explanations(regression: Regression) -> dict[str, Any]:
    found = [written(shapes.SetupExplanation, explanation) for explanation in regression.explanations]
    return {"explanations": found} if found else {}


def _member(candidate: Candidate) -> dict[str, Any]:
    return written(shapes.Member, candidate, relative=_relative(candidate))


def _relative(candidate: Candidate) -> float | None:
    """Return the relative change; None for what was not there before, since JSON has no infinity."""
    return candidate.relative if math.isfinite(candidate.relative) else None


def _waste_servers(regression: Regression) -> float | None:
    """Return delta × servers: a share of the CPU of all servers is as many of them at work for it alone."""
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
    """Return a change without its diff, long texts and lists cut: an event names it, the store has it."""
    texts = {name: getattr(change, name)[:most] for name, most in _LONGEST.items()}
    lists = {name: fitting(getattr(change, name), NAMES_BYTES) for name in _LISTS}
    is_cut = any(len(kept) < len(getattr(change, name)) for name, kept in (texts | lists).items())
    return written(shapes.ReportedChange, change, **texts, **lists, **({"cut": True} if is_cut else {}))
