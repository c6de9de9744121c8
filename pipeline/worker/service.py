"""Service of one process: its stages from the first assignment to a clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any

from pipeline.analysis.detect.idleness import Readings
from pipeline.kafka import Broker, Publisher, is_set_within
from pipeline.model.clock import Clock
from pipeline.model.errors import ConfigError, SmidgenError
from pipeline.processes import TaskSupervisor
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics
from pipeline.stages.base import Stage
from pipeline.telemetry.metrics import SUMMARY_INTERVAL_S, Sample, Telemetry, as_text
from pipeline.worker.app import FaustMembership, StageApp, connect, create_app
from pipeline.worker.dlq import DeadLetterWriter, LimitConfig, source_of
from pipeline.worker.health import Check, Health, HealthServer, health_address
from pipeline.worker.lag import LogEnds, lags
from pipeline.worker.loop import StageLoop
from pipeline.worker.stage_calls import StageCalls
from pipeline.worker.starts import LogWatch, Starts
from pipeline.worker.upstream import UpstreamWatch

logger = logging.getLogger(__name__)

CLOSE_S = 2.0
"""How long each of the last steps may take: commit, leaving the group, disconnecting."""

START_S = 60.0
TICK_S = 0.5


class _Running:
    """One stage of the process: its app, its loop and its counts."""

    def __init__(
        self, app: StageApp, loop: StageLoop, telemetry: Telemetry, ends: LogEnds, starts: Starts
    ) -> None:
        self.app = app
        self._starts = starts
        self.loop = loop
        self.telemetry = telemetry
        self._ends = ends
        self.assigned = False

    @property
    def name(self) -> str:
        return self.loop.stage.name

    def call_s(self) -> float:
        return self.loop.call_s

    def assignment(self) -> str:
        return self._starts.waits_for or ("ok" if self.assigned else "none yet")

    def lag(self) -> int | None:
        """Return the number of uncommitted messages of the assigned partitions; None if unknown."""
        partition_lags = list(lags(self.app, self._ends).values())
        return None if None in partition_lags else sum(lag for lag in partition_lags if lag is not None)

    def samples(self) -> list[Sample]:
        stage = {"stage": self.name}
        behind = lags(self.app, self._ends)
        return [
            *self.telemetry.samples(),
            *self.loop.calls.samples(),
            ("partitions", stage, len(behind)),
            *(
                ("lag_messages", {**stage, "topic": topic, "partition": str(partition)}, lag)
                for (topic, partition), lag in behind.items()
                if lag is not None
            ),
            *(
                ("bad_sources", {**stage, "topic": topic}, bad)
                for topic, bad in self.loop.bad_sources.items()
            ),
        ]


class Service:
    """Some stages, each with its own Faust app, one event loop and one producer.

    ``checks`` are what the health endpoint asks besides the assignments, by name; ``expected`` are services
    that are known to send something usable. ``topic_ids`` are the ids of the topics (broker's names) whose
    offsets the store keeps, as they were when the stages were built. ``readings`` takes how far aggregate has
    read, for as long as the service runs.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        stages: Sequence[Stage],
        clock: Clock,
        *,
        checks: Mapping[str, Check] | None = None,
        expected: Collection[str] = frozenset(),
        topic_ids: Mapping[str, str] | None = None,
        readings: Readings | None = None,
    ) -> None:
        broker = Broker.of(settings)
        self._broker = broker
        self._logs = LogWatch(broker, topic_ids or {})
        self._publisher = Publisher(broker, topics, idempotent=settings.idempotent_producer)
        self._ends = LogEnds(broker)
        self._upstream = readings and UpstreamWatch(
            broker, topics, readings, clock, settings.partition_idle_s
        )
        self._tasks = TaskSupervisor()
        self._instance = settings.instance
        self._stop = asyncio.Event()
        self._failed = False
        self.hanging = False
        """Whether something did not end in time, such as a call to the store: a thread may still run."""
        self._drain_s = settings.drain_s
        sources = frozenset(source_of(service.encode()) for service in expected)
        self._running = [self._built(stage, settings, topics, clock, sources) for stage in stages]
        self._health: Health | None = None
        self._server: HealthServer | None = None
        if settings.health:
            address = health_address(settings.health, settings.token)
            self._health = Health(self._running, checks or {}, tasks=self._tasks, token=settings.token)
            self._server = HealthServer(self._health, *address)

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT (returns 0) or until something fails (returns 1).

        A second signal ends the process at once, with what is under way unacknowledged.

        Raises:
            BrokerUnavailable: the broker does not answer at the start.
            ConfigError: the broker refuses the producer, or the health endpoint cannot listen.
        """
        await self._open()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)
        starting = [asyncio.ensure_future(running.app.start()) for running in self._running]
        self._watch()
        try:
            await self._supervise(starting)
        finally:
            for task in starting:
                task.cancel()
            await self._bounded("ending background tasks", CLOSE_S, self._tasks.close())
            await self._shut_down()
        return 1 if self._failed else 0

    def _watch(self) -> None:
        apps = [running.app for running in self._running]
        self._tasks.run("lag", lambda: self._ends.watch(apps))
        self._tasks.run("topic ids", lambda: self._logs.watch(self._refuse))
        if self._upstream:
            self._tasks.run("progress of aggregate", self._upstream.watch)

    async def _open(self) -> None:
        try:
            if self._server is not None:
                logger.info("health: %s", await self._server.start())
            await self._publisher.start()
            if self._instance and not self._publisher.idempotent:
                raise ConfigError(
                    "instance: the embedded broker keeps no partitions for who restarts: leave it off"
                )
        except SmidgenError:
            await self._publisher.stop()
            if self._server is not None:
                await self._server.stop()
            raise

    def _built(
        self, stage: Stage, settings: Settings, topics: Topics, clock: Clock, expected: Collection[str]
    ) -> _Running:
        starts = Starts(stage, topics, self._broker, self._logs, self._stop)
        app = create_app(settings, topics.group(stage.name), starts.of, self._refuse)
        telemetry = Telemetry(stage.name, StageCalls(stage).limited, clock)
        loop = StageLoop(
            stage,
            topics,
            FaustMembership(app),
            self._publisher,
            DeadLetterWriter(self._publisher, topics, stage.name, clock),
            telemetry,
            on_failure=self._fail,
            limit=LimitConfig(
                share=settings.dead_letter_limit,
                least=settings.dead_letter_min,
                after_s=settings.dead_letter_after_s,
            ),
            expected=expected,
        )
        running = _Running(app, loop, telemetry, self._ends, starts)
        connect(app, loop, settings, lambda: self._assigned(running))
        return running

    def _assigned(self, running: _Running) -> None:
        if running.assigned:
            return
        running.assigned = True
        if all(stage.assigned for stage in self._running):
            logger.info("ready: %s", ", ".join(stage.name for stage in self._running))

    def _signalled(self, number: int) -> None:
        if self._stop.is_set():
            logger.warning("%s again: ending at once, unacknowledged", signal.Signals(number).name)
            logging.shutdown()
            os._exit(128 + number)
        self._stop.set()

    def _refuse(self, error: BaseException) -> None:
        """Stop because of an error that a person has to settle; it is logged in one line."""
        logger.error("%s", error)
        self._fail(error)

    def _fail(self, _error: BaseException) -> None:
        self._failed = True
        self._stop.set()

    async def _supervise(self, starting: Sequence[asyncio.Future[None]]) -> None:
        deadline = time.monotonic() + START_S
        next_summary = time.monotonic() + SUMMARY_INTERVAL_S
        while not await is_set_within(self._stop, TICK_S):
            for running, start in zip(self._running, starting, strict=True):
                reason = _failure(start) or running.app.crash_reason
                if reason is not None or running.app.should_stop:
                    extra = {"stage": running.name}
                    logger.error("%s stopped by itself", running.app.conf.id, exc_info=reason, extra=extra)
                    return self._fail(RuntimeError("a consumer stopped"))
            waiting = sorted(running.name for running in self._running if not running.assigned)
            if waiting and time.monotonic() > deadline:
                logger.warning("no assignment yet for %s", ", ".join(waiting))
                deadline += START_S
            if time.monotonic() > next_summary:
                next_summary += SUMMARY_INTERVAL_S
                self._summarise()
        return None

    def _summarise(self) -> None:
        for running in self._running:
            fields = running.telemetry.summary_fields(running.lag())
            logger.info("%s", as_text(fields), extra=fields)

    async def _shut_down(self) -> None:
        """Finish or give up the batches, commit what is acknowledged, leave the groups; each bounded."""
        if self._health is not None:
            self._health.stopping = True
        loops = [running.loop for running in self._running]
        await self._bounded("finishing the batch", self._drain_s, *(loop.stop() for loop in loops))
        started = [running.app for running in self._running if running.app.started]
        await self._bounded("committing", CLOSE_S, *(app.consumer.commit() for app in started))
        await self._bounded("leaving the group", CLOSE_S, *(app.stop() for app in started))
        await self._bounded("closing the producer", CLOSE_S, self._publisher.stop())
        if self._server is not None:
            await self._bounded("closing the health endpoint", CLOSE_S, self._server.stop())
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
