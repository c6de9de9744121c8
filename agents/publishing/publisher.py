"""Background publisher of an agent, a thread that empties a queue: sampling never waits for a broker."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from agents.publishing.message_queue import MessageQueue
from agents.publishing.pending import Pending, Tally
from pipeline.model import Outgoing
from pipeline.model.errors import BrokerUnavailable, InvalidMessage
from pipeline.processes import TaskSupervisor

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 5.0
STALLED_S = 5.0
"""A message that is not confirmed after this long means that the broker is away."""


class Transport(Protocol):
    """An open connection: ``pipeline.kafka.Producer``, or a test's."""

    async def send(self, message: Outgoing) -> None:
        """Publish one message and wait for the confirmation.

        Raises:
            BrokerUnavailable: it may be tried again.
            InvalidMessage: it will never be taken.
        """

    async def close(self) -> None:
        """Close the connection."""


Connect = Callable[[], Awaitable[Transport]]
"""Opens a connection; raises BrokerUnavailable."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Outcome of all messages that were offered."""

    published: Tally
    dropped: Tally  # dropped at the queue's bounds, or refused by the broker
    unsent: Tally  # not confirmed when the publisher was closed
    kept: Tally = Tally()  # likewise, but in a spool that the next process goes on with


class BackgroundPublisher:
    """A thread that publishes what is offered, in order, and outlives outages of the broker.

    During an outage messages wait in the queue. The log says when an outage begins, when messages begin to be
    dropped, and at its end how long it was and what was lost. ``pipeline.kafka.Publisher`` has no queue: it
    serves an event loop, and repeats the batch that it is given until the broker has all of it.
    """

    def __init__(self, connect: Connect, queue: MessageQueue, tasks: TaskSupervisor | None = None) -> None:
        self.tasks = tasks or TaskSupervisor()
        """Runs the publishing: what it knows of failures belongs to the process's health."""
        self._connect = connect
        self._queue = queue
        self._transport: Transport | None = None
        self._published = Tally()
        self._refused = Tally()
        self._outage_began: float | None = None
        self._dropped_before = Tally()  # when a message was last confirmed
        self._reported_drops = False
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()
        self._started.wait()

    def offer(self, message: Outgoing, samples: int = 0) -> None:
        """Take a message to publish, from any thread, without ever waiting."""
        dropped = self._queue.put(Pending(message, samples))
        if dropped and not self._reported_drops:
            self._reported_drops = True
            log.warning("the buffer is full: the oldest messages are being dropped")
        self._wake()

    def close(self, timeout_s: float) -> Delivery:
        """Publish what waits for at most ``timeout_s`` seconds, end, and account for every message.

        What is not published then stays in the queue's spool for the next process, if it has one.
        """
        self._closing = True
        if self._outage_began is not None:
            log.warning("what waits is tried to be published for %.0f s more", timeout_s)
        self._wake()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._cancel()
            self._thread.join(2 * STALLED_S)
        self._queue.put_back()
        spooled = self._queue.close()
        delivery = self.delivery
        return replace(delivery, unsent=delivery.unsent.minus(spooled), kept=spooled)

    @property
    def delivery(self) -> Delivery:
        """Outcome of all messages so far."""
        return Delivery(self._published, self._queue.dropped + self._refused, self._queue.waiting)

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._work = self.tasks.run("publisher", self._publish_all)
        self._started.set()
        await asyncio.wait({self._work})
        if self._transport:
            await self._transport.close()

    async def _publish_all(self) -> None:
        self._queue.put_back()  # a message that a failure left in hand is the next one again
        while True:
            self._news.clear()
            while pending := self._queue.take():
                await self._deliver(pending)
            if self._closing:
                return
            await self._news.wait()

    async def _deliver(self, pending: Pending) -> None:
        """Publish one message, however many attempts and however long it takes."""
        retry_s = FIRST_RETRY_S
        while True:
            try:
                await self._attempt(pending.message)
            except InvalidMessage as error:
                log.error("a message with %d samples was refused: %s", pending.samples, error)
                self._refused = self._refused.plus(pending)
                return
            except BrokerUnavailable as error:
                log.debug("not published: %s", error)
                self._away(str(error))
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, LAST_RETRY_S)
            else:
                self._published = self._published.plus(pending)
                self._back()
                return

    async def _attempt(self, message: Outgoing) -> None:
        transport = self._transport = self._transport or await self._connect()
        sending = asyncio.ensure_future(transport.send(message))
        try:
            done, _ = await asyncio.wait({sending}, timeout=STALLED_S)
            if not done:
                self._away("the broker does not answer", since_s=STALLED_S)
            await sending
        except Exception:
            # After a refusal the broker misses a number of an idempotent producer, and takes no more of it.
            self._transport = None
            await transport.close()
            raise
        finally:
            sending.cancel()

    def _away(self, reason: str, *, since_s: float = 0.0) -> None:
        if self._outage_began is None:
            self._outage_began = time.monotonic() - since_s
            log.warning("%s; sampling goes on and messages wait in the buffer", reason)

    def _back(self) -> None:
        dropped = self._queue.dropped
        if self._outage_began is not None:
            lasted_s = time.monotonic() - self._outage_began
            meanwhile = dropped.minus(self._dropped_before)
            log.warning("the broker is back after %.0f s; dropped meanwhile: %s", lasted_s, meanwhile)
            self._outage_began = None
            self._reported_drops = False
        self._dropped_before = dropped

    def _wake(self) -> None:
        self._on_loop(self._news.set)

    def _cancel(self) -> None:
        if self._work:
            self._on_loop(self._work.cancel)

    def _on_loop(self, action: Callable[[], object]) -> None:
        if self._loop and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(action)
            except RuntimeError:  # closed between the two lines: nobody listens
                return


def report_delivery(delivery: Delivery, program: str, *, lost: str = "dropped") -> bool:
    """Log what became of everything that was offered; return whether nothing was lost."""
    if delivery.published.messages:
        log.info("published %s", delivery.published)
    if delivery.dropped.messages:
        log.warning("%s %s", lost, delivery.dropped)
    if delivery.unsent.messages:
        log.warning("not confirmed by the broker when the %s ended: %s", program, delivery.unsent)
    if delivery.kept.messages:
        log.warning("kept in the spool for the next start: %s", delivery.kept)
    return not (delivery.dropped.messages or delivery.unsent.messages)
