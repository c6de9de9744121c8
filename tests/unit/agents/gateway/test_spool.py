"""A gateway with a spool: what it took outlives the broker's outage and its own end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientSession

from agents.gateway import service
from agents.gateway.intake import IntakeRules
from agents.gateway.service import BufferedOutbox, Endpoint, SpoolOptions
from pipeline.cli import run
from pipeline.model.errors import ConfigError
from pipeline.telemetry.metrics import exposition
from tests.unit.agents.gateway.support import NOW
from tests.unit.agents.publishing.test_publisher import FakeBroker

ENDPOINT = Endpoint(("127.0.0.1", 0), None, 1024**2)
Work = Callable[[ClientSession, str], Awaitable[None]]


def serve(endpoint: Endpoint, broker: FakeBroker, work: Work) -> bool:
    """Run a gateway until some work with it is done; return whether it lost nothing."""
    tasks: list[asyncio.Task[None]] = []

    async def do(url: str) -> None:
        try:
            async with ClientSession() as session:
                await work(session, url)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def ready(addresses: list[str]) -> None:
        tasks.append(asyncio.get_running_loop().create_task(do(addresses[0])))

    async def main() -> bool:
        complete = await service.serve(
            IntakeRules(), broker.connect, endpoint, clock=lambda: NOW, ready=ready
        )
        await tasks[0]
        return complete

    return asyncio.run(asyncio.wait_for(main(), 120))


async def push(session: ClientSession, url: str, number: int) -> tuple[int, str | None]:
    stacks = f"main;price {number + 1}\n".encode() * 5
    async with session.post(f"{url}/pprof?service=shop&host=web-{number}", data=stacks) as answer:
        return answer.status, answer.headers.get("Retry-After")


@pytest.fixture(autouse=True)
def _short_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FLUSH_S", 0.05)


@pytest.mark.parametrize("buffer_bytes", [1, 1024**2], ids=["on disk", "in memory"])
def test_what_was_taken_in_an_outage_is_published_after_a_restart(
    tmp_path: Path, buffer_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = replace(ENDPOINT, buffer_bytes=buffer_bytes, spool=SpoolOptions(tmp_path / "spool", 10**6))
    broker = FakeBroker(up=False)

    async def push_first(session: ClientSession, url: str) -> None:
        assert [(await push(session, url, number))[0] for number in range(5)] == [200] * 5
        async with session.get(f"{url}/metrics") as answer:
            numbers = dict(line.split() for line in (await answer.text()).splitlines() if line[0] != "#")
        assert float(numbers["smidgen_gateway_waiting_messages"]) >= 4  # one may be in hand
        assert (float(numbers["smidgen_gateway_spool_bytes"]) > 0) == (buffer_bytes == 1)

    async def push_more(session: ClientSession, url: str) -> None:
        assert (await push(session, url, 5))[0] == 200

    async def wait(_session: ClientSession, _url: str) -> None:
        broker.up = True
        await asyncio.to_thread(broker.wait, lambda: len(set(broker.received)) == 6)

    assert serve(endpoint, broker, push_first)
    assert "kept in the spool for the next start: 5 messages" in caplog.text
    assert serve(endpoint, broker, push_more)
    assert serve(endpoint, broker, wait)
    assert list(dict.fromkeys(broker.received)) == [f"shop/web-{number}" for number in range(6)]


def test_clients_are_asked_to_try_again_while_the_spool_is_full(tmp_path: Path) -> None:
    endpoint = replace(ENDPOINT, spool=SpoolOptions(tmp_path / "spool", 6000))
    broker = FakeBroker(up=False)
    taken = []

    async def work(session: ClientSession, url: str) -> None:
        for number in range(30):
            status, retry_s = await push(session, url, number)
            assert (status, retry_s) in ((200, None), (503, "5"))
            taken.extend([number] if status == 200 else [])
        assert 0 < len(taken) < 30
        broker.up = True
        await asyncio.to_thread(broker.wait, lambda: len(broker.received) == len(taken))
        assert (await push(session, url, 30))[0] == 200

    assert serve(endpoint, broker, work)
    assert list(dict.fromkeys(broker.received)) == [f"shop/web-{number}" for number in [*taken, 30]]


def test_a_spool_has_one_gateway(tmp_path: Path) -> None:
    broker, options = FakeBroker(), SpoolOptions(tmp_path, 10**6)
    first = BufferedOutbox(broker.connect, 10**6, options)
    with pytest.raises(ConfigError, match="another process has it"):
        BufferedOutbox(broker.connect, 10**6, options)
    assert "smidgen_gateway_spool_bytes 0" in exposition(first.metrics())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--spool", "{}/file/in"], "spool: ", id="no folder"),
        pytest.param(["--spool", "{}/file"], "--spool", id="file"),
        pytest.param(["--spool", "{}/new", "--spool-size", "1MiB"], "at least 64MiB", id="small"),
    ],
)
def test_a_spool_that_cannot_be_is_refused(
    tmp_path: Path, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    given = [each.format(tmp_path) for each in arguments]
    assert run(["gateway", "--listen", "127.0.0.1:0", "--broker", "127.0.0.1:1", *given]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert "Traceback" not in error
