"""Health endpoint of a worker: liveness, readiness and metrics.

``/live`` succeeds if the process needs no restart: its event loop runs, or it could not answer, and no call
of a stage hangs. ``/ready`` succeeds if the process can work: it has joined its groups, and broker and store
answer. A worker that waits for its store is live and not ready: a restart would not help.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import orjson
from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from pipeline import __version__
from pipeline.http.access import check_reach, is_authorised
from pipeline.http.serving import listening
from pipeline.model.clock import Clock, system_clock
from pipeline.model.errors import ConfigError, SmidgenError
from pipeline.processes import TaskSupervisor
from pipeline.processes.supervisor import CHECK
from pipeline.telemetry.metrics import Sample, exposition

LONGEST_CALL_S = 900.0
"""Seconds after which a call of a stage counts as hanging: longer than the store's timeouts or any scan."""

CHECK_S = 5.0
"""Timeout of a check of /ready, and the time for which its outcome is reused, in seconds."""


Check = Callable[[], Awaitable[None]]
"""Returns if the check passes, else raises a SmidgenError with the reason."""


class WatchedStage(Protocol):
    """One stage of this process, as health checks see it."""

    @property
    def name(self) -> str:
        """Name of the stage."""

    def call_s(self) -> float:
        """Return the seconds since its present call began."""

    def assignment(self) -> str:
        """Return what it waits for; ``ok`` once its group has assigned its partitions, perhaps none."""

    def samples(self) -> list[Sample]:
        """Return the stage's metrics."""


class Health:
    """Health of the stages of a process.

    ``checks`` are those of /ready besides the assignments of the stages and the background tasks.
    """

    def __init__(
        self,
        stages: Sequence[WatchedStage],
        checks: Mapping[str, Check],
        *,
        tasks: TaskSupervisor | None = None,
        token: str | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Clock = system_clock,
    ) -> None:
        self._started = clock()
        self._stages = stages
        self._tasks = tasks or TaskSupervisor()
        self._checks = checks
        self._token = token
        self._monotonic = monotonic
        self._asked: dict[str, tuple[float, str]] = {}
        self._asking = asyncio.Lock()
        self.stopping = False

    def application(self) -> web.Application:
        """Return the web application: GET /live, /ready and /metrics."""
        app = web.Application(client_max_size=1024)
        app.router.add_get("/live", self._answer(self.live))
        app.router.add_get("/ready", self._answer(self.ready))
        app.router.add_get("/metrics", self._metrics)
        return app

    async def live(self) -> dict[str, str]:
        """Return the result of each check of liveness: ``ok``, or the problem."""
        return {
            f"{stage.name}: call": "ok"
            if (took := stage.call_s()) < LONGEST_CALL_S
            else f"hangs for {took:.0f} s"
            for stage in self._stages
        }

    async def ready(self) -> dict[str, str]:
        """Return the result of each check of readiness: ``ok``, or the problem."""
        assignments = {"worker": "is stopping" if self.stopping else "ok"}
        for stage in self._stages:
            assignments[f"{stage.name}: assignment"] = stage.assignment()
        async with self._asking:  # concurrent requests share one check
            outcomes = await asyncio.gather(*(self._outcome(name) for name in self._checks))
        assignments[CHECK] = self._tasks.problem() or "ok"
        return {**assignments, **dict(zip(self._checks, outcomes, strict=True))}

    async def _outcome(self, name: str) -> str:
        now = self._monotonic()
        if name in self._asked and now - self._asked[name][0] < CHECK_S:
            return self._asked[name][1]
        try:
            await asyncio.wait_for(self._checks[name](), CHECK_S)
            text = "ok"
        except TimeoutError:
            text = f"no answer within {CHECK_S:g} s"
        except SmidgenError as error:
            text = str(error)
        self._asked[name] = (self._monotonic(), text)
        return text

    def _answer(
        self, checks: Callable[[], Awaitable[Mapping[str, str]]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            if not self._may(request):
                return _json(401, {"status": "refused", "checks": {"token": "wrong or missing bearer token"}})
            results = await checks()
            all_pass = all(text == "ok" for text in results.values())
            return _json(
                200 if all_pass else 503, {"status": "ok" if all_pass else "failing", "checks": results}
            )

        return answer

    async def _metrics(self, request: web.Request) -> web.Response:
        if not self._may(request):
            return _json(401, {"status": "refused", "checks": {"token": "wrong or missing bearer token"}})
        samples = [sample for stage in self._stages for sample in stage.samples()]
        samples += [("call_seconds", {"stage": stage.name}, stage.call_s()) for stage in self._stages]
        ready = all(text == "ok" for text in (await self.ready()).values())
        samples += [("ready", {}, float(ready)), ("build_info", {"version": __version__}, 1.0)]
        samples += [("start_timestamp_seconds", {}, self._started), *self._tasks.samples(), *_process()]
        return web.Response(
            body=exposition(samples).encode(), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        )

    def _may(self, request: web.Request) -> bool:
        return is_authorised(request.headers.get("Authorization"), self._token)


class HealthServer:
    """Serves a Health at an address."""

    def __init__(self, health: Health, host: str, port: int) -> None:
        self._health = health
        self._host = host
        self._port = port
        self._opened = AsyncExitStack()

    async def start(self) -> str:
        """Listen, and return the URL.

        Raises:
            ConfigError: the address cannot be listened on.
        """
        app = self._health.application()
        server = listening(app, self._host, self._port, name="health", finish_s=1.0)
        return await self._opened.enter_async_context(server)

    async def stop(self) -> None:
        """Stop listening."""
        await self._opened.aclose()


def health_address(text: str, token: str | None) -> tuple[str, int]:
    """Read ``host:port`` (``:port`` and ``port`` mean loopback; port 0 takes a free one).

    Raises:
        ConfigError: it is no address, or other machines could reach it without a token.
    """
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"health: should be host:port, not {text!r}")
    check_reach("health", host, token)
    return host, int(port)


def _json(status: int, body: object) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body) + b"\n", content_type="application/json")


def _process() -> list[Sample]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    samples: list[Sample] = [("cpu_seconds_total", {}, used.ru_utime + used.ru_stime)]
    status, files = Path("/proc/self/statm"), Path("/proc/self/fd")
    if not status.exists():
        return samples
    resident = int(status.read_text().split()[1]) * resource.getpagesize()
    return [*samples, ("resident_memory_bytes", {}, resident), ("open_files", {}, len(list(files.iterdir())))]
