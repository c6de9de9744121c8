"""Reads a topic from outside the flow: every partition, no consumer group, nothing committed."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from pipeline.errors import BrokerUnavailable, ConfigError
from pipeline.kafka.connection import FAILURES, TIMEOUT_S, Broker, as_broker, denied, text_of, why_not
from pipeline.kafka.decompression import guard_batches
from pipeline.kafka.identity import admin_client, patiently, quiet_client
from pipeline.kafka.publisher import OVERHEAD_BYTES
from pipeline.topics import Topic

POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A message with its place and headers."""

    partition: int
    offset: int
    timestamp: float
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


async def read_topic(
    broker: Broker | str, topic: Topic, *, from_start: bool, follow: bool, timeout_s: float | None = None
) -> AsyncIterator[Entry]:
    """Yield the messages of a topic, in order within each partition.

    It begins with the oldest message, or with what comes from now on (on the embedded broker, with the last
    messages that were published together). Without ``follow`` it ends at what
    was newest when it began; in any case it ends after ``timeout_s``.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: the topic does not exist, the broker refuses us, or we cannot trust it.
    """
    broker = as_broker(broker)
    guard_batches()
    async with admin_client(broker) as client:
        if topic.name not in await patiently(client.list_topics):
            hint = ", or this user may not see it" if broker.security.protocol != "PLAINTEXT" else ""
            raise ConfigError(f"topic {topic.name} is missing on {broker}: run `smidgen topics apply`{hint}")
        described = await patiently(lambda: client.describe_topics([topic.name]))
    places = [TopicPartition(topic.name, p["partition"]) for p in described[0]["partitions"]]
    consumer = AIOKafkaConsumer(
        **broker.arguments(),
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=topic.max_message_bytes + OVERHEAD_BYTES,
    )
    consumer.assign(places)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    with quiet_client():
        try:
            await _connect(consumer, broker)
            async for entry in _entries(consumer, places, from_start, follow, deadline):
                yield entry
        except (KafkaError, OSError) as error:
            if lacks := denied(broker, error):
                raise ConfigError(f"broker {broker}: {lacks}") from None
            raise BrokerUnavailable(f"broker {broker}: {text_of(error)}") from None
        finally:
            # In a task of its own: with the broker away, stop() may end in a cancellation that is not ours.
            await asyncio.wait({asyncio.ensure_future(consumer.stop())})


async def _connect(consumer: AIOKafkaConsumer, broker: Broker) -> None:
    try:
        await asyncio.wait_for(consumer.start(), TIMEOUT_S)
    except FAILURES as error:
        raise await why_not(broker, error) from None


async def _entries(
    consumer: AIOKafkaConsumer,
    places: list[TopicPartition],
    from_start: bool,
    follow: bool,
    deadline: float | None,
) -> AsyncIterator[Entry]:
    starts = await (consumer.beginning_offsets(places) if from_start else consumer.end_offsets(places))
    for place in places:
        consumer.seek(place, starts[place])
    ends: dict[TopicPartition, int] = {}
    left = set(places)
    while follow or left:
        wait_s = POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())
        if wait_s <= 0:
            return
        fetched = await consumer.getmany(timeout_ms=int(wait_s * 1000))
        for place in places:
            # The end is what the first fetch says: asked directly, the embedded broker names an earlier one.
            if place not in ends and (end := consumer.highwater(place)) is not None:
                ends[place] = end
        for place, messages in fetched.items():
            for m in messages:
                if follow or m.offset < ends[place]:
                    headers = tuple((name, value or b"") for name, value in m.headers)
                    yield Entry(m.partition, m.offset, m.timestamp / 1000, m.key, m.value, headers)
        left = {place for place in left if await consumer.position(place) < ends.get(place, math.inf)}
