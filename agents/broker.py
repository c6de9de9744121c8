"""The connection to Kafka that everything in this package publishes through."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

import aiokafka
from aiokafka import errors

from pipeline.config import Settings
from pipeline.errors import BrokerUnavailable, ConfigError, InvalidMessage
from pipeline.kafka.connection import FAILURES, Broker, bootstrap_servers, check, denied, why_not
from pipeline.model import Outgoing
from pipeline.topics import Topics

CONNECT_S = 10.0
REQUEST_S = 10.0
CLOSE_S = 3.0
"""How long connecting, one request, and closing may take."""

CHECK_S = 3.0
"""How long a server may take to say whether it lets us in."""

OVERHEAD_BYTES = 4096
"""What a message needs besides its value: key, headers and the record's own fields."""


class Connection:
    """A producer with ``acks=all`` and zstd; idempotent if the settings say so."""

    def __init__(self, producer: aiokafka.AIOKafkaProducer, broker: Broker, topics: Topics) -> None:
        self._producer = producer
        self._broker = broker
        self._topics = topics

    @classmethod
    async def open(cls, settings: Settings, topics: Topics) -> Self:
        """Connect; certificates and keys are read anew, since they may have been replaced.

        Raises:
            BrokerUnavailable: nothing answers there, it refuses us or this producer, or cannot be trusted.
        """
        try:
            broker = Broker.of(settings)
        except ConfigError as error:
            raise BrokerUnavailable(str(error)) from None
        producer = aiokafka.AIOKafkaProducer(
            **broker.arguments(),
            client_id="smidgen-agent",
            acks="all",
            compression_type="zstd",
            enable_idempotence=settings.idempotent_producer,
            max_request_size=max(topic.max_message_bytes for topic in topics.values()) + OVERHEAD_BYTES,
            request_timeout_ms=int(REQUEST_S * 1000),
        )
        connection = cls(producer, broker, topics)
        try:
            async with asyncio.timeout(CONNECT_S):
                await producer.start()
        except FAILURES as error:
            await connection.close()
            raise BrokerUnavailable(
                await _reason(broker, error, idempotent=settings.idempotent_producer)
            ) from None
        return connection

    async def send(self, message: Outgoing) -> None:
        """Publish one message and wait until every replica has it.

        An idempotent producer waits out an outage however long it is, so that the broker can recognise a
        message that it has already; without idempotence a message whose acknowledgement was lost may be
        published twice.

        Raises:
            BrokerUnavailable: it is not published; it may be tried again.
            InvalidMessage: the broker will never take this message.
        """
        name = self._topics[message.topic].name
        try:
            await self._producer.send_and_wait(
                name, message.value, key=message.key.encode(), headers=list(message.headers)
            )
        except (errors.MessageSizeTooLargeError, errors.InvalidMessageError) as error:
            raise InvalidMessage(f"topic {name}: {_text(error)}") from None
        except errors.UnknownTopicOrPartitionError:
            raise BrokerUnavailable(
                f"broker {self._broker}: no topic {name} (create it: smidgen topics apply)"
            ) from None
        except (errors.KafkaError, OSError, TimeoutError) as error:
            lacks = denied(self._broker, error)
            raise BrokerUnavailable(f"broker {self._broker}: {lacks or _text(error)}") from None

    async def close(self) -> None:
        """Close, within CLOSE_S; what the broker has not confirmed by then may be lost."""
        with suppress(errors.KafkaError, OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._producer.stop()
        with suppress(errors.KafkaError, OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._producer.client.close()


def check_address(broker: str) -> None:
    """Check a setting of bootstrap servers.

    Raises:
        ConfigError: it is not a list of host:port.
    """
    bootstrap_servers(broker)


def check_broker(settings: Settings) -> None:
    """Check the settings of the broker, and that it lets us in if it can be reached.

    An agent outlives outages; a wrong password or certificate it would wait out for ever.

    Raises:
        ConfigError: a setting is wrong, the broker refuses us, or we cannot trust it.
    """
    broker = Broker.of(settings)
    if broker.security.protocol != "PLAINTEXT":
        failure = asyncio.run(check(broker, timeout_s=CHECK_S))
        if isinstance(failure, ConfigError):
            raise failure


def publish_once(messages: Sequence[Outgoing], settings: Settings, topics: Topics) -> None:
    """Publish messages in order and wait until all are confirmed.

    Raises:
        ConfigError: the broker's address is wrong, it refuses us, or we cannot trust it.
        BrokerUnavailable: the broker does not answer; the messages before may be published.
        InvalidMessage: the broker does not take a message.
    """
    check_broker(settings)
    asyncio.run(_publish(messages, settings, topics))


def quiet_client(settings: Settings) -> None:
    """Keep the Kafka client's own log out of ours: what matters in it is said in one line elsewhere."""
    if settings.log_level != "debug":
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


async def _publish(messages: Sequence[Outgoing], settings: Settings, topics: Topics) -> None:
    connection = await Connection.open(settings, topics)
    try:
        for message in messages:
            await _send_in_time(connection, message, settings.broker)
    finally:
        await connection.close()


async def _send_in_time(connection: Connection, message: Outgoing, broker: str) -> None:
    try:
        async with asyncio.timeout(3 * REQUEST_S):
            await connection.send(message)
    except TimeoutError:
        raise BrokerUnavailable(f"broker {broker}: no answer") from None


async def _reason(broker: Broker, error: BaseException, *, idempotent: bool) -> str:
    unreachable = isinstance(error, errors.KafkaConnectionError) or not isinstance(error, errors.KafkaError)
    if unreachable or denied(broker, error):
        return str(await why_not(broker, error, timeout_s=CHECK_S))
    hint = " (an embedded broker needs --no-idempotent-producer)" if idempotent else ""
    return f"broker {broker}: {_text(error)}{hint}"


def _text(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
