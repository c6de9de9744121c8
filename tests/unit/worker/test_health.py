"""What a worker answers about itself, asked over HTTP."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from pipeline.commands.doctor import ask_worker
from pipeline.model.errors import BrokerUnavailable, ConfigError, StoreUnavailable
from pipeline.processes import TaskSupervisor
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import CountTable, Extents
from pipeline.telemetry.metrics import METRICS, Sample, Telemetry, exposition
from pipeline.worker.checks import StoreCheck
from pipeline.worker.health import CHECK_S, LONGEST_CALL_S, Health, HealthServer, health_address


@dataclass
class FakeStage:
    name: str = "aggregate"
    took_s: float = 0.0
    assigned: bool = True
    waits_for: str = ""
    counted: list[Sample] = field(default_factory=list)

    def call_s(self) -> float:
        return self.took_s

    def assignment(self) -> str:
        return self.waits_for or ("ok" if self.assigned else "none yet")

    def samples(self) -> list[Sample]:
        return self.counted


def drive(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, 60))


Client = TestClient[web.Request, web.Application]


def ask(health: Health, test: Callable[[Client], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with TestClient(TestServer(health.application())) as client:
            await test(client)

    drive(scenario())


async def well() -> None:
    pass


def test_a_worker_that_works_is_live_and_ready() -> None:
    async def test(client: Client) -> None:
        for path in ("/live", "/ready"):
            answer = await client.get(path)
            assert answer.status == 200
            assert (await answer.json())["status"] == "ok"
        assert (await client.get("/other")).status == 404
        assert (await client.post("/live")).status == 405

    ask(Health([FakeStage()], {"store": well}), test)


def test_a_call_that_hangs_is_a_reason_to_restart_and_a_store_that_is_away_is_none() -> None:
    stage = FakeStage(took_s=LONGEST_CALL_S + 1)

    async def away() -> None:
        raise StoreUnavailable("the store at http://u:***@host does not answer")

    async def test(client: Client) -> None:
        live = await client.get("/live")
        assert (live.status, await live.json()) == (
            503,
            {"status": "failing", "checks": {"aggregate: call": "hangs for 901 s"}},
        )
        stage.took_s = 30.0
        assert (await client.get("/live")).status == 200
        ready = await client.get("/ready")
        assert ready.status == 503
        assert (await ready.json())["checks"] == {
            "worker": "ok",
            "aggregate: assignment": "ok",
            "background tasks": "ok",
            "store": "the store at http://u:***@host does not answer",
        }

    ask(Health([stage], {"store": away}), test)


def test_not_ready_while_a_background_task_fails() -> None:
    async def broken() -> None:
        raise ValueError("f(a) and f(b) must have different signs")

    async def test(client: Client) -> None:
        tasks.run("lag", broken)
        await asyncio.sleep(0)
        answer = await client.get("/ready")
        checks = (await answer.json())["checks"]
        assert (answer.status, checks["background tasks"][:17]) == (503, "lag: ValueError: ")
        metrics = await (await client.get("/metrics")).text()
        assert 'smidgen_task_failures_total{task="lag"} 1.0' in metrics
        assert "smidgen_ready 0.0" in metrics
        await tasks.close()

    tasks = TaskSupervisor()
    ask(Health([FakeStage()], {}, tasks=tasks), test)


def test_not_ready_before_the_assignment_nor_while_stopping() -> None:
    stage = FakeStage(assigned=False)
    health = Health([stage], {})

    async def test(client: Client) -> None:
        assert (await (await client.get("/ready")).json())["checks"]["aggregate: assignment"] == "none yet"
        stage.assigned = True
        assert (await client.get("/ready")).status == 200
        stage.waits_for = "not known yet where to go on"  # after a rebalance
        answer = await client.get("/ready")
        checks = (await answer.json())["checks"]
        assert (answer.status, checks["aggregate: assignment"]) == (503, "not known yet where to go on")
        stage.waits_for = ""
        health.stopping = True
        answer = await client.get("/ready")
        assert (answer.status, (await answer.json())["checks"]["worker"]) == (503, "is stopping")
        assert (await client.get("/live")).status == 200

    ask(health, test)


def test_stack_history_is_asked_once_in_a_while_however_often_somebody_looks() -> None:
    asked: list[float] = []
    now = 100.0

    async def check() -> None:
        asked.append(now)
        raise BrokerUnavailable("gone")

    async def test(client: Client) -> None:
        nonlocal now
        await asyncio.gather(*(client.get("/ready") for _ in range(5)))
        now += CHECK_S - 0.1
        await client.get("/metrics")
        assert asked == [100.0]
        now += 0.2
        await client.get("/ready")
        assert len(asked) == 2

    ask(Health([FakeStage()], {"broker": check}, monotonic=lambda: now), test)


@pytest.mark.parametrize("path", ["/live", "/ready", "/metrics"])
def test_a_token_is_asked_for_everywhere(path: str) -> None:
    async def test(client: Client) -> None:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret-s3cret"}):
            answer = await client.get(path, headers=headers)
            assert answer.status == 401
            assert "s3cret" not in await answer.text()
        right = await client.get(path, headers={"Authorization": "Bearer s3cret-s3cret"})
        assert right.status == 200

    ask(Health([FakeStage()], {}, token="s3cret-s3cret"), test)


def test_metrics_are_in_prometheus_text_format() -> None:
    telemetry = Telemetry("aggregate", lambda: {"folded_names": 7})
    telemetry.batch([1, 2], [], ["bad"], 0.25)
    telemetry.summary(None)
    lag: Sample = ("lag_messages", {"stage": "a", "topic": 'odd"\\\n', "partition": "3"}, 12)
    stage = FakeStage(counted=[*telemetry.samples(), lag])

    async def test(client: Client) -> None:
        answer = await client.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = await answer.text()
        assert 'smidgen_messages_total{stage="aggregate"} 2.0\n' in text
        assert 'smidgen_dead_letters_total{stage="aggregate"} 1.0\n' in text
        assert 'smidgen_batch_seconds_sum{stage="aggregate"} 0.25\n' in text
        assert 'smidgen_folded_names_total{stage="aggregate"} 7.0\n' in text
        assert 'smidgen_lag_messages{partition="3",stage="a",topic="odd\\"\\\\\\n"} 12.0\n' in text
        assert "smidgen_ready 1.0\n" in text
        (resident,) = re.findall(r"^smidgen_resident_memory_bytes (\S+)$", text, re.MULTILINE)
        assert float(resident) > 1e6
        kinds = re.findall(r"# TYPE smidgen_(\w+) (\w+)", text)
        assert len(kinds) == len(set(kinds))
        assert {name: kind for name, (kind, _) in METRICS.items()}.items() >= dict(kinds).items()
        assert all(re.fullmatch(r"# .*|\w+(\{.*\})? [\d.e+-]+", line) for line in text.splitlines())

    ask(Health([stage], {}), test)


def test_a_metric_that_nobody_named_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        exposition([("invented_total", {}, 1.0)])


@pytest.mark.parametrize(
    ("text", "token", "address"),
    [
        ("127.0.0.1:9464", None, ("127.0.0.1", 9464)),
        (":9464", None, ("127.0.0.1", 9464)),
        ("9464", None, ("127.0.0.1", 9464)),
        ("[::1]:0", None, ("::1", 0)),
        ("0.0.0.0:9464", "token", ("0.0.0.0", 9464)),
    ],
)
def test_addresses(text: str, token: str | None, address: tuple[str, int]) -> None:
    assert health_address(text, token) == address


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.0.0.0:9464", "can be reached from other machines: set http_token_file too"),
        ("host.example:9464", "can be reached from other machines"),
        ("localhost:http", "should be host:port"),
        ("localhost:70000", "should be host:port"),
        ("", "should be host:port"),
    ],
)
def test_addresses_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        health_address(text, None)


def test_an_address_in_use_is_one_clear_line_and_doctor_asks_a_worker() -> None:
    async def scenario() -> None:
        stage = FakeStage()
        server = HealthServer(Health([stage], {}, token="s3cret-s3cret"), "127.0.0.1", 0)
        url = await server.start()
        port = int(url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=rf"health: 127.0.0.1:{port}: "):
            await HealthServer(Health([], {}), "127.0.0.1", port).start()
        found = await asyncio.to_thread(ask_worker, url.removeprefix("http://"), "s3cret-s3cret")
        assert (found.status, found.check) == ("ok", "worker")
        assert "bearer token" in (await asyncio.to_thread(ask_worker, url, None)).detail
        stage.assigned = False
        found = await asyncio.to_thread(ask_worker, url, "s3cret-s3cret")
        assert (found.status, found.detail) == ("fail", f"{url}: aggregate: assignment: none yet")
        await server.stop()
        assert (await asyncio.to_thread(ask_worker, url, None)).status == "fail"

    drive(scenario())
    with pytest.raises(ConfigError, match="should be http"):
        ask_worker("file:///etc/passwd", None)


def test_a_store_that_hangs_keeps_one_thread_and_is_well_when_it_answers() -> None:
    release = threading.Event()
    asked: list[int] = []

    class Hanging(ArrayStore):
        def extents(self, *_: Any) -> dict[CountTable, Extents]:
            asked.append(1)
            release.wait(60)
            return {}

    async def scenario() -> None:
        check = StoreCheck(Hanging())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(check(), 0.05)
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="has not answered the question before"):
                await check()
        while not asked:  # the thread may begin late
            await asyncio.sleep(0.01)
        assert asked == [1]
        release.set()
        while True:
            try:
                await check()
                break
            except StoreUnavailable:
                await asyncio.sleep(0.01)

    drive(scenario())


def test_a_store_check_says_what_the_store_says() -> None:
    class Away(ArrayStore):
        def extents(self, *_: Any) -> dict[CountTable, Extents]:
            raise StoreUnavailable("too many parts")

    async def scenario() -> None:
        with pytest.raises(StoreUnavailable, match="too many parts"):
            await StoreCheck(Away())()
        await StoreCheck(ArrayStore())()

    drive(scenario())
