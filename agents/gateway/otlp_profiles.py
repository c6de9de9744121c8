"""OTLP profiles, over HTTP and gRPC: each resource is a service on a host.

The fields are those of ``agents.profiles.formats.otlp`` and of ``ExportProfilesServiceResponse``; the rules
of answers those of the OTLP specification.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import xxhash

from agents.gateway.base import (
    JSON,
    PROTOBUF,
    AnswerBody,
    Decoded,
    DecodeSetup,
    PushProtocol,
    Request,
    RequestResult,
    SkippedPart,
    grpc_code,
)
from agents.gateway.profiles import Pushed, joined, reading_parts
from agents.gateway.raw_series import read_message
from agents.profiles.formats.otlp import OTLP, check_version, resource_readings
from agents.profiles.formats.protobuf import Schema
from pipeline.model.errors import InvalidMessage

ANSWERS = Schema(
    "OTLP answers",
    {
        "PartialSuccess": {"rejected": (1, "int64", False), "error_message": (2, "text", False)},
        "Response": {"partial_success": (1, "PartialSuccess", False)},
        "Status": {"code": (1, "int32", False), "message": (2, "text", False)},
    },
)


def decode(request: Request, setup: DecodeSetup) -> Decoded:
    """Read the profiles of every resource of a request, a protocol buffer or its JSON."""
    data = read_message(request, OTLP, "ProfilesData")
    check_version(data)
    resources = []
    whole = xxhash.xxh3_128_hexdigest(request.body)  # a single profile has no names: they are in a table
    for number, (attributes, reading) in enumerate(resource_readings(data)):
        try:
            pushed = Pushed(b"", attributes, identity=f"{whole}/{number}")
            resources.append(reading_parts(reading, pushed, request, setup))
        except InvalidMessage as error:
            resources.append(Decoded(skipped=(SkippedPart("malformed", str(error)),)))
    return joined(resources)


def reply(request: Request, result: RequestResult) -> AnswerBody:
    """Answer the number of rejected profiles, or the status of gRPC with the reason of a refusal."""
    if request.media_type == JSON:
        return AnswerBody(_json_answer(result) if result.is_taken else json_status(result), JSON)
    if result.is_taken:
        return partial_success(result.wrong)
    return grpc_status(result)


def partial_success(rejected: Sequence[SkippedPart]) -> AnswerBody:
    """Answer the number of rejected parts, and the text of the first."""
    answer = ANSWERS["Response"]()
    if rejected:
        answer.partial_success.rejected = len(rejected)
        answer.partial_success.error_message = rejected[0].text.encode()
    return AnswerBody(answer.SerializeToString(), PROTOBUF[0])


def _json_answer(result: RequestResult) -> bytes:
    if not result.wrong:
        return b"{}"
    rejected = {"rejectedProfiles": str(len(result.wrong)), "errorMessage": result.wrong[0].text}
    return orjson.dumps({"partialSuccess": rejected})


def grpc_status(result: RequestResult) -> AnswerBody:
    """Return the status of gRPC with the reason of a refusal."""
    status = ANSWERS["Status"](code=grpc_code(result.status)[0], message=result.text.encode())
    return AnswerBody(status.SerializeToString(), PROTOBUF[0])


def json_status(result: RequestResult) -> bytes:
    """Return the same status as JSON."""
    return orjson.dumps({"code": grpc_code(result.status)[0], "message": result.text})


RECEIVER = PushProtocol(
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
