"""The one Kafka producer: every attempt ends with messages on their topics, refused, or not published."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from aiokafka import AIOKafkaProducer, errors

from pipeline.kafka.connection import (
    FAILURES,
    TIMEOUT_S,
    Broker,
    denied,
    finish,
    listed_requests,
    quiet_client,
    text_of,
    why_not,
)
from pipeline.kafka.partitions import partition_of_key
from pipeline.model import Outgoing
from pipeline.model.errors import BrokerUnavailable, ConfigError, InvalidMessage, SmidgenError
from pipeline.settings.topics import Topics

log = logging.getLogger(__name__)

OVERHEAD_BYTES = 64 * 1024
"""Room for headers and the batch around a message of the largest size."""

CLOSE_S = 3.0
"""How long each of the two steps of closing may take."""

_WRITE_TXN_MARKERS = 27
"""Kafka's number of the request that ends a transaction on a partition."""

_said: set[tuple[str, ...]] = set()
"""Brokers of which it was said that they take no idempotent producers."""

_DENIALS = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError, errors.InvalidMessageError)


class MessagesRefused(InvalidMessage):
    """The broker refuses some messages of a call; ``reasons`` holds why, by the index in that call."""

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
    partition: int | None = None

    @classmethod
    def of(cls, message: Outgoing) -> Packet:
        """Make it of a message of ours."""
        return cls(message.topic, message.key.encode(), message.value, message.headers)


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """How a producer works; it always waits for all replicas and packs with zstd.

    An idempotent one waits out an outage however long it is, so that the broker recognises a message that it
    has already; without idempotence a message whose confirmation was lost may be published twice.
    """

    idempotent: bool
    client_id: str | None = None
    request_timeout_s: float = 40.0
    linger_ms: int = 5


