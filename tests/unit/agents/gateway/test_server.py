"""Requests from the socket to the buffer: tokens, bounds, rates, room, repeats."""

from __future__ import annotations

import asyncio
import base64
import gzip
import itertools
from typing import Any

import cramjam
import pytest

from agents.gateway import pprof_upload
from agents.gateway.access import EVERYBODY, Client
from agents.gateway.base import DecodeSetup, Request
from agents.gateway.intake import IntakeRules
from agents.gateway.quota import Rates
from agents.gateway.receivers import RECEIVERS
from agents.gateway.server import make_app
from pipeline.http.serving import listening
from tests.support.open_faults import open_fault
from tests.unit.agents.gateway import support
from tests.unit.agents.gateway.support import NOW, Bench, Outbox, stacks_of

STACKS = b"main;price 3\nmain;pay 1\n"
UPLOAD = "/pprof?service=shop&host=a"
TOKEN = "correct horse"


async def post(
    bench: Bench, path: str = UPLOAD, data: bytes = STACKS, **headers: str
) -> tuple[int, str, Any]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with bench.client() as client, client.post(path, data=data, headers=given) as answer:
        return answer.status, (await answer.read()).decode(), answer.headers


async def test_a_profile_becomes_a_message() -> None:
    bench = Bench()
    assert (await post(bench))[:2] == (200, "took 1\n")
    (profile,) = bench.outbox.profiles()
    assert (profile.service, profile.host, profile.end) == ("shop", "a", support.NOW)
    assert stacks_of(profile) == {"main;price": 3, "main;pay": 1}
    assert bench.outbox.messages[0].key == "shop/a"


def test_equal_files_of_two_addresses_are_two() -> None:
    found = [
        pprof_upload.RECEIVER.decode(Request("/pprof", STACKS, NOW, peer, {"service": "shop"}), DecodeSetup())
        for peer in ("10.0.0.1", "10.0.0.2", "10.0.0.2")
    ]
    assert len({part.id for decoded in found for part in decoded.parts}) == 2


async def test_a_client_that_ends_amid_its_body_costs_a_line(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    app = make_app(RECEIVERS, bench.intake, list, str, clock=lambda: NOW)
    async with listening(app, "127.0.0.1", 0) as address, asyncio.timeout(60):
        _, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(f"POST {UPLOAD} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nmain".encode())
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        while not caplog.records:
            await asyncio.sleep(0.01)
    assert [record.getMessage() for record in caplog.records] == [
        "pprof: 127.0.0.1: refused: the body broke off"
    ]


async def test_what_is_sent_again_is_published_once() -> None:
    bench = Bench()
    async with bench.client() as client:
        for _ in range(2):
            bench.now += 30  # of the second try, which has no times of its own
            assert (await client.post(UPLOAD, data=STACKS)).status == 200
        assert (await client.post(UPLOAD + "&from=1789999900", data=STACKS)).status == 200
    assert len(bench.outbox.messages) == 2


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Authorization": f"Bearer {TOKEN}"}, 200, id="bearer"),
        pytest.param(
            {"Authorization": "Basic " + base64.b64encode(f"any:{TOKEN}".encode()).decode()}, 200, id="basic"
        ),
        pytest.param({"dd_api_key": TOKEN}, 200, id="the key of an account of Datadog"),
        pytest.param({"dd_api_key": "wrong"}, 401, id="a wrong key"),
        pytest.param({"Authorization": "Bearer wrong"}, 401, id="wrong"),
        pytest.param({"Authorization": "Basic !!"}, 401, id="no base64"),
        pytest.param({}, 401, id="none"),
    ],
)
async def test_a_token_is_asked_for(headers: dict[str, str], status: int) -> None:
    bench = Bench(IntakeRules(clients=(Client("shop-team", TOKEN),)))
    assert (await post(bench, UPLOAD, STACKS, **headers))[0] == status
    assert len(bench.outbox.messages) == (status == 200)


async def test_a_client_sends_its_services_only() -> None:
    bench = Bench(IntakeRules(clients=(Client("shop-team", TOKEN, ("till*",)),)))
    assert (await post(bench, Authorization=f"Bearer {TOKEN}"))[0] == 403
    assert bench.outbox.messages == []


