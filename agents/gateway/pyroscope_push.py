"""Pyroscope's push API, as Connect over HTTP/1.1: raw profiles of pprof under label sets.

The fields are those of ``push.v1.PushRequest``; names and codes of errors those of the Connect protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import orjson

from agents.gateway.base import JSON, Receiver, Reply, Request, Result
from agents.gateway.raw_series import RawSeries, SeriesForm, json_labels, json_profile, listing, mapping
from agents.profiles.formats.protobuf import Fields, compile_messages, text_of

_MESSAGES: Mapping[str, Fields] = {
    "Label": {"name": (1, "bytes", False), "value": (2, "bytes", False)},
    "Sample": {"raw_profile": (1, "bytes", False), "id": (2, "bytes", False)},
    "Series": {"labels": (1, "Label", True), "samples": (2, "Sample", True)},
    "Request": {"series": (1, "Series", True)},
}
_CODES: Mapping[int, str] = {
    400: "invalid_argument",
    401: "unauthenticated",
    403: "permission_denied",
    408: "deadline_exceeded",
    413: "resource_exhausted",
    415: "invalid_argument",
    429: "resource_exhausted",
    503: "unavailable",
}


@cache
def push_messages() -> Mapping[str, Any]:
    """Return the classes of the messages."""
    return compile_messages("pyroscope_push", _MESSAGES)


def reply(request: Request, result: Result) -> Reply:
    """Answer an empty message, or an error of Connect."""
    if result.is_taken:
        return Reply(b"{}", JSON) if request.media_type == JSON else Reply(b"", request.media_type)
    code = _CODES.get(result.status, "unknown")
    return Reply(orjson.dumps({"code": code, "message": result.text}), JSON)


def _of_protobuf(message: Any) -> Iterator[RawSeries]:
    for series in message.series:
        labels = {text_of(label.name): text_of(label.value) for label in series.labels}
        profiles = tuple((sample.raw_profile, text_of(sample.id)) for sample in series.samples)
        yield RawSeries(labels, profiles)


def _of_json(message: Mapping[str, Any]) -> Iterator[RawSeries]:
    for entry in listing(message.get("series"), "series"):
        series = mapping(entry, "series")
        samples = listing(series.get("samples"), "samples")
        profiles = tuple((json_profile(sample), str(sample.get("ID", ""))[:100]) for sample in samples)
        yield RawSeries(json_labels(series.get("labels")), profiles)


RECEIVER = Receiver(
    "pyroscope_push",
    ("/push.v1.PusherService/Push",),
    SeriesForm(lambda: push_messages()["Request"], _of_protobuf, _of_json).decode,
    reply,
    is_grpc=True,
)
