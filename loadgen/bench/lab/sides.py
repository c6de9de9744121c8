"""Both sides of a trial as processes, and the recording of the requests that are replayed to them."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

from aiohttp import ClientSession

from agents.experiments.replay import Recorder, RecorderConfig
from agents.experiments.replay.downstream import CannedAnswer
from agents.experiments.replay.experiment import DownstreamConfig, counted_downstream
from agents.experiments.replay.proxy import make_proxy
from loadgen.demo.driver import wait_until_healthy
from loadgen.engines.kafka.probe import free_ports
from loadgen.target.shop.data import WORDS
from pipeline.http.serving import listening
from pipeline.model.errors import SmidgenError
from pipeline.processes import Group

HEALTHY_S = 120.0
STOCK = (CannedAnswer(match="GET /left/*", headers={"Content-Type": "application/json"}, body='{"left": 3}'),)


class NotHealthy(SmidgenError):
    """A side does not answer."""


class Sides:
    """Starts builds of the shop, one or two at a time."""

    def __init__(self, processes: Group) -> None:
        self._processes = processes

    @asynccontextmanager
    async def running(
        self, folders: Sequence[Path], stocks: Sequence[str], turn: int = 0
    ) -> AsyncIterator[list[str]]:
        """Run a build of each folder, and yield their addresses; they are ended afterwards.

        Both run on the same core, another core in each turn: other programs load cores differently, and on
        one core they disturb both sides equally. The order of starting alternates, too.

        Raises:
            NotHealthy: a side does not answer in time.
            ChildFailed: a side has ended.
        """
        ports = free_ports("127.0.0.1", len(folders))
        core = _core(turn)
        started = []
        try:
            builds = list(enumerate(zip(folders, stocks, ports, strict=True)))
            for side, (folder, stock, port) in builds[:: -1 if turn % 4 > 1 else 1]:
                command = [sys.executable, "-m", "front", "--port", str(port), "--stock", stock, *core]
                started.append(await self._processes.start(f"side-{'ab'[side]}", command, folder=folder))
            addresses = [f"http://127.0.0.1:{port}" for port in ports]
            try:
                async with asyncio.timeout(HEALTHY_S):
                    await asyncio.gather(*map(wait_until_healthy, addresses))
            except TimeoutError:
                failed = next((process for process in started if process.returncode is not None), None)
                raise failed.failure() if failed else NotHealthy("a side does not answer") from None
            yield addresses
        finally:
            await self._processes.stop(*started)


def _core(turn: int) -> list[str]:
    """Return the option that selects the core to run on, if the system allows selecting one."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    cores = sorted(os.sched_getaffinity(0))
    return ["--core", str(cores[turn % len(cores)])]


async def record_traffic(sides: Sides, base: Path, path: Path, requests: int, seed: int) -> None:
    """Send requests to the base through the recorder, for a lab to replay."""
    (port,) = free_ports("127.0.0.1", 1)
    stock = DownstreamConfig((("127.0.0.1", port), ("127.0.0.1", 0)), answers=STOCK)
    recorder = Recorder(path, RecorderConfig("shop"))
    try:
        async with (
            counted_downstream(stock),
            sides.running([base], [f"http://127.0.0.1:{port}"]) as (address,),
            listening(make_proxy(address, recorder), "127.0.0.1", 0) as proxy,
            ClientSession() as session,
        ):
            for target in targets(requests, seed):
                async with session.get(f"{proxy}{target}") as answer:
                    await answer.read()
    finally:
        recorder.close()


def targets(count: int, seed: int) -> list[str]:
    """Draw the targets of the requests."""
    rng = random.Random(seed)
    paths = []
    for _ in range(count):
        kind = rng.choice(("login", "search", "stock"))
        if kind == "login":
            paths.append(
                f"/login?{urlencode({'name': f'user{rng.randrange(1000)}', 'password': 'correct horse'})}"
            )
        elif kind == "search":
            paths.append(f"/search?{urlencode({'q': ' '.join(rng.sample(WORDS, 3))})}")
        else:
            paths.append(f"/stock/{rng.randrange(1000)}")
    return paths
