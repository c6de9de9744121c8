"""The gateway as a process: buffer, publisher and servers, until a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from agents.buffer import Buffer
from agents.gateway import grpc_server
from agents.gateway.counts import Counts
from agents.gateway.intake import Intake, Rules
from agents.gateway.receivers import RECEIVERS
from agents.gateway.scrape import Scraper
from agents.gateway.server import listening, make_app
from agents.gateway.targets import load_targets
from agents.publisher import Connect, Delivery, Publisher
from pipeline.clock import Clock
from pipeline.errors import ConfigError
from pipeline.model import Outgoing
from pipeline.telemetry import GATEWAY_WAITING, GATEWAY_WAITING_BYTES, Sample

log = logging.getLogger(__name__)

MAX_WAITING = 500_000
"""Most messages that wait during an outage."""

FLUSH_S = 20.0
"""How long messages that still wait at the end are tried to be published."""


Address = tuple[str, int]
"""Host and port; port 0 takes a free one."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to listen, for gRPC too if it is given, and how much may wait for the broker."""

    http: Address
    grpc: Address | None
    buffer_bytes: int
    targets: Path | None = None  # whose profiles are fetched


class BufferedOutbox:
    """A publisher whose buffer is asked for room before anything is offered: nothing is dropped for it."""

    def __init__(self, connect: Connect, buffer_bytes: int) -> None:
        self._buffer = Buffer(max_messages=MAX_WAITING, max_bytes=buffer_bytes)
        self._publisher = Publisher(connect, self._buffer)

    def start(self) -> None:
        """Begin to publish."""
        self._publisher.start()

    def has_room(self, messages: int, size: int) -> bool:
        """Return whether so many messages, of so many bytes together, fit."""
        return self._buffer.has_room(messages, size)

    def offer(self, message: Outgoing, samples: int) -> None:
        """Take a message; there is room for it."""
        self._publisher.offer(message, samples)

    def metrics(self) -> list[Sample]:
        """Return what waits."""
        return [
            (GATEWAY_WAITING, {}, self._buffer.waiting.messages),
            (GATEWAY_WAITING_BYTES, {}, self._buffer.waiting_bytes),
        ]

    def close(self) -> Delivery:
        """Publish what waits, for a while, and account for every message."""
        return self._publisher.close(FLUSH_S)


async def serve(
    rules: Rules, connect: Connect, endpoint: Endpoint, *, clock: Clock, ready: Callable[[list[str]], None]
) -> bool:
    """Take what agents push until SIGINT or SIGTERM; return whether the broker has everything that was taken.

    ``ready`` is given the addresses of HTTP and gRPC once requests are taken.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    outbox = BufferedOutbox(connect, endpoint.buffer_bytes)
    counts = Counts(clock, [receiver.name for receiver in RECEIVERS])
    intake = Intake(rules, outbox, counts, clock=clock)
    outbox.start()
    try:
        async with AsyncExitStack() as opened:
            app = make_app(
                RECEIVERS,
                intake,
                lambda: [*counts.metrics(), *outbox.metrics()],
                lambda: not outbox.has_room(1, 0),
                clock=clock,
            )
            addresses = [await opened.enter_async_context(listening(app, *endpoint.http))]
            if endpoint.grpc:
                serving = grpc_server.listening(RECEIVERS, intake, *endpoint.grpc, clock=clock)
                addresses.append(await opened.enter_async_context(serving))
            if endpoint.targets:
                scraper = Scraper(intake, clock=clock)
                opened.push_async_callback(scraper.close)
                _follow(scraper, endpoint.targets)
                loop.add_signal_handler(signal.SIGHUP, _follow, scraper, endpoint.targets)
            ready(addresses)
            await stop.wait()
    finally:
        intake.close()
        delivery = await asyncio.to_thread(outbox.close)
    return _account(delivery)


def _follow(scraper: Scraper, path: Path) -> None:
    """Read the file of targets; a wrong one leaves those that there are."""
    try:
        scraper.follow(load_targets(path))
    except ConfigError as error:
        log.error("targets stay as they are: %s", error)


def _account(delivery: Delivery) -> bool:
    """Say what became of everything; return whether nothing was lost."""
    log.info("published %s", delivery.published)
    if delivery.dropped.messages:
        log.warning("refused by the broker: %s", delivery.dropped)
    if delivery.unsent.messages:
        log.warning("not confirmed by the broker when the gateway ended: %s", delivery.unsent)
    return not (delivery.dropped.messages or delivery.unsent.messages)
