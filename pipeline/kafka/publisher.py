"""Publisher of a worker: one producer, which repeats what failed until the messages are on their topics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pipeline.kafka.connection import TIMEOUT_S, Broker, as_broker, quiet_client
from pipeline.kafka.partitions import partition_of_key
from pipeline.kafka.producer import MessagesRefused, Packet, Producer, ProducerOptions
from pipeline.model import Outgoing
from pipeline.model.errors import BrokerUnavailable, ConfigError
from pipeline.settings.topics import Topics

logger = logging.getLogger(__name__)

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 10.0
FINISH_S = 3.0
"""How long a publication under way may still take once it is given up."""


class Publisher:
    """A producer that is connected anew and repeats what failed until the broker takes it.

    A message may appear on its topic twice, never not at all, and messages of one key stay in order.
    """

    def __init__(
        self, broker: Broker | str, topics: Topics, *, idempotent: bool, first_retry_s: float = FIRST_RETRY_S
    ) -> None:
        self._broker = as_broker(broker)
        self._topics = topics
        self._options = ProducerOptions(idempotent=idempotent)
        self._first_retry_s = first_retry_s
        self._producer: Producer | None = None
        self._connecting = asyncio.Lock()

    async def start(self) -> None:
        """Connect.

        Raises:
            BrokerUnavailable: no answer within TIMEOUT_S.
            ConfigError: the broker refuses us, or we cannot trust it.
        """
        with quiet_client():
            await self._connected(TIMEOUT_S)

    async def stop(self) -> None:
        """Disconnect; what is under way is finished first if it can be."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.close()

    @property
    def idempotent(self) -> bool:
        """Whether the broker, once connected, recognises a message that it has already."""
        return self._options.idempotent and (self._producer is None or self._producer.idempotent)

    def fits(self, message: Outgoing) -> bool:
        """Return whether a message is within the largest size of its topic."""
        return len(message.value) <= self._topics[message.topic].max_message_bytes

    async def publish(self, messages: Sequence[Outgoing], give_up: asyncio.Event) -> bool:
        """Put messages on their topics, in order; return False only if ``give_up`` was set before.

        Raises:
            MessagesRefused: the broker will never take some of them; all others are on their topics.
        """
        return await self.publish_packets([Packet.of(message) for message in messages], give_up)

    async def publish_packets(self, packets: Sequence[Packet], give_up: asyncio.Event) -> bool:
        """Like ``publish``, for messages that are already bytes."""
        left = {
            index: replace(packet, partition=partition_of(packet, self._topics))
            for index, packet in enumerate(packets)
        }
        refused: dict[int, str] = {}
        delay_s = self._first_retry_s
        while left:
            attempt = asyncio.ensure_future(self._send(list(left.values())))
            try:
                await _finished(attempt, give_up)
                if not attempt.done():
                    return False
                attempt.result()
                break
            except MessagesRefused as error:
                await self.stop()  # after a refusal the broker misses numbers of an idempotent producer
                if len(left) == 1:
                    refused[next(iter(left))] = error.reasons[0]
                    break
                # Each alone: a small one may only have been in a batch too large.
                suspects = [list(left)[index] for index in error.reasons]
                for index in suspects:
                    try:
                        if not await self.publish_packets([left.pop(index)], give_up):
                            return False
                    except MessagesRefused as alone:
                        refused[index] = alone.reasons[0]
                continue
            except (BrokerUnavailable, ConfigError) as error:
                logger.warning("cannot publish %d messages, trying again: %s", len(left), error)
                await self.stop()
            finally:
                attempt.cancel()
            if await is_set_within(give_up, delay_s):
                return False
            delay_s = min(delay_s * 2, LAST_RETRY_S)
        if refused:
            raise MessagesRefused(refused)
        return True

    async def _send(self, packets: Sequence[Packet]) -> None:
        producer = await self._connected(self._options.request_timeout_s)
        await producer.send_packets(packets)

    async def _connected(self, timeout_s: float) -> Producer:
        async with self._connecting:
            if self._producer is None:
                self._producer = await Producer.open(
                    self._broker, self._topics, self._options, timeout_s=timeout_s
                )
            return self._producer


def partition_of(packet: Packet, topics: Topics) -> int:
    """Return the partition of a message, of as many as topics.yaml says."""
    partitions = topics[packet.topic].partitions
    if packet.key is None:
        return (packet.partition or 0) % partitions
    return partition_of_key(packet.key, partitions, topics.reserved(packet.topic))


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait until an event is set, at most so long; return whether it is."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


async def _finished(attempt: asyncio.Future[Any], give_up: asyncio.Event) -> None:
    """Wait for an attempt, or until it is given up and has had a little time to finish."""
    waiting: asyncio.Future[Any] = asyncio.ensure_future(give_up.wait())
    either: set[asyncio.Future[Any]] = {attempt, waiting}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not attempt.done():
            await asyncio.wait({attempt}, timeout=FINISH_S)
    finally:
        waiting.cancel()
