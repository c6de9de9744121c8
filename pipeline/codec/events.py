"""What leaves: regression events as CloudEvents 1.0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson
import xxhash

from pipeline.clock import to_iso
from pipeline.codec import fields
from pipeline.codec.inputs import change_to_json
from pipeline.codec.scans import judgement_to_json
from pipeline.errors import InvalidMessage
from pipeline.model import Candidate, Regression, Scan
from pipeline.rootcause.lifecycle import Update, UpdateKind

DETECTED = "smidgen.regression.detected"
UPDATED = "smidgen.regression.updated"
RESOLVED = "smidgen.regression.resolved"

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
    """Derive the id of an update: which regression, what became of it, which scan."""
    content = orjson.dumps([update.regression.id, _TYPES[update.kind], update.time])
    return xxhash.xxh3_128_hexdigest(content)


def regression_event(regression: Regression, scan: Scan | None = None) -> dict[str, Any]:
    """Return a regression as a CloudEvent (structured mode), with the windows of its scan if given."""
    candidate = regression.candidate
    return {
        "specversion": "1.0",
        "id": regression.id,
        "type": DETECTED,
        "source": f"/smidgen/{regression.service}",
        "subject": candidate.metric,
        "time": to_iso(regression.detected_time),
        "datacontenttype": "application/json",
        "data": {
            "service": regression.service,
            "workload": regression.workload,
            "metric": candidate.metric,
            "metric_kind": candidate.metric_kind,
            **_levels(candidate),
            "kind": candidate.kind,
            "detected_time": to_iso(regression.detected_time),
            "p_value": candidate.p_value,
            "statistic": candidate.statistic,
            "group": [
                {"metric": m.metric, "metric_kind": m.metric_kind, **_levels(m)} for m in candidate.group
            ],
            "root_causes": [
                {"change": change_to_json(s.change), "score": s.score, "factors": dict(s.factors)}
                for s in regression.suspects
            ],
            "passed": [judgement_to_json(judgement) for judgement in candidate.passed],
            **({"scan": windows_to_json(scan)} if scan else {}),
        },
    }


def update_event(update: Update) -> dict[str, Any]:
    """Return what has become of a regression as a CloudEvent (structured mode).

    Metric, kind, ``before`` and ``after`` are those of the regression as it was reported; ``level`` and
    ``change_time`` are new.
    """
    reported = update.regression.candidate
    data: dict[str, Any] = {
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
    if update.grown:
        grown = update.grown
        data["grown"] = {"metric": grown.metric, "metric_kind": grown.metric_kind, **_levels(grown)}
    else:
        data["resolved_by"] = [change_to_json(change) for change in update.changes]
    return {
        "specversion": "1.0",
        "id": update_id(update),
        "type": _TYPES[update.kind],
        "source": f"/smidgen/{update.service}",
        "subject": reported.metric,
        "time": to_iso(update.time),
        "datacontenttype": "application/json",
        "data": data,
    }


def windows_to_json(scan: Scan) -> dict[str, Any]:
    """Return where the windows of a scan lie."""
    return {
        "start": to_iso(scan.start),
        "analysis_start": to_iso(scan.analysis_start),
        "analysis_end": to_iso(scan.analysis_end),
        "end": to_iso(scan.end),
    }


def encode_event(event: dict[str, Any]) -> bytes:
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


def _levels(candidate: Candidate) -> dict[str, Any]:
    relative = candidate.relative
    return {
        "change_time": to_iso(candidate.change_time),
        "before": candidate.before,
        "after": candidate.after,
        "delta": candidate.delta,
        "relative": relative if math.isfinite(relative) else None,  # JSON has no infinity: it was not there
    }
