"""The gRPC server of the gateway: methods over raw bytes, without generated code.

Errors carry ``google.rpc.RetryInfo`` where the client should try again, as OTLP's specification asks for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from agents.gateway.base import Receiver, Refusal, Request, Result, grpc_code
from agents.gateway.intake import Intake
from agents.profiles.formats.protobuf import Schema
from pipeline.http.serving import FINISH_S, bracketed
from pipeline.model.clock import Clock
from pipeline.model.errors import ConfigError

MAX_MESSAGE_BYTES = 64 * 1024**2
"""Largest message, packed and unpacked: what OTLP's specification recommends."""

_MEDIA_TYPE = "application/grpc"
_STATUS = Schema(
    "google.rpc.Status",
    {
        "Duration": {"seconds": (1, "int64", False), "nanos": (2, "int32", False)},
        "RetryInfo": {"retry_delay": (1, "Duration", False)},
        "Any": {"type_url": (1, "text", False), "value": (2, "bytes", False)},
        "Status": {"code": (1, "int32", False), "message": (2, "text", False), "details": (3, "Any", True)},
    },
)


@asynccontextmanager
async def listening(
    receivers: Sequence[Receiver], intake: Intake, host: str, port: int, *, clock: Clock
) -> AsyncIterator[str]:
    """Serve the methods of all receivers that have some, and yield the address.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    import grpc

    server = grpc.aio.server(
        options=(("grpc.max_receive_message_length", MAX_MESSAGE_BYTES), ("grpc.so_reuseport", 0))
    )
    methods = {route: receiver for receiver in receivers if receiver.is_grpc for route in receiver.routes}

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            receiver = methods.get(details.method)
            if receiver is None:
                return None
            return grpc.unary_unary_rpc_method_handler(_behaviour(receiver, details.method, intake, clock))

    server.add_generic_rpc_handlers((Handler(),))
    name = bracketed(host)
    try:
        bound = server.add_insecure_port(f"{name}:{port}")
    except RuntimeError as error:
        raise ConfigError(f"--grpc: {name}:{port}: {str(error).splitlines()[0]}") from None
    await server.start()
    try:
        yield f"{name}:{bound}"
    finally:
        await server.stop(FINISH_S)


def _behaviour(receiver: Receiver, method: str, intake: Intake, clock: Clock) -> Any:
    async def call(body: bytes, context: Any) -> bytes:
        import grpc

        headers = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
        headers["content-type"] = _MEDIA_TYPE
        headers.pop("content-encoding", None)  # only HTTP has it: the library has unpacked the message
        request = Request(method, body, clock(), peer_address(context.peer()), {}, headers)
        try:
            client = intake.admit(headers.get("authorization"), len(body))
            with intake.under_way(len(body)):
                result = await intake.take(receiver, client, request)
        except Refusal as refusal:
            result = refusal.result()
            intake.counts.request(receiver.name, result, request.peer, 0.0)
        if result.is_taken:
            return receiver.reply(request, result).body
        code = getattr(grpc.StatusCode, grpc_code(result.status)[1])
        await context.abort(code, result.text, trailing_metadata=_details(result, code.value[0]))
        raise AssertionError  # abort raises

    return call


def peer_address(peer: str) -> str:
    """Return the address of ``ipv4:127.0.0.1:4711`` or ``ipv6:%5B::1%5D:4711``."""
    kind, _, address = unquote(peer).partition(":")
    return address.rpartition(":")[0].strip("[]") if kind in ("ipv4", "ipv6") else kind


def _details(result: Result, code: int) -> tuple[tuple[str, bytes], ...]:
    """Return the time to wait before the next try, as trailing metadata."""
    if not result.retry_s:
        return ()
    seconds = int(result.retry_s)
    delay = _STATUS["Duration"](seconds=seconds, nanos=int((result.retry_s - seconds) * 1e9))
    info = _STATUS["RetryInfo"](retry_delay=delay).SerializeToString()
    status = _STATUS["Status"](code=code, message=result.text.encode())
    status.details.add(type_url=b"type.googleapis.com/google.rpc.RetryInfo", value=info)
    return (("grpc-status-details-bin", status.SerializeToString()),)
