"""gRPC: the same receivers over raw bytes, and errors that clients understand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.gateway import grpc_server
from agents.gateway.access import EVERYBODY, Client
from agents.gateway.intake import Rules
from agents.gateway.quota import Rates
from agents.gateway.receivers import RECEIVERS
from tests.support.gateway_requests import exported, pprof, written
from tests.unit.agents.gateway.support import Bench, Outbox, stacks_of

grpc = pytest.importorskip("grpc", reason="needs grpcio")

EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
WRITE = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
TOKEN = "correct horse"
TILL = (EXPORT, exported("till").SerializeToString())
SLOW = Rules(clients=(Client(EVERYBODY, rates=Rates(0.01)),))


def call(bench: Bench, *calls: tuple[str, bytes], token: str = TOKEN) -> list[Any]:
    """Return the answer to each call: bytes, or the error."""

    async def main() -> list[Any]:
        found: list[Any] = []
        serving = grpc_server.listening(RECEIVERS, bench.intake, "127.0.0.1", 0, clock=lambda: bench.now)
        async with serving as address, grpc.aio.insecure_channel(address) as channel:
            for method, body in calls:
                try:
                    metadata = (("authorization", f"Bearer {token}"),)
                    compression = grpc.Compression.Gzip
                    sent = channel.unary_unary(method)(body, metadata=metadata, compression=compression)
                    found.append(await sent)
                except grpc.RpcError as error:
                    found.append(error)
        return found

    return asyncio.run(main())


def test_otlp_and_parca() -> None:
    bench = Bench(Rules(clients=(Client("team", TOKEN),)))
    export, write = exported("shop").SerializeToString(), written(pprof()).SerializeToString()
    assert call(bench, (EXPORT, export), (WRITE, write)) == [b"", b""]
    first, second = bench.outbox.profiles()
    assert stacks_of(first) == {"main;price": 7}
    assert stacks_of(second) == {"main;price": 3, "main;pay": 1}


@pytest.mark.parametrize(
    ("bench", "last", "code", "retry"),
    [
        pytest.param(
            Bench(Rules(clients=(Client("a", "other"),))), TILL, "UNAUTHENTICATED", False, id="token"
        ),
        pytest.param(Bench(outbox=Outbox(room=1)), TILL, "UNAVAILABLE", True, id="full"),
        pytest.param(Bench(SLOW), TILL, "RESOURCE_EXHAUSTED", True, id="rate"),
        pytest.param(Bench(), (EXPORT, b"\xff\xff"), "INVALID_ARGUMENT", False, id="no sense"),
        pytest.param(Bench(), ("/a.B/C", b""), "UNIMPLEMENTED", False, id="no such method"),
    ],
)
def test_what_is_refused_has_a_code_of_grpc(
    bench: Bench, last: tuple[str, bytes], code: str, retry: bool
) -> None:
    error = call(bench, (EXPORT, exported("shop").SerializeToString()), last)[-1]
    assert error.code().name == code
    details = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
    assert (b"google.rpc.RetryInfo" in details) == retry
