"""A gateway with rules for a fleet, on a thread of its own, for clients that wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from agents.gateway.access import EVERYBODY, Client
from agents.gateway.fleet import AgentFleet, add_fleet_routes
from agents.gateway.intake import IntakeRules
from agents.host.fleet import AgentStatus
from pipeline.http.serving import listening
from pipeline.settings.workloads import Workload
from tests.support.gateway_requests import NOW
from tests.unit.agents.gateway.support import Bench

STATUS = AgentStatus(
    host="web-1",
    version="0.1.0",
    rules="v1",
    processes={"sampled": 2, "waiting": 0},
    rates_hz={"shop": 19.0, "till": 1 / 60},
    cost_share=0.004,
    budget=0.01,
    published=10,
    dropped=0,
    waiting=3,
    spooled_bytes=0,
    kernels={"perf": 1, "py-spy": 1},
)
ONE_RULE = "{interval: 1s, scan: 500ms, rules: [{service: a}]}"
OTHER_RULE = "{interval: 9s, scan: 500ms, rules: [{service: b}]}"


@dataclass
class FleetBench:
    """A gateway's fleet under test; its clock stands still until it is set."""

    path: Path
    rules: IntakeRules
    now: float = NOW
    workloads: tuple[Workload, ...] = ()

    def __post_init__(self) -> None:
        self.fleet = AgentFleet(self.path, self.workloads, clock=lambda: self.now)
        self.app = web.Application()
        self._bench = Bench(self.rules)
        add_fleet_routes(self.app, self.fleet, self._bench.intake)

    def serve_rules(self, text: str) -> None:
        """Write the file, and have it read again."""
        self.path.write_text(text)
        self.fleet.reload()


def fleet_of(
    folder: Path, text: str = ONE_RULE, token: str | None = None, workloads: tuple[Workload, ...] = ()
) -> FleetBench:
    """Return a gateway of everybody who has the token."""
    path = folder / "fleet.yaml"
    path.write_text(text)
    return FleetBench(path, IntakeRules(clients=(Client(EVERYBODY, token),)), workloads=workloads)


@contextmanager
def served(app: web.Application, port: int = 0) -> Iterator[str]:
    """Serve an application from a thread, and give its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = listening(app, "127.0.0.1", port)
    try:
        yield asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(60)
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
