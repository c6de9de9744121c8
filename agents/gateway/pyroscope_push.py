"""Pyroscope's push API, as Connect over HTTP/1.1: raw profiles of pprof under label sets.

The fields are those of ``push.v1.PushRequest``; names and codes of errors those of the Connect protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from agents.gateway.base import JSON, Receiver, Reply, Request, Result, grpc_code
from agents.gateway.raw_series import RawSeries, SeriesForm
from agents.profiles.formats.protobuf import Schema, text_of

PUSH = Schema(
    "Pyroscope's push API",
    {
        "Label": {"name": (1, "text", False), "value": (2, "text", False)},
        "Sample": {"raw_profile": (1, "bytes", False), "ID": (2, "text", False)},
        "Series": {"labels": (1, "Label", True), "samples": (2, "Sample", True)},
        "Request": {"series": (1, "Series", True)},
    },
)


def reply(request: Request, result: Result) -> Reply:
    """Answer an empty message, or an error of Connect."""
    if result.is_taken:
        return Reply(b"{}", JSON) if request.media_type == JSON else Reply(b"", request.media_type)
    code = grpc_code(result.status)[1].lower()
    return Reply(orjson.dumps({"code": code, "message": result.text}), JSON)


def _series(message: Any) -> Iterator[RawSeries]:
    for series in message.series:
        labels = {text_of(label.name): text_of(label.value) for label in series.labels}
        profiles = tuple((sample.raw_profile, text_of(sample.ID)) for sample in series.samples)
        yield RawSeries(labels, profiles)


RECEIVER = Receiver(
    "pyroscope_push",
    ("/push.v1.PusherService/Push",),
    SeriesForm(PUSH, _series).decode,
    reply,
    is_grpc=True,
)
