"""Both sides are sent the same requests at the same moment, whatever they answer."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from agents.experiments.replay.connection import address_of_url
from agents.experiments.replay.outcome import cpu_per_request, measured, outcomes, pace_of
from agents.experiments.replay.plan import PlannedRequest
from agents.experiments.replay.replayer import Exchange, ReplayConfig, Replayed, Replayer, Served
from agents.experiments.replay.trace import Trace
from pipeline.model.errors import ConfigError
from tests.unit.agents.experiments.replay.services import Handler, service

TRACE = Trace("0123456789abcdef")


def plan(count: int = 8, *, rate: float = 1000.0, **given: Any) -> list[PlannedRequest]:
    fields: dict[str, Any] = {"endpoint": "GET /", "method": "GET", "headers": (), "body": b"", "session": ""}
    return [
        PlannedRequest(
            **{"offset_s": n / rate, "target": f"/{n}", "warm_up": n < 2, "source": n, **fields, **given}
        )
        for n in range(count)
    ]


class Side:
    """A service that remembers what it was asked."""

    def __init__(self, answer: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None) -> None:
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self._answer = answer

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.raw_path, dict(request.headers), await request.read()))
        return await self._answer(request) if self._answer else web.Response(text="ok")


def replay(
    sides: Sequence[Handler], requests: list[PlannedRequest], config: ReplayConfig | None = None, **given: Any
) -> Replayed:
    async def main() -> Replayed:
        async with service(sides[0]) as a, service(sides[-1]) as b:
            replayer = Replayer([address_of_url(url) for url in (a, b)[: len(sides)]], config, **given)
            try:
                return await replayer.run(requests, TRACE)
            finally:
                replayer.close()

    return asyncio.run(asyncio.wait_for(main(), 120))


def test_both_sides_are_asked_the_same() -> None:
    a, b = Side(), Side()
    requests = plan(method="POST", body=b"cart", headers=(("X-Shard", "7"), ("Traceparent", "recorded")))
    found = replay((a, b), requests)
    assert (
        sorted(path for path, _, _ in a.asked)
        == sorted(path for path, _, _ in b.asked)
        == [f"/{n}" for n in range(8)]
    )
    assert {body for _, _, body in a.asked + b.asked} == {b"cart"}
    for side in (a, b):
        for path, headers, _ in side.asked:
            assert headers["X-Shard"] == "7"
            assert [TRACE.index_of(v) for k, v in headers.items() if k.lower() == "traceparent"] == [
                int(path[1:])
            ]
    assert [one.index for one in found.exchanges] == list(range(8))
    assert {served.status for one in found.exchanges for served in one.served} == {200}
    assert len(measured(found)) == 6


def test_which_side_is_first_alternates() -> None:
    found = replay((Side(), Side()), plan(20))
    first = [one.served[0].sent < one.served[1].sent for one in found.exchanges]
    assert sum(first) == 10


def test_a_request_does_not_wait_for_answers() -> None:
    """None is answered before the last one has come: a closed loop would wait for ever."""
    came = [0, 0]
    all_came = asyncio.Event()

    def side(number: int) -> Handler:
        async def answer(_: web.Request) -> web.StreamResponse:
            came[number] += 1
            if min(came) == 8:
                all_came.set()
            await all_came.wait()
            return web.Response()

        return answer

    found = replay((side(0), side(1)), plan(8))
    assert [served.status for one in found.exchanges for served in one.served] == [200] * 16


def test_a_latency_counts_from_when_its_request_was_due() -> None:
    """With one connection a request waits for those before it, and that counts."""

    async def slow(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.05)
        return web.Response()

    found = replay((slow,), plan(6), ReplayConfig(connections=1, opened=1))
    latencies = [one.served[0].latency_s for one in found.exchanges]
    assert latencies[5] > 5 * 0.05
    assert found.exchanges[5].served[0].lag_s > 4 * 0.05


def test_requests_of_a_session_wait_for_answers_to_those_before() -> None:
    under_way = [0, 0]

    async def answer(request: web.Request) -> web.StreamResponse:
        session = int(request.path.endswith(("1", "3", "5", "7")))
        under_way[session] += 1
        assert under_way[session] <= 2  # one on each side
        await asyncio.sleep(0.01)
        under_way[session] -= 1
        return web.Response()

    a, b = Side(answer), Side(answer)
    requests = [
        PlannedRequest(0.0, "GET /", "GET", f"/{n}", (), b"", f"s{n % 2}", False, n) for n in range(8)
    ]
    found = replay((a, b), requests)
    assert {served.status for one in found.exchanges for served in one.served} == {200}
    for side in (a, b):
        for session in (0, 1):
            paths = [path for path, _, _ in side.asked if int(path[1:]) % 2 == session]
            assert paths == sorted(paths)


def test_differences_are_counted_by_endpoint() -> None:
    async def answer_b(request: web.Request) -> web.StreamResponse:
        number = int(request.path[1:])
        return web.Response(status=404 if number == 3 else 200, text="other" if number == 4 else "ok")

    found = outcomes(measured(replay((Side(), Side(answer_b)), plan(8))), ({5: 1}, {5: 3}))
    (outcome,) = found.values()
    assert (outcome.requests, outcome.status_differs, outcome.body_differs) == (6, 1, 1)
    assert (outcome.failed, outcome.calls) == ([0, 0], [1, 3])


def test_a_side_that_does_not_answer_in_time_fails_alone() -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        return web.Response()

    found = replay((Side(), never), plan(3), ReplayConfig(timeout_s=3.0))
    assert [tuple(served.status for served in one.served) for one in found.exchanges] == [(200, 0)] * 3
    assert {one.served[1].error for one in found.exchanges} == {"no answer in 3 s"}


def test_a_side_that_goes_away_fails_alone() -> None:
    """Connections that break, and those that are refused, are failures of the side that does so."""

    async def main() -> Replayed:
        async with service(Side()) as a:
            came = 0

            async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                nonlocal came
                with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                    while await reader.readuntil(b"\r\n\r\n"):
                        came += 1
                        if came > 3:
                            b.close()
                            break
                        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                writer.close()

            b = await asyncio.start_server(talk, "127.0.0.1", 0)
            sides = (a, f"http://127.0.0.1:{b.sockets[0].getsockname()[1]}")
            config = ReplayConfig(opened=1, connections=1)
            replayer = Replayer([address_of_url(url) for url in sides], config)
            try:
                return await replayer.run(plan(20, rate=200.0), TRACE)
            finally:
                replayer.close()

    found = asyncio.run(asyncio.wait_for(main(), 120)).exchanges
    assert [exchange.served[0].status for exchange in found] == [200] * 20
    failed = [exchange.served[1].error for exchange in found if not exchange.served[1].status]
    assert len(failed) == 17
    assert failed[0] == "the connection was closed"
    assert all(error.startswith("no connection: ") for error in failed[2:])
    (outcome,) = outcomes(found).values()
    assert (outcome.failed, outcome.both_bad, outcome.errors[1].total()) == ([0, 17], 0, 17)


@pytest.mark.parametrize(("method", "statuses"), [("GET", [200, 200]), ("POST", [200, 0])])
def test_an_idle_connection_that_a_server_closes_is_no_failure(method: str, statuses: list[int]) -> None:
    """The server closes just as the second request comes, which no client can know."""

    async def main() -> Replayed:
        connections = 0

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            is_first = connections == 1
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                for number in range(2):
                    await reader.readuntil(b"\r\n\r\n")
                    if number and is_first:
                        break
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    await writer.drain()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            replayer = Replayer([address_of_url(url)], ReplayConfig(opened=1))
            try:
                return await replayer.run(plan(2, rate=1.5, method=method), TRACE)
            finally:
                replayer.close()

    found = asyncio.run(asyncio.wait_for(main(), 120))
    assert [one.served[0].status for one in found.exchanges] == statuses


@pytest.mark.parametrize(("other", "differs"), [(b"text", 0), (b"another text", 6)])
def test_bodies_are_compared_without_their_compression(other: bytes, differs: int) -> None:
    def side(text: bytes, mtime: int) -> Handler:
        async def answer(_: web.Request) -> web.StreamResponse:
            packed = gzip.compress(text, mtime=mtime)
            return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

        return answer

    found = outcomes(measured(replay((side(b"text", 1), side(other, 2)), plan(8))))
    assert [outcome.body_differs for outcome in found.values()] == [differs]


@pytest.mark.parametrize(
    ("recorded", "status", "is_bad"),
    [(200, 302, 1), (201, 308, 1), (200, 304, 0), (302, 302, 0), (0, 302, 0), (200, 401, 1), (404, 404, 0)],
)
def test_a_redirect_unlike_the_recorded_answer_compares_nothing(
    recorded: int, status: int, is_bad: int
) -> None:
    request = replace(plan(1)[0], recorded_status=recorded)
    served = Served(status, 0.1, 0.0, 0.0)
    (outcome,) = outcomes([Exchange(request, 0, (served, served))]).values()
    assert outcome.both_bad == is_bad
    assert outcome.latencies_s == (([], []) if is_bad else ([0.1], [0.1]))


def test_costs_that_a_service_says_are_kept() -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(headers={"Server-Timing": "cpu;dur=1.5, db;dur=2"})

    found = replay((Side(answer), Side()), plan(3), ReplayConfig(timings=("cpu",)))
    assert [one.served[0].timings for one in found.exchanges] == [(1.5,)] * 3
    assert [one.served[1].timings for one in found.exchanges] == [(None,)] * 3


def test_cpu_is_read_at_the_ends_of_slices() -> None:
    reads = iter(range(100))

    def read() -> tuple[float | None, ...]:
        number = next(reads)
        return (0.010 * number, None if number == 2 else 0.020 * number)

    found = replay((Side(), Side()), plan(14), ReplayConfig(slices=4), read_cpu=read)
    assert [one.requests for one in found.slices] == [2, 5, 8, 11, 14]
    assert cpu_per_request(found, 0) == pytest.approx([10 / 3] * 4)
    assert cpu_per_request(found, 1) == pytest.approx(
        [20 / 3, float("nan"), float("nan"), 20 / 3], nan_ok=True
    )


def test_the_pace_is_measured() -> None:
    found = pace_of(replay((Side(), Side()), plan(11, rate=100.0)))
    assert found.requests == 11
    assert found.offered == pytest.approx(100.0)
    assert found.sent > 0
    assert found.lag_p99_s >= found.lag_p50_s >= 0
    assert found.skew_p99_s >= found.skew_p50_s > 0


def test_a_side_that_is_away_is_said() -> None:
    async def main() -> None:
        await Replayer([address_of_url("http://127.0.0.1:9")]).run(plan(), TRACE)

    with pytest.raises(ConfigError, match="127.0.0.1:9: "):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("header", "index"),
    [
        ("00-0123456789abcdef00000000000000ff-0000000000000001-01", 255),
        ("00-0123456789abcdef00000000000000FF-0000000000000001-00", 255),
        ("00-ffffffffffffffff00000000000000ff-0000000000000001-01", None),
        ("", None),
        ("00-7", None),
    ],
)
def test_a_request_id_is_found(header: str, index: int | None) -> None:
    assert TRACE.index_of(header) == index
