"""Publishes messages and waits until they are on their topics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from aiokafka.partitioner import murmur2

from pipeline.errors import ConfigError, SmidgenError
from pipeline.kafka.connection import TIMEOUT_S, Broker, as_broker, check, denied, why_not
from pipeline.kafka.identity import quiet_client
from pipeline.model import Outgoing
from pipeline.topics import Topic, Topics

logger = logging.getLogger(__name__)

OVERHEAD_BYTES = 64 * 1024
"""Room for headers and the batch around a message of the largest size."""

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 10.0
FINISH_S = 3.0
"""How long a publication under way may still take once it is given up."""


_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


class MessagesRefused(SmidgenError):
    """The broker will never take some messages, for their size; it has all others of the same call.

    ``reasons`` holds why, by a message's place in that call.
    """

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(sorted(set(reasons.values()))))
        self.reasons = dict(reasons)


@dataclass(frozen=True, slots=True)
class Packet:
    """A message as bytes; ``topic`` is a logical name. Without a key, ``partition`` says where it goes."""

    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int = 0


class Publisher:
    """One producer (acks=all, zstd) that repeats what failed until the broker takes it.

    A message may appear on its topic twice, never not at all, and messages of one key stay in order.
    """

    def __init__(
        self, broker: Broker | str, topics: Topics, *, idempotent: bool, first_retry_s: float = FIRST_RETRY_S
    ) -> None:
        self._broker = as_broker(broker)
        self._topics = topics
        self._idempotent = idempotent
        self._first_retry_s = first_retry_s
        self._producer: AIOKafkaProducer | None = None
        self._connecting = asyncio.Lock()

    async def start(self, *, timeout_s: float = TIMEOUT_S) -> None:
        """Connect.

        Raises:
            BrokerUnavailable: no answer within ``timeout_s``.
            ConfigError: the broker refuses us or idempotent producers, or we cannot trust it.
        """
        with quiet_client():
            try:
                await asyncio.wait_for(self._connected(), timeout_s)
            except (KafkaConnectionError, OSError, TimeoutError) as error:
                raise await why_not(self._broker, error, timeout_s=timeout_s) from None
            except KafkaError as error:
                hint = "; try --no-idempotent-producer" if self._idempotent else ""
                raise ConfigError(f"broker {self._broker} refuses the producer: {error}{hint}") from None

    async def stop(self) -> None:
        """Disconnect; what is under way is finished first if it can be."""
        await self._discard()

    def fits(self, message: Outgoing) -> bool:
        """Tell whether a message is within the largest size of its topic."""
        return len(message.value) <= self._topics[message.topic].max_message_bytes

    async def publish(self, messages: Sequence[Outgoing], give_up: asyncio.Event) -> bool:
        """Put messages on their topics, in order; return False only if ``give_up`` was set before.

        Raises:
            MessagesRefused: the broker will never take some of them; all others are on their topics.
        """
        packets = [Packet(m.topic, m.key.encode(), m.value, m.headers) for m in messages]
        return await self.publish_packets(packets, give_up)

    async def publish_packets(self, packets: Sequence[Packet], give_up: asyncio.Event) -> bool:
        """Like ``publish``, for messages that are already bytes."""
        left = dict(enumerate(packets))
        refused: dict[int, str] = {}
        delay_s = self._first_retry_s
        while left:
            attempt = asyncio.ensure_future(self._send(list(left.values())))
            try:
                await _finished(attempt, give_up)
                if not attempt.done():
                    return False
                suspects = [list(left)[place] for place in attempt.result()]
                if not suspects:
                    break
                await self._discard()  # after a refusal the broker misses numbers of an idempotent producer
                if len(left) == 1:
                    refused = {0: f"{len(packets[0].value)} bytes are more than the broker takes"}
                    break
                for number in suspects:  # each alone: a small one may only have been in a batch too large
                    try:
                        if not await self.publish_packets([left.pop(number)], give_up):
                            return False
                    except MessagesRefused as error:
                        refused[number] = error.reasons[0]
                continue
            except (KafkaError, OSError) as error:
                reason = await self._reason(error, give_up)
                logger.warning("cannot publish %d messages, trying again: %s", len(left), reason)
                await self._discard()
            finally:
                attempt.cancel()
            if await is_set_within(give_up, delay_s):
                return False
            delay_s = min(delay_s * 2, LAST_RETRY_S)
        if refused:
            raise MessagesRefused(refused)
        return True

    async def _send(self, packets: Sequence[Packet]) -> list[int]:
        """Publish and wait; return the places of those in batches that are too large for their topic."""
        producer = await self._connected()
        confirmed = []
        for packet in packets:
            topic = self._topics[packet.topic]
            confirmed.append(
                await producer.send(
                    topic.name,
                    value=packet.value,
                    key=packet.key,
                    partition=partition_of(packet, topic),
                    headers=list(packet.headers),
                )
            )
        outcomes = await asyncio.gather(*confirmed, return_exceptions=True)
        if too_large := [place for place, outcome in enumerate(outcomes) if isinstance(outcome, _TOO_LARGE)]:
            return too_large
        for outcome in outcomes:
            if isinstance(outcome, asyncio.CancelledError):  # the producer was closed under it
                raise KafkaConnectionError("the producer was closed")
            if isinstance(outcome, BaseException):
                raise outcome
        return []

    async def _connected(self) -> AIOKafkaProducer:
        async with self._connecting:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    **self._broker.arguments(),
                    acks="all",
                    enable_idempotence=self._idempotent,
                    compression_type="zstd",
                    max_request_size=largest_message_bytes(self._topics) + OVERHEAD_BYTES,
                    linger_ms=5,
                )
                try:
                    await producer.start()
                except ValueError as error:  # the other side answered the login with nonsense
                    await producer.stop()
                    raise KafkaConnectionError(str(error)) from None
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
            return self._producer

    async def _reason(self, error: BaseException, give_up: asyncio.Event) -> str:
        """Tell why the broker does not take messages; it says more to who logs in than a client passes on."""
        if lacks := denied(self._broker, error):
            return f"broker {self._broker} {lacks}"
        if isinstance(error, KafkaConnectionError) and self._broker.security.protocol != "PLAINTEXT":
            asking = asyncio.ensure_future(check(self._broker, timeout_s=FINISH_S))
            try:
                await _finished(asking, give_up)
                if asking.done() and (found := asking.result()):
                    return str(found)
            finally:
                asking.cancel()
        return str(error)

    async def _discard(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                await asyncio.wait_for(producer.stop(), FINISH_S)


def partition_of(packet: Packet, topic: Topic) -> int:
    """Return the partition of a message: Kafka's default (murmur2 of the key) over topics.yaml's count."""
    if packet.key is None:
        return packet.partition % topic.partitions
    hashed: int = murmur2(packet.key)
    return (hashed & 0x7FFFFFFF) % topic.partitions


def largest_message_bytes(topics: Topics) -> int:
    """Return the size of the largest message that any topic takes."""
    return max(topic.max_message_bytes for topic in topics.values())


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
