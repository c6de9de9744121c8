"""Requests by type and period as messages of the topic ``requests``."""

from __future__ import annotations

from typing import Any

import orjson

from pipeline.messages import fields
from pipeline.messages.inputs import not_ahead
from pipeline.messages.records import check, plain, read
from pipeline.messages.schema import requests as shapes
from pipeline.messages.schema.inputs import MAX_COUNT
from pipeline.messages.schema.requests import MAX_BUCKET, MIN_BUCKET
from pipeline.model import Outgoing, RequestCounts, TypeCounts
from pipeline.model.errors import InvalidMessage

_ROUNDING = 1e-3
"""Of a period's begin, as a share of its length: 2100 is 4e9 periods of 1 s after 1970."""


def encode_requests(counts: RequestCounts) -> bytes:
    """Encode requests of a host's period; the inverse of decode_requests."""
    filled = {name: value for name, value in plain(counts).items() if value}
    return orjson.dumps({**filled, "types": [_type(counts_of_type) for counts_of_type in counts.types]})


def decode_requests(value: bytes | None, *, now: float | None = None) -> RequestCounts:
    """Decode and check requests of a host's period. ``now`` (epoch seconds) bounds it; None does not.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    raw = check(shapes.RequestCounts, fields.parse_object(value, max_depth=None))
    periods = raw["start"] / raw["period_s"]
    if abs(periods - round(periods)) > _ROUNDING:
        raise InvalidMessage("start: should be a multiple of period_s")
    not_ahead(raw["start"] + raw["period_s"], "start", now)
    _check_types(raw["types"])
    return read(RequestCounts, raw)


def requests_message(counts: RequestCounts) -> Outgoing:
    """Return the message for a host's period, keyed by service and host."""
    return Outgoing("requests", f"{counts.service}/{counts.host}", encode_requests(counts))


def _type(counts: TypeCounts) -> dict[str, Any]:
    return {
        name: value for name, value in plain(counts).items() if name in ("type", "requests") or any(value)
    }


def _check_types(types: list[dict[str, Any]]) -> None:
    """Refuse repeated types and buckets, and buckets without a time."""
    if len({raw["type"] for raw in types}) < len(types):
        raise InvalidMessage("types: one of them comes twice")
    if sum(raw["requests"] for raw in types) > MAX_COUNT:
        raise InvalidMessage(f"types: more than {MAX_COUNT} requests in all")
    for index, raw in enumerate(types):
        times = raw.get("times") or []
        where = f"types[{index}].times"
        if len({bucket for bucket, _ in times}) < len(times):
            raise InvalidMessage(f"{where}: a bucket comes twice")
        if any(not MIN_BUCKET <= bucket <= MAX_BUCKET for bucket, _ in times):
            raise InvalidMessage(f"{where}: buckets should be from {MIN_BUCKET} to {MAX_BUCKET}")
        if any(not 0 <= requests <= MAX_COUNT for _, requests in times):
            raise InvalidMessage(f"{where}: requests should be between 0 and {MAX_COUNT}")