@pytest.mark.parametrize(
    ("encoding", "data", "status"),
    [
        pytest.param("gzip", gzip.compress(STACKS), 200, id="gzip"),
        pytest.param("zstd", bytes(cramjam.zstd.compress(STACKS)), 200, id="zstd"),
        pytest.param("snappy", bytes(cramjam.snappy.compress_raw(STACKS)), 200, id="snappy"),
        pytest.param("gzip", STACKS, 400, id="damaged"),
        pytest.param("br", STACKS, 415, id="unknown"),
        pytest.param("gzip", gzip.compress(b"a" * 200_000), 413, id="inflating"),
        pytest.param("", gzip.compress(b"a" * 200_000), 413, id="inflating file"),
        pytest.param("", gzip.compress(gzip.compress(STACKS)), 400, id="twice"),
        pytest.param("", b"", 400, id="empty"),
        pytest.param("", b"\x00\x01\x02", 400, id="no format"),
        pytest.param("", b"no count\n", 400, id="no samples"),
    ],
)
async def test_bodies_are_unpacked_within_a_bound(encoding: str, data: bytes, status: int) -> None:
    bench = Bench(IntakeRules(setup=DecodeSetup(max_unpacked_bytes=100_000)))
    assert (await post(bench, data=data, Content_Encoding=encoding))[0] == status
    assert len(bench.outbox.messages) == (status == 200)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/pprof?host=a", id="no service"),
        pytest.param(f"/pprof?service={'s' * 300}", id="long service"),
        pytest.param("/pprof?service=shop&a%00b=c", id="control character"),
        pytest.param(f"/pprof?service=shop&{'n' * 2000}=1", id="long label"),
        pytest.param("/pprof?service=shop&" + "&".join(f"l{i}=1" for i in range(300)), id="many labels"),
        pytest.param("/pprof?service=shop&until=2790000000", id="future"),
        pytest.param("/pprof?service=shop&until=1600000000", id="long ago"),
        pytest.param("/pprof?service=shop&from=1790000000&until=1789999000", id="backwards"),
        pytest.param("/pprof?service=shop&from=nan", id="no number"),
        pytest.param("/pprof?service=shop&format=gold", id="no such format"),
    ],
)
async def test_what_makes_no_sense_is_refused_in_one_line(path: str) -> None:
    bench = Bench()
    status, text, _ = await post(bench, path)
    assert (status, text.count("\n")) == (400, 1)
    assert bench.outbox.messages == []
    counted = [
        value for name, labels, value in bench.counts.metrics() if labels.get("outcome") == "malformed"
    ]
    assert counted == [1]


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(IntakeRules(default=Rates(samples_per_s=0.01)), id="samples of a service"),
        pytest.param(IntakeRules(services={"shop": Rates(bytes_per_s=1)}), id="bytes of a service"),
        pytest.param(IntakeRules(clients=(Client(EVERYBODY, rates=Rates(0.01)),)), id="samples of a client"),
        pytest.param(IntakeRules(clients=(Client(EVERYBODY, rates=Rates(0, 0.1)),)), id="bytes of a client"),
    ],
)
async def test_who_is_over_a_rate_waits_as_long_as_the_answer_says(rules: IntakeRules) -> None:
    bench = Bench(rules)
    async with bench.client() as client:
        assert (await client.post(UPLOAD, data=STACKS)).status == 200
        answer = await client.post(UPLOAD, data=STACKS + b"more 1\n")
        assert answer.status == 429
        bench.now += int(answer.headers["Retry-After"])
        assert (await client.post(UPLOAD, data=STACKS + b"more 1\n")).status == 200


async def test_a_full_buffer_takes_nothing_and_drops_nothing() -> None:
    bench = Bench(outbox=Outbox(room=1))
    async with bench.client() as client:
        assert (await client.get("/healthz")).status == 200
        assert (await client.post(UPLOAD, data=STACKS)).status == 200
        answer = await client.post(UPLOAD, data=STACKS + b"more 1\n")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert (await client.get("/healthz")).status == 503
        bench.outbox.room = 2
        assert (await client.post(UPLOAD, data=STACKS + b"more 1\n")).status == 200
    assert len(bench.outbox.messages) == 2


async def test_metrics_count_what_was_taken() -> None:
    async with Bench().client() as client:
        await client.post(UPLOAD, data=STACKS)
        await client.post("/pprof", data=STACKS)
        text = await (await client.get("/metrics")).text()
    assert 'smidgen_gateway_samples_total{receiver="pprof"} 4' in text
    assert 'smidgen_gateway_requests_total{outcome="malformed",receiver="pprof"} 1' in text


@open_fault("44.11", "a gateway without a token takes posts of any web page and of rebound host names")
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Content-Type": "text/plain"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "rebound.evil.example:4040"},
    ],
    ids=lambda headers: next(iter(headers)),
)
async def test_a_web_page_can_neither_send_nor_read(headers: dict[str, str]) -> None:
    bench = Bench()
    async with bench.client() as client:
        assert (await client.post(UPLOAD, data=STACKS, headers=headers)).status == 403
        assert (await client.get("/metrics", headers=headers)).status == 403
    assert not bench.outbox.messages


async def test_the_wall_of_a_service_that_sends_cpu_is_left_out_for_an_hour(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench, numbers = Bench(), itertools.count(1)
    async with bench.client() as client:

        async def push(name: str) -> tuple[str, int]:
            before = len(bench.outbox.messages)
            body = f"main;work {next(numbers)}\n".encode()
            async with client.post(f"/ingest?name={name}", data=body) as answer:
                assert answer.status == 200
                return await answer.text(), len(bench.outbox.messages) - before

        assert await push("shop.wall") == ("took 1\n", 0), "nothing of CPU yet"
        assert await push("till.wall") == ("took 1\n", 0)
        bench.now += 15
        assert (await push("shop.cpu"))[1] == 1
        assert await push("shop.wall") == (
            "took 0; left out: wall: not CPU, 1 profiles beside those of CPU\n",
            0,
        )
        assert await push("till.wall") == ("took 1\n", 0)
        bench.now += 45
        assert await push("till.wall") == ("took 1\n", 3), "till has no CPU, the wall of shop is gone"
        assert (await push("till.wall"))[1] == 1
        bench.now += 3600
        assert await push("shop.wall") == ("took 1\n", 0), "CPU was long ago"
        bench.now += 60
        assert (await push("shop.wall"))[1] == 2
    assert [row for row in bench.counts.metrics() if row[1].get("reason") == "not_cpu"][0][2] == 2
    assert not caplog.messages


async def test_the_wall_that_waits_takes_room_and_is_left_out_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(outbox=Outbox(room=2))
    async with bench.client() as client:
        for number, status in enumerate((200, 200, 503)):
            async with client.post("/ingest?name=shop.wall", data=f"main;work {number + 1}\n") as answer:
                assert answer.status == status
    assert not bench.outbox.messages
    assert "left out: 2 profiles of the wall, which waited for CPU" in caplog.messages[-1]
