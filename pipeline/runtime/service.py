"""Runs stages in one process, from the first assignment to a clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Coroutine, Sequence
from typing import Any

from pipeline.clock import Clock
from pipeline.config import Settings
from pipeline.runtime.app import FaustMembership, StageApp, connect, create_app
from pipeline.runtime.deadletters import DeadLetters
from pipeline.runtime.loop import StageLoop
from pipeline.runtime.publisher import Publisher, is_set_within
from pipeline.stages.base import Stage
from pipeline.telemetry import SUMMARY_INTERVAL_S, Telemetry
from pipeline.topics import Topics

logger = logging.getLogger(__name__)

GRACE_S = 5.0
"""How long a batch under way may take once the process is to stop; after that it is left unacknowledged."""

CLOSE_S = 2.0
"""How long each of the last steps may take: commit, leaving the group, disconnecting."""

START_S = 60.0
TICK_S = 0.5


class Service:
    """Some stages, each with its own Faust app, one event loop and one producer."""

    def __init__(self, settings: Settings, topics: Topics, stages: Sequence[Stage], clock: Clock) -> None:
        self._publisher = Publisher(settings.broker, topics, idempotent=settings.idempotent_producer)
        self._stop = asyncio.Event()
        self._failed = False
        self.hanging = False
        """Whether something did not end in time, such as a call to the store: a thread may still run."""
        self._waiting = {stage.name for stage in stages}
        self._apps: list[StageApp] = []
        self._loops: list[StageLoop] = []
        self._telemetry: list[tuple[Telemetry, FaustMembership]] = []
        for stage in stages:
            self._add(stage, settings, topics, clock)

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT (returns 0) or until something fails (returns 1).

        Raises:
            BrokerUnavailable: the broker does not answer at the start.
            ConfigError: the broker refuses the producer.
        """
        await self._publisher.start()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        starting = [asyncio.ensure_future(app.start()) for app in self._apps]
        try:
            await self._supervise(starting)
        finally:
            for task in starting:
                task.cancel()
            await self._shut_down()
        return 1 if self._failed else 0

    def _add(self, stage: Stage, settings: Settings, topics: Topics, clock: Clock) -> None:
        app = create_app(settings, topics, stage)
        membership, telemetry = FaustMembership(app), Telemetry(stage.name)
        loop = StageLoop(
            stage,
            topics,
            membership,
            self._publisher,
            DeadLetters(self._publisher, topics, stage.name, clock),
            telemetry,
            on_failure=self._fail,
        )
        connect(app, loop, settings, lambda: self._assigned(stage.name))
        self._apps.append(app)
        self._loops.append(loop)
        self._telemetry.append((telemetry, membership))

    def _assigned(self, stage: str) -> None:
        if stage in self._waiting:
            self._waiting.discard(stage)
            if not self._waiting:
                names = ", ".join(loop.stage.name for loop in self._loops)
                logger.info("ready: %s", names)

    def _fail(self, _error: BaseException) -> None:
        self._failed = True
        self._stop.set()

    async def _supervise(self, starting: Sequence[asyncio.Future[None]]) -> None:
        deadline = time.monotonic() + START_S
        next_summary = time.monotonic() + SUMMARY_INTERVAL_S
        while not await is_set_within(self._stop, TICK_S):
            for app, start in zip(self._apps, starting, strict=True):
                reason = _failure(start) or app.crash_reason
                if reason is not None or app.should_stop:
                    logger.error("%s stopped by itself", app.conf.id, exc_info=reason)
                    return self._fail(RuntimeError("a consumer stopped"))
            if self._waiting and time.monotonic() > deadline:
                logger.warning("no assignment yet for %s", ", ".join(sorted(self._waiting)))
                deadline += START_S
            if time.monotonic() > next_summary:
                next_summary += SUMMARY_INTERVAL_S
                self._summarise()
        return None

    def _summarise(self) -> None:
        for telemetry, membership in self._telemetry:
            logger.info("%s", telemetry.summary(membership.lag()))

    async def _shut_down(self) -> None:
        """Finish or give up the batches, commit what is acknowledged, leave the groups; each bounded."""
        await self._bounded("finishing the batch", GRACE_S, *(loop.stop() for loop in self._loops))
        started = [app for app in self._apps if app.started]
        await self._bounded("committing", CLOSE_S, *(app.consumer.commit() for app in started))
        await self._bounded("leaving the group", CLOSE_S, *(app.stop() for app in started))
        await self._bounded("closing the producer", CLOSE_S, self._publisher.stop())
        logger.info("stopped")

    async def _bounded(self, what: str, seconds: float, *steps: Coroutine[Any, Any, object]) -> None:
        tasks = [asyncio.ensure_future(step) for step in steps]
        if not tasks:
            return
        done, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            self.hanging = True
            logger.warning("%s takes more than %g s: going on without", what, seconds)
        for task in done:
            with contextlib.suppress(asyncio.CancelledError):
                if error := task.exception():
                    logger.warning("%s: %s", what, error)


def _failure(start: asyncio.Future[None]) -> BaseException | None:
    return start.exception() if start.done() and not start.cancelled() else None
