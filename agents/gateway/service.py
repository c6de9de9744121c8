"""The gateway as a process: buffer, publisher and servers, until a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agents.gateway import grpc_server
from agents.gateway.counts import GatewayCounts
from agents.gateway.fleet import AgentFleet, add_fleet_routes
from agents.gateway.intake import IntakeRules, RequestIntake
from agents.gateway.receivers import RECEIVERS
from agents.gateway.scrape import Scraper
from agents.gateway.server import make_app
from agents.gateway.service_metrics import ServiceMetrics
from agents.gateway.targets import load_targets
from agents.metrics import MetricMap
from agents.publishing.message_queue import MessageQueue, Overflow
from agents.publishing.publisher import BackgroundPublisher, Connect, Delivery, report_delivery
from agents.publishing.spool import Spool
from pipeline.http.serving import listening
from pipeline.model.clock import Clock
from pipeline.model.errors import ConfigError
from pipeline.processes import TaskSupervisor, stop_event
from pipeline.telemetry.metrics import GATEWAY_SPOOL, GATEWAY_WAITING, GATEWAY_WAITING_BYTES, Sample

log = logging.getLogger(__name__)

PUBLISH_S = 5.0
"""Seconds between two checks for complete intervals of metrics."""

MOST_PUBLISHED = 10_000
"""Messages of intervals that need room before they are published."""

FLUSH_S = 20.0
"""Seconds for which waiting messages are still published at the end."""


Address = tuple[str, int]
"""Host and port; port 0 takes a free one."""


@dataclass(frozen=True, slots=True)
class SpoolOptions:
    """The folder where messages wait that memory cannot hold, and how many bytes it may have."""

    folder: Path
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Addresses to listen on, that of gRPC if it is given, and how much may wait for the broker."""

    http: Address
    grpc: Address | None
    buffer_bytes: int
    spool: SpoolOptions | None = None
    targets: Path | None = None  # whose profiles and metrics are fetched
    fleet: AgentFleet | None = None  # rules that host agents follow
    metric_map: MetricMap = field(default_factory=MetricMap)


class BufferedOutbox(BackgroundPublisher):
    """A publisher whose callers ask for room before they add messages, so that none is dropped.

    Raises:
        ConfigError: the spool's folder cannot be written to, or another process has it.
    """

    def __init__(
        self,
        connect: Connect,
        buffer_bytes: int,
        spool: SpoolOptions | None = None,
        tasks: TaskSupervisor | None = None,
    ) -> None:
        on_disk = Spool(spool.folder, spool.max_bytes) if spool else None
        queue = MessageQueue(max_bytes=buffer_bytes, overflow=Overflow.KEEP, spool=on_disk)
        super().__init__(connect, queue, tasks)
        self.has_room = queue.has_room

    def metrics(self) -> list[Sample]:
        """Return the count of waiting messages."""
        return [
            (GATEWAY_WAITING, {}, self._queue.waiting.messages),
            (GATEWAY_WAITING_BYTES, {}, self._queue.waiting_bytes),
            (GATEWAY_SPOOL, {}, self._queue.spooled_bytes),
        ]

    def close(self, timeout_s: float = FLUSH_S) -> Delivery:
        """Publish waiting messages for a limited time, keep the rest in the spool, and count all messages."""
        return super().close(timeout_s)


async def serve(
    rules: IntakeRules,
    connect: Connect,
    endpoint: Endpoint,
    *,
    clock: Clock,
    ready: Callable[[list[str]], None],
) -> bool:
    """Take requests until SIGINT or SIGTERM; return whether the broker has all messages that were taken.

    ``ready`` is called with the addresses of HTTP and gRPC once requests are taken.

    Raises:
        ConfigError: the address cannot be listened on, or the spool cannot be used.
    """
    stop = stop_event()
    tasks = TaskSupervisor()
    outbox = BufferedOutbox(connect, endpoint.buffer_bytes, endpoint.spool, tasks)
    metrics = ServiceMetrics(endpoint.metric_map)
    receivers = (*RECEIVERS, *metrics.receivers)
    counts = GatewayCounts(clock, [receiver.name for receiver in receivers])
    intake = RequestIntake(rules, outbox, counts, clock=clock)
    outbox.start()
    try:
        async with AsyncExitStack() as opened:
            app = make_app(
                receivers,
                intake,
                lambda: [*counts.metrics(), *outbox.metrics(), *metrics.metrics(), *tasks.samples()],
                lambda: tasks.problem() if outbox.has_room(1, 0) else "the buffer is full",
                clock=clock,
            )
            reloads: list[Callable[[], None]] = []
            if endpoint.fleet:
                add_fleet_routes(app, endpoint.fleet, intake)
                reloads.append(endpoint.fleet.reload)
            addresses = [await opened.enter_async_context(listening(app, *endpoint.http))]
            if endpoint.grpc:
                serving = grpc_server.listening(receivers, intake, *endpoint.grpc, clock=clock)
                addresses.append(await opened.enter_async_context(serving))
            if endpoint.targets:
                scraper = Scraper(intake, metrics.fetched, clock=clock, tasks=tasks)
                opened.push_async_callback(scraper.close)
                reloads.append(partial(_follow, scraper, endpoint.targets))
                reloads[-1]()
            if reloads:
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _call_all, reloads)
            tasks.repeat("metrics", PUBLISH_S, partial(_publish_metrics, metrics, outbox, clock))
            opened.push_async_callback(tasks.close)
            ready(addresses)
            await stop.wait()
    finally:
        intake.close()
        _offer_complete(metrics, outbox, clock)
        delivery = await asyncio.to_thread(outbox.close)
    return report_delivery(delivery, "gateway", lost="refused by the broker, or lost with the spool:")


async def _publish_metrics(metrics: ServiceMetrics, outbox: BufferedOutbox, clock: Clock) -> None:
    """Publish intervals of metrics as they become complete; without room they stay in the conversion."""
    _offer_complete(metrics, outbox, clock)


def _offer_complete(metrics: ServiceMetrics, outbox: BufferedOutbox, clock: Clock) -> None:
    if outbox.has_room(MOST_PUBLISHED, 0):
        for message in metrics.complete(clock()):
            outbox.offer(message, 0)


def _call_all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _follow(scraper: Scraper, path: Path) -> None:
    """Read the file of targets; if it is wrong, the present targets stay."""
    try:
        scraper.follow(load_targets(path))
    except ConfigError as error:
        log.error("targets stay as they are: %s", error)
