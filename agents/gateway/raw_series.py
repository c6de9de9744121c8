"""Series of raw pprof profiles under label sets, as Pyroscope's and Parca's push APIs have them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from google.protobuf.message import DecodeError

from agents.gateway.base import JSON, PROTOBUF, Decoded, Refusal, Request, Setup, Skipped
from agents.gateway.profiles import Pushed, joined, profile_parts
from pipeline.model.errors import InvalidMessage


@dataclass(frozen=True, slots=True)
class RawSeries:
    """Profiles of one set of labels; of each profile its bytes and its id, empty if it has none."""

    labels: Mapping[str, str]
    profiles: tuple[tuple[bytes, str], ...]


@dataclass(frozen=True, slots=True)
class SeriesForm:
    """A protocol's encoding of series: the class of its request, and readers of protocol buffers and JSON."""

    request: Callable[[], Any]
    of_protobuf: Callable[[Any], Iterator[RawSeries]]
    of_json: Callable[[Mapping[str, Any]], Iterator[RawSeries]]

    def decode(self, request: Request, setup: Setup) -> Decoded:
        """Read all series of a request, of protocol buffers or JSON."""
        message = read_message(request, self.request())
        read = self.of_json if isinstance(message, dict) else self.of_protobuf
        return series_parts(read(message), request, setup)


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


def read_message(request: Request, message: Any) -> Any:
    """Return a protocol buffer, or the object of JSON that stands for one.

    Raises:
        InvalidMessage: it is neither.
        Refusal: the content type is neither's.
    """
    if request.media_type in PROTOBUF:
        try:
            return message.FromString(request.body)
        except DecodeError:
            raise InvalidMessage("no protocol buffer of this request") from None
    if request.media_type != JSON:
        raise Refusal(415, "content_type", f"Content-Type: should be {PROTOBUF[0]} or {JSON}")
    try:
        document = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise InvalidMessage(f"not JSON: {error}") from None
    return mapping(document, "request")


def json_profile(sample: Any) -> bytes:
    """Return the profile of a sample of JSON, which is base64."""
    fields = mapping(sample, "samples")
    raw = fields.get("rawProfile", fields.get("raw_profile"))
    if not isinstance(raw, str):
        raise InvalidMessage("rawProfile: should be base64")
    try:
        return base64.b64decode(raw, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidMessage("rawProfile: not base64") from None


def json_labels(labels: Any) -> Mapping[str, str]:
    """Return the labels of a list of names and values."""
    by_name = {}
    for label in listing(labels, "labels"):
        name, value = mapping(label, "labels").get("name"), label.get("value", "")
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidMessage("labels: name and value should be text")
        by_name[name] = value
    return by_name


def mapping(value: Any, what: str) -> dict[str, Any]:
    """Return an object of JSON."""
    if not isinstance(value, dict):
        raise InvalidMessage(f"{what}: should be an object")
    return value


def listing(value: Any, what: str) -> list[Any]:
    """Return a list of JSON; none is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidMessage(f"{what}: should be a list")
    return value
