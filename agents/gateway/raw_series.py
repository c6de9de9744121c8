"""Series of raw pprof profiles under label sets, as Pyroscope's and Parca's push APIs have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.gateway.base import JSON, PROTOBUF, Decoded, Refusal, Request, Setup, Skipped
from agents.gateway.profiles import Pushed, joined, profile_parts
from agents.profiles.formats.protobuf import Schema
from pipeline.model.errors import InvalidMessage


@dataclass(frozen=True, slots=True)
class RawSeries:
    """Profiles of one set of labels; of each profile its bytes and its id, empty if it has none."""

    labels: Mapping[str, str]
    profiles: tuple[tuple[bytes, str], ...]


@dataclass(frozen=True, slots=True)
class SeriesForm:
    """A protocol's encoding of series: the schema of its ``Request``, and what yields the series of one."""

    schema: Schema
    series: Callable[[Any], Iterator[RawSeries]]

    def decode(self, request: Request, setup: Setup) -> Decoded:
        """Read all series of a request, of protocol buffers or JSON."""
        message = read_message(request, self.schema, "Request")
        return series_parts(self.series(message), request, setup)


def series_parts(series: Iterator[RawSeries], request: Request, setup: Setup) -> Decoded:
    """Return the messages of all profiles; invalid profiles are skipped and do not affect the others."""
    profiles = []
    for labelled in series:
        for data, identity in labelled.profiles:
            try:
                pushed = Pushed(data, labelled.labels, format="pprof", identity=identity)
                profiles.append(profile_parts(pushed, request, setup))
            except InvalidMessage as error:
                profiles.append(Decoded(skipped=(Skipped("malformed", str(error)),)))
            except Refusal as refusal:
                profiles.append(Decoded(skipped=(Skipped(refusal.reason, refusal.text),)))
    if not profiles:
        raise InvalidMessage("series: holds no profile")
    return joined(profiles)


def read_message(request: Request, schema: Schema, message: str) -> Any:
    """Return the message of a request, a protocol buffer or the JSON that spells one.

    Raises:
        InvalidMessage: it is neither.
        Refusal: the content type is neither's.
    """
    if request.media_type in PROTOBUF:
        return schema.read(message, request.body)
    if request.media_type == JSON:
        return schema.read_json(message, request.body)
    raise Refusal(415, "content_type", f"Content-Type: should be {PROTOBUF[0]} or {JSON}")
