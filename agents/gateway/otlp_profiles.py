"""OTLP profiles, over HTTP and gRPC: each resource is a service on a host.

The fields are those of ``agents.profiles.formats.otlp`` and of ``ExportProfilesServiceResponse``; the rules
of answers those of the OTLP specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson
import xxhash
from google.protobuf.message import DecodeError

from agents.gateway.base import (
    JSON,
    PROTOBUF,
    Decoded,
    Receiver,
    Refusal,
    Reply,
    Request,
    Result,
    Setup,
    Skipped,
)
from agents.gateway.profiles import Pushed, counts_cpu, joined, reading_parts
from agents.profiles.formats.otlp import otlp_from_json, otlp_messages, resource_readings
from agents.profiles.formats.protobuf import Fields, compile_messages
from pipeline.model.errors import InvalidMessage

_ANSWERS: Mapping[str, Fields] = {
    "PartialSuccess": {"rejected_profiles": (1, "int64", False), "error_message": (2, "bytes", False)},
    "Response": {"partial_success": (1, "PartialSuccess", False)},
    "Status": {"code": (1, "int32", False), "message": (2, "bytes", False)},
}
_CODES = {400: 3, 401: 16, 403: 7, 408: 4, 413: 8, 415: 3, 429: 8, 503: 14}  # of gRPC


@cache
def _answers() -> Mapping[str, Any]:
    return compile_messages("otlp_answers", _ANSWERS)


def decode(request: Request, setup: Setup) -> Decoded:
    """Read the profiles of every resource of a request, a protocol buffer or its JSON."""
    data = _read(request)
    resources = []
    whole = xxhash.xxh3_128_hexdigest(request.body)  # a single profile has no names: they are in a table
    for number, (attributes, reading) in enumerate(resource_readings(data)):
        if not counts_cpu(reading.measure):
            text = f"{reading.measure.type}: not CPU"
            resources.append(Decoded(skipped=(Skipped("not_cpu", text, is_wrong=False),)))
            continue
        try:
            pushed = Pushed(b"", attributes, identity=f"{whole}/{number}")
            resources.append(reading_parts(reading, pushed, request, setup))
        except InvalidMessage as error:
            resources.append(Decoded(skipped=(Skipped("malformed", str(error)),)))
    return joined(resources)


def _read(request: Request) -> Any:
    try:
        if request.media_type == JSON:
            return otlp_from_json(request.body)
        if request.media_type in PROTOBUF:
            return otlp_messages()["ProfilesData"].FromString(request.body)
    except DecodeError:
        raise InvalidMessage("no protocol buffer of OTLP profiles") from None
    except ValueError:  # also of bytes that are not UTF-8
        raise InvalidMessage("no JSON of OTLP profiles") from None
    raise Refusal(415, "content_type", f"Content-Type: should be {PROTOBUF[0]} or {JSON}")


def reply(request: Request, result: Result) -> Reply:
    """Answer the number of rejected profiles, or the status of gRPC with the reason of a refusal."""
    if request.media_type == JSON:
        return Reply(_json_answer(result) if result.is_taken else json_status(result), JSON)
    if result.is_taken:
        answer = _answers()["Response"]()
        if result.wrong:
            answer.partial_success.rejected_profiles = len(result.wrong)
            answer.partial_success.error_message = result.wrong[0].text.encode()
        return Reply(answer.SerializeToString(), PROTOBUF[0])
    return grpc_status(result)


def _json_answer(result: Result) -> bytes:
    if not result.wrong:
        return b"{}"
    rejected = {"rejectedProfiles": str(len(result.wrong)), "errorMessage": result.wrong[0].text}
    return orjson.dumps({"partialSuccess": rejected})


def grpc_status(result: Result) -> Reply:
    """Return the status of gRPC with the reason of a refusal."""
    status = _answers()["Status"](code=_CODES.get(result.status, 2), message=result.text.encode())
    return Reply(status.SerializeToString(), PROTOBUF[0])


def json_status(result: Result) -> bytes:
    """Return the same status as JSON."""
    return orjson.dumps({"code": _CODES.get(result.status, 2), "message": result.text})


RECEIVER = Receiver(
    "otlp_profiles",
    (
        "/v1development/profiles",
        "/v1/profiles",
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    ),
    decode,
    reply,
    is_grpc=True,
)
