"""Parca's WriteRaw, over gRPC and as JSON over HTTP: raw profiles of pprof under label sets.

The fields are those of ``parca.profilestore.v1alpha1.WriteRawRequest``. Its other calls, Write and
WriteArrow, send Arrow records and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from agents.gateway.base import JSON, Receiver, Reply, Request, Result
from agents.gateway.raw_series import RawSeries, SeriesForm
from agents.profiles.formats.protobuf import Schema, text_of

PARCA = Schema(
    "Parca's WriteRaw",
    {
        "Label": {"name": (1, "text", False), "value": (2, "text", False)},
        "LabelSet": {"labels": (1, "Label", True)},
        "Sample": {"raw_profile": (1, "bytes", False)},
        "Series": {"labels": (1, "LabelSet", False), "samples": (2, "Sample", True)},
        "Request": {"series": (2, "Series", True)},
    },
)


def reply(request: Request, result: Result) -> Reply:
    """Answer an empty message, or as gateways of gRPC spell an error."""
    if request.media_type != JSON and result.is_taken:
        return Reply(b"", request.media_type)
    return Reply(b"{}" if result.is_taken else orjson.dumps({"message": result.text}), JSON)


def _series(message: Any) -> Iterator[RawSeries]:
    for series in message.series:
        labels = {text_of(label.name): text_of(label.value) for label in series.labels.labels}
        yield RawSeries(labels, tuple((sample.raw_profile, "") for sample in series.samples))


RECEIVER = Receiver(
    "parca",
    ("/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", "/profiles/writeraw"),
    SeriesForm(PARCA, _series).decode,
    reply,
    is_grpc=True,
)
