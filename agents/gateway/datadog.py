"""Datadog's intake of profiles: a form with ``event.json`` and profiles of pprof or flight recordings.

Source: what ``ddtrace`` for Python and ``dd-trace-go`` send, and the notes on their payload by Datadog
(DataDog/go-profiler-notes). Its agent forwards the same form with the key of its account.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from agents.gateway.base import Decoded, DecodeSetup, PushProtocol, Refusal, Request, SkippedPart
from agents.gateway.forms import read_form
from agents.gateway.profiles import Pushed, joined, profile_parts
from agents.profiles.formats import find_format
from agents.profiles.formats.source import HEAD_BYTES
from pipeline.files.unpacking import UnpackError, gunzip, unlz4, unzstd
from pipeline.model.clock import from_iso
from pipeline.model.errors import InvalidMessage

EVENT = "event"
ADDITIONAL_TAGS = "x-datadog-additional-tags"
"""Header with the host of Datadog's agent."""

USUAL_HZ = 100.0
"""Sampling rate of Datadog's clients that do not state one."""

_UNPACKERS: Mapping[bytes, Callable[[bytes, int], bytes]] = {
    b"\x1f\x8b": gunzip,
    b"\x28\xb5\x2f\xfd": unzstd,
    b"\x04\x22\x4d\x18": unlz4,
}
"""Compressions by first bytes: clients compress each file by itself, without a header that says so."""

_FORMATS = ("pprof", "jfr")


@dataclass(frozen=True, slots=True)
class _Event:
    """Properties that all files of a form share."""

    labels: Mapping[str, str]
    start: float  # epoch seconds
    end: float
    rate_hz: float


def decode(request: Request, setup: DecodeSetup) -> Decoded:
    """Read the profiles of a form; its other files are left out.

    Raises:
        InvalidMessage: it is no such form, or its tags or times make no sense.
    """
    if request.media_type != "multipart/form-data":
        raise InvalidMessage("should be multipart/form-data, as Datadog's clients send")
    fields = dict(read_form(request.headers["content-type"], request.body))
    event = _read_event(fields.pop(EVENT, b""), request.headers.get(ADDITIONAL_TAGS, ""))
    return joined([_file(name, data, event, request, setup) for name, data in fields.items()])


def counted_hz(interval_us: float) -> float:
    """Return the rate at which CPU time counts as samples: 100 Hz, halved or doubled, at most the true one.

    Clients adapt their rate. Each rate is a stratum of its own downstream, so only few rates are used.

    Args:
        interval_us: Time between two samples, in microseconds.
    """
    halvings = math.ceil(math.log2(USUAL_HZ * interval_us / 1e6) - 1e-9)
    return math.ldexp(USUAL_HZ, -min(max(halvings, -3), 7))


def _read_event(data: bytes, additional: str) -> _Event:
    if not data:
        raise InvalidMessage("form: has no event.json: update the client")
    try:
        event = _mapping(orjson.loads(data), "event")
    except orjson.JSONDecodeError as error:
        raise InvalidMessage(f"event: not JSON: {error}") from None
    labels = {**_tags(additional), **_tags(event.get("tags_profiler", ""))}
    interval_us = _mapping(event.get("internal") or {}, "internal").get("sampling_interval_us")
    rate_hz = USUAL_HZ
    if isinstance(interval_us, int | float) and 0 < interval_us < 1e9:
        rate_hz = counted_hz(interval_us)
    return _Event(labels, _moment(event, "start"), _moment(event, "end"), rate_hz)


def _mapping(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidMessage(f"{name}: should be an object")
    return value


def _tags(text: Any) -> dict[str, str]:
    """Return tags such as ``service:shop,version:v7``; the first of a name counts."""
    if not isinstance(text, str):
        raise InvalidMessage("tags_profiler: should be text")
    pairs = [tag.partition(":") for tag in text.split(",")]
    return {name.strip(): value.strip() for name, _, value in reversed(pairs) if name.strip()}


def _moment(event: Mapping[str, Any], name: str) -> float:
    try:
        return from_iso(event[name])
    except (KeyError, TypeError, InvalidMessage):
        raise InvalidMessage(f"event: {name} should be a time, as 2026-01-01T00:00:00Z") from None


def _file(name: str, data: bytes, event: _Event, request: Request, setup: DecodeSetup) -> Decoded:
    """Return the messages of one file; an invalid file is skipped and does not affect the others."""
    try:
        unpacked = _unpacked(data, setup.max_unpacked_bytes)
        format_ = next(_formats_of(unpacked), "")
        if not format_:
            return Decoded(skipped=(SkippedPart("not_cpu", f"{name}: no profile", is_wrong=False),))
        pushed = Pushed(unpacked, event.labels, event.start, event.end, event.rate_hz, format_, identity=name)
        return profile_parts(pushed, request, setup)
    except InvalidMessage as error:
        return Decoded(skipped=(SkippedPart("malformed", f"{name}: {error}"),))
    except Refusal as refusal:
        return Decoded(skipped=(SkippedPart(refusal.reason, f"{name}: {refusal.text}"),))


def _formats_of(data: bytes) -> Iterator[str]:
    for name in _FORMATS:
        if find_format(name, b"").recognises(data[:HEAD_BYTES]):
            yield name


def _unpacked(data: bytes, max_bytes: int) -> bytes:
    unpack = next((unpack for magic, unpack in _UNPACKERS.items() if data.startswith(magic)), None)
    if unpack is None:
        return data
    try:
        return unpack(data, max_bytes)
    except UnpackError as error:
        if "more than" in str(error):
            raise Refusal(413, "too_large", str(error)) from None
        raise InvalidMessage(str(error)) from None


RECEIVER = PushProtocol("datadog", ("/profiling/v1/input", "/api/v2/profile"), decode)
