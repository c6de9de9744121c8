"""Connections of agents to Kafka: checked at the start, opened anew after each outage."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from pipeline.kafka import Broker, Producer, ProducerOptions, check_connection
from pipeline.model import Outgoing
from pipeline.model.errors import BrokerUnavailable, ConfigError
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics

REQUEST_S = 10.0
"""Seconds that one request may take."""

CHECK_S = 3.0
"""How long a server may take to say whether it lets us in."""


async def connect(settings: Settings, topics: Topics) -> Producer:
    """Connect; certificates and keys are read anew, since they may have been replaced.

    Raises:
        BrokerUnavailable: nothing answers there, it refuses us or this producer, or cannot be trusted.
    """
    options = ProducerOptions(
        idempotent=settings.idempotent_producer,
        client_id="smidgen-agent",
        request_timeout_s=REQUEST_S,
        linger_ms=0,
    )
    try:
        return await Producer.open(Broker.of(settings), topics, options)
    except ConfigError as error:  # an agent outlives it: a person may settle it meanwhile
        raise BrokerUnavailable(str(error)) from None


def check_broker(settings: Settings) -> None:
    """Check the settings of the broker, and that it lets us in if it can be reached.

    An agent outlives outages; a wrong password or certificate it would wait out for ever.

    Raises:
        ConfigError: a setting is wrong, the broker refuses us, or we cannot trust it.
    """
    broker = Broker.of(settings)
    if broker.security.protocol != "PLAINTEXT":
        failure = asyncio.run(check_connection(broker, timeout_s=CHECK_S))
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
    producer = await connect(settings, topics)
    try:
        for message in messages:
            try:
                async with asyncio.timeout(3 * REQUEST_S):
                    await producer.send(message)
            except TimeoutError:
                raise BrokerUnavailable(f"broker {settings.broker}: no answer") from None
    finally:
        await producer.close()
