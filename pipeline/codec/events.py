"""What leaves: regression events as CloudEvents 1.0."""

from __future__ import annotations

import math
from typing import Any

import orjson
import xxhash

from pipeline.clock import to_iso
from pipeline.codec import fields
from pipeline.codec.inputs import change_to_json
from pipeline.errors import InvalidMessage
from pipeline.model import Candidate, Regression

DETECTED = "smidgen.regression.detected"


def regression_id(service: str, workload: str, candidate: Candidate, scan_end: float) -> str:
    """Derive an event's id from its content: which series of which scan.

    The estimates (change time, levels) are left out, so that a scan that is repeated after a crash with
    late samples in it still gives the same id.
    """
    content = orjson.dumps(
        [service, workload, candidate.metric_kind, candidate.metric, candidate.kind, scan_end]
    )
    return xxhash.xxh3_128_hexdigest(content)


def regression_event(regression: Regression) -> dict[str, Any]:
    """Return a regression as a CloudEvent (structured mode)."""
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
        },
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