class Producer:
    """An open connection to a broker that publishes."""

    def __init__(
        self, client: AIOKafkaProducer, broker: Broker, topics: Topics, *, idempotent: bool = True
    ) -> None:
        self.idempotent = idempotent
        """Whether the broker recognises a message that it has already."""
        self._client = client
        self._broker = broker
        self._topics = topics

    @classmethod
    async def open(
        cls, broker: Broker, topics: Topics, options: ProducerOptions, *, timeout_s: float = TIMEOUT_S
    ) -> Self:
        """Connect; without idempotence if this is a broker that has none, which is said once.

        Raises:
            BrokerUnavailable: nothing answers within ``timeout_s``.
            ConfigError: the broker refuses us, or we cannot trust it.
        """
        try:
            return await cls._opened(broker, topics, options, timeout_s)
        except errors.UnknownError as error:
            if not options.idempotent or not await _lacks_transactions(broker, timeout_s):
                raise await _refusal(broker, error, options, timeout_s) from None
        if broker.servers not in _said:
            _said.add(broker.servers)
            log.info("broker %s takes no idempotent producers: a message may arrive twice", broker)
        return await cls._opened(broker, topics, replace(options, idempotent=False), timeout_s)

    @classmethod
    async def _opened(
        cls, broker: Broker, topics: Topics, options: ProducerOptions, timeout_s: float
    ) -> Self:
        named: dict[str, Any] = {"client_id": options.client_id} if options.client_id else {}
        client = AIOKafkaProducer(
            **broker.arguments(),
            **named,
            acks="all",
            compression_type="zstd",
            enable_idempotence=options.idempotent,
            linger_ms=options.linger_ms,
            max_request_size=largest_message_bytes(topics) + OVERHEAD_BYTES,
            request_timeout_ms=int(options.request_timeout_s * 1000),
        )
        producer = cls(client, broker, topics, idempotent=options.idempotent)
        async with contextlib.AsyncExitStack() as undone:
            undone.push_async_callback(producer.close)
            try:
                with quiet_client():
                    async with asyncio.timeout(timeout_s):
                        await client.start()
            except errors.UnknownError:
                raise
            except FAILURES as error:
                raise await _refusal(broker, error, options, timeout_s) from None
            undone.pop_all()
        return producer

    async def send(self, message: Outgoing) -> None:
        """Publish one message and wait until every replica has it; raises what ``send_packets`` does."""
        await self.send_packets([Packet.of(message)])

    async def send_packets(self, packets: Sequence[Packet]) -> list[int]:
        """Publish messages and wait until every replica has them; return their offsets.

        Raises:
            MessagesRefused: the broker never takes some, or others that travelled in one batch with them.
            BrokerUnavailable: some are not published; they may be tried again.
        """
        sent: list[Awaitable[Any]] = []
        reasons: dict[int, str] = {}
        for index, packet in enumerate(packets):
            try:
                sent.append(await self._enqueue(packet))
            except _DENIALS as error:
                reasons[index] = self._reason(packet, error)
                sent.append(asyncio.sleep(0))
            except (errors.KafkaError, OSError, TimeoutError) as error:
                raise BrokerUnavailable(self._failure(packet, error)) from error
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        for index, outcome in enumerate(outcomes):
            if isinstance(outcome, _DENIALS):
                reasons[index] = self._reason(packets[index], outcome)
        if reasons:
            raise MessagesRefused(reasons)
        for packet, outcome in zip(packets, outcomes, strict=True):
            if isinstance(outcome, errors.KafkaError | OSError | TimeoutError):
                raise BrokerUnavailable(self._failure(packet, outcome)) from outcome
            if isinstance(outcome, asyncio.CancelledError):
                raise BrokerUnavailable(f"broker {self._broker}: the producer was closed")
            if isinstance(outcome, BaseException):
                raise outcome
        return [int(outcome.offset) for outcome in outcomes if not isinstance(outcome, BaseException)]

    async def close(self) -> None:
        """Close within twice CLOSE_S; what the broker has not confirmed by then may be lost."""
        await finish(self._client.stop(), CLOSE_S)
        await finish(self._client.client.close(), CLOSE_S)

    async def _enqueue(self, packet: Packet) -> Awaitable[Any]:
        confirmation: Awaitable[Any] = await self._client.send(
            self._topics[packet.topic].name,
            value=packet.value,
            key=packet.key,
            partition=await self._partition(packet),
            headers=list(packet.headers),
        )
        return confirmation

    async def _partition(self, packet: Packet) -> int | None:
        """Return where a message goes if that is for us to say, and not for the client's default.

        Who has the new topics.yaml before ``smidgen topics apply`` goes on with the partitions there are.
        """
        reserved = self._topics.reserved(packet.topic)
        if packet.partition is not None or packet.key is None or not reserved:
            return packet.partition
        topic = self._topics[packet.topic]
        wanted = partition_of_key(packet.key, topic.partitions, reserved)
        return wanted if wanted in await self._client.partitions_for(topic.name) else None

    def _reason(self, packet: Packet, error: BaseException) -> str:
        return f"topic {self._topics[packet.topic].name}: {text_of(error)}"

    def _failure(self, packet: Packet, error: BaseException) -> str:
        if isinstance(error, errors.UnknownTopicOrPartitionError):
            name = self._topics[packet.topic].name
            return f"broker {self._broker}: no topic {name} (create it: smidgen topics apply)"
        return f"broker {self._broker}: {denied(self._broker, error) or text_of(error)}"


def largest_message_bytes(topics: Topics) -> int:
    """Return the size of the largest message that any topic takes."""
    return max(topic.max_message_bytes for topic in topics.values())


async def _refusal(
    broker: Broker, error: BaseException, options: ProducerOptions, timeout_s: float
) -> SmidgenError:
    unreachable = isinstance(error, errors.KafkaConnectionError) or not isinstance(error, errors.KafkaError)
    if unreachable or denied(broker, error):
        return await why_not(broker, error, timeout_s=min(timeout_s, TIMEOUT_S))
    hint = "; try --no-idempotent-producer" if options.idempotent else ""
    return ConfigError(f"broker {broker} refuses the producer: {text_of(error)}{hint}")


async def _lacks_transactions(broker: Broker, timeout_s: float) -> bool:
    """Return whether the broker does not even know the request that ends a transaction on a partition.

    Every Kafka that has idempotent producers lists it, whatever else fails there. The embedded broker lists
    InitProducerId, and refuses it.
    """
    listed = await listed_requests(broker, timeout_s=timeout_s)
    return bool(listed) and _WRITE_TXN_MARKERS not in listed
