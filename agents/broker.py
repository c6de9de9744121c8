"""The connection to Kafka that everything in this package publishes through."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

import aiokafka
from aiokafka import errors
from aiokafka.conn import collect_hosts

from pipeline.config import Settings
from pipeline.errors import BrokerUnavailable, ConfigError, InvalidMessage
from pipeline.model import Outgoing
from pipeline.topics import Topics

CONNECT_S = 10.0
REQUEST_S = 10.0
CLOSE_S = 3.0
"""How long connecting, one request, and closing may take."""

OVERHEAD_BYTES = 4096
"""What a message needs besides its value: key, headers and the record's own fields."""


class Connection:
    """A producer with ``acks=all`` and zstd; idempotent if the settings say so."""

    def __init__(self, producer: aiokafka.AIOKafkaProducer, broker: str, topics: Topics) -> None:
        self._producer = producer
        self._broker = broker
        self._topics = topics

    @classmethod
    async def open(cls, settings: Settings, topics: Topics) -> Self:
        """Connect.

        Raises:
            BrokerUnavailable: nothing answers there, or it refuses this producer.
        """
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=settings.broker,
            client_id="smidgen-agent",
            acks="all",
            compression_type="zstd",
            enable_idempotence=settings.idempotent_producer,
            max_request_size=max(topic.max_message_bytes for topic in topics.values()) + OVERHEAD_BYTES,
            request_timeout_ms=int(REQUEST_S * 1000),
        )
        connection = cls(producer, settings.broker, topics)
        try:
            async with asyncio.timeout(CONNECT_S):
                await producer.start()
        except (errors.KafkaError, OSError, TimeoutError) as error:
            await connection.close()
            raise BrokerUnavailable(
                _reason(settings.broker, error, idempotent=settings.idempotent_producer)
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
            raise BrokerUnavailable(f"broker {self._broker}: {_text(error)}") from None

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
    try:
        hosts = collect_hosts(broker)
    except ValueError:
        hosts = []
    if not hosts or not all(host and 0 < port < 65_536 for host, port, _ in hosts):
        raise ConfigError(f"broker: should be host:port, comma-separated, not {broker!r}")


def publish_once(messages: Sequence[Outgoing], settings: Settings, topics: Topics) -> None:
    """Publish messages in order and wait until all are confirmed.

    Raises:
        ConfigError: the broker's address is wrong.
        BrokerUnavailable: the broker does not answer; the messages before may be published.
        InvalidMessage: the broker does not take a message.
    """
    check_address(settings.broker)
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


def _reason(broker: str, error: Exception, *, idempotent: bool) -> str:
    unreachable = isinstance(error, errors.KafkaConnectionError | OSError) and not isinstance(
        error, TimeoutError
    )
    if unreachable:
        return f"broker {broker}: cannot be reached"
    hint = " (an embedded broker needs --no-idempotent-producer)" if idempotent else ""
    return f"broker {broker}: {_text(error)}{hint}"


def _text(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
