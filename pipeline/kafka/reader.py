"""The one Kafka reader outside the flow: whole topics, no consumer group joined, nothing committed."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from pipeline.kafka.admin import admin_client, retried
from pipeline.kafka.connection import Broker, as_broker, quiet_client, started
from pipeline.kafka.decompression import guard_batches
from pipeline.kafka.producer import OVERHEAD_BYTES
from pipeline.model.errors import BrokerUnavailable, ConfigError
from pipeline.settings.topics import Topic, Topics

POLL_S = 1.0
SPAN_POLL_S = 0.5
SILENCE_S = 60.0
FETCH_WAIT_MS = 200
"""Seconds that a broker may delay the answer to a fetch without messages."""

LEAST_FETCH_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class Entry:
    """A message with its offset and headers; ``topic`` is the broker's name."""

    partition: int
    offset: int
    timestamp: float
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    topic: str = ""


class Reader:
    """A consumer of chosen partitions; see ``open_reader``."""

    def __init__(self, consumer: AIOKafkaConsumer, broker: Broker) -> None:
        self._consumer = consumer
        self._broker = broker

    def seek(self, starts: Mapping[TopicPartition, int]) -> None:
        """Read only these partitions from now on, each from its offset."""
        self._consumer.assign(list(starts))
        for partition, offset in starts.items():
            self._consumer.seek(partition, offset)

    async def poll(self, timeout_s: float) -> list[Entry]:
        """Return new messages, in order within each partition; none after ``timeout_s``."""
        return entries_of(await self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))

    async def first_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the oldest message of each partition."""
        return dict(await self._consumer.beginning_offsets(list(partitions)))

    async def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the newest message of each partition.

        Asked for it, the embedded broker leaves out the messages that were published together last.
        """
        return dict(await self._consumer.end_offsets(list(partitions)))

    async def offsets_since(
        self, partitions: Collection[TopicPartition], since: float
    ) -> dict[TopicPartition, int | None]:
        """Return the offset of the first message of each partition at ``since`` (epoch seconds) or later.

        The embedded broker answers with its oldest message, whatever the time.
        """
        answers = await self._consumer.offsets_for_times(dict.fromkeys(partitions, int(since * 1000)))
        return {
            partition: None if answer is None else int(answer.offset) for partition, answer in answers.items()
        }

    def fetched_end(self, partition: TopicPartition) -> int | None:
        """Return the offset after the newest message by the last fetch; None before the first fetch."""
        end = self._consumer.highwater(partition)
        return None if end is None else int(end)

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset that is read next."""
        return int(await self._consumer.position(partition))

    async def span(
        self, partition: TopicPartition, first: int, end: int | None = None
    ) -> AsyncGenerator[Entry]:
        """Yield the messages of a partition from ``first`` (or the oldest) to before ``end`` (or the newest).

        Raises:
            BrokerUnavailable: nothing comes any more.
        """
        oldest = (await self.first_offsets([partition]))[partition]
        self.seek({partition: max(first, oldest)})
        heard = time.monotonic()
        while end is None or await self.position(partition) < end:
            entries = await self.poll(SPAN_POLL_S)
            if entries:
                heard = time.monotonic()
            elif time.monotonic() > heard + SILENCE_S:
                raise BrokerUnavailable(f"broker {self._broker}: gives nothing of {partition.topic} any more")
            for entry in entries:
                # A start beyond the end has the client read from the oldest message on.
                if entry.offset >= first and (end is None or entry.offset < end):
                    yield entry
            if end is None:
                end = self.fetched_end(partition)


@asynccontextmanager
async def open_reader(broker: Broker | str, *, max_message_bytes: int = 0) -> AsyncIterator[Reader]:
    """Connect a reader for messages of at most so many bytes; raises what ``started`` does."""
    broker = as_broker(broker)
    guard_batches()
    consumer = AIOKafkaConsumer(
        **broker.arguments(),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=FETCH_WAIT_MS,
        max_partition_fetch_bytes=max(LEAST_FETCH_BYTES, max_message_bytes + OVERHEAD_BYTES),
    )
    async with started(consumer.start, consumer.stop, broker):
        yield Reader(consumer, broker)


async def read_topics(
    broker: Broker | str,
    topics: Sequence[Topic],
    *,
    from_start: bool,
    follow: bool,
    timeout_s: float | None = None,
) -> AsyncIterator[Entry]:
    """Yield the messages of topics, in order within each partition.

    It begins with the oldest message, or with what comes from now on (on the embedded broker, with the last
    messages that were published together). Without ``follow`` it ends at what
    was newest when it began; in any case it ends after ``timeout_s``.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: a topic does not exist, the broker refuses us, or we cannot trust it.
    """
    broker = as_broker(broker)
    partitions = await existing_partitions(broker, topics)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    largest = max(topic.max_message_bytes for topic in topics)
    with quiet_client():
        async with open_reader(broker, max_message_bytes=largest) as reader:
            offsets = reader.first_offsets if from_start else reader.end_offsets
            reader.seek(await offsets(partitions))
            async for entry in _entries(reader, partitions, follow, deadline):
                yield entry


def read_topic(
    broker: Broker | str, topic: Topic, *, from_start: bool, follow: bool, timeout_s: float | None = None
) -> AsyncIterator[Entry]:
    """Yield the messages of one topic as ``read_topics`` does."""
    return read_topics(broker, [topic], from_start=from_start, follow=follow, timeout_s=timeout_s)


def partitions_of(topics: Topics, name: str) -> list[TopicPartition]:
    """Return the partitions that a topic (logical name) has by topics.yaml."""
    return [TopicPartition(topics[name].name, number) for number in range(topics[name].partitions)]


async def existing_partitions(broker: Broker, topics: Sequence[Topic]) -> list[TopicPartition]:
    """Return the partitions that topics have on the broker.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: a topic does not exist, or the broker refuses us.
    """
    async with admin_client(broker) as client:
        known = await retried(client.list_topics)
        for topic in topics:
            if topic.name not in known:
                hint = ", or this user may not see it" if broker.security.protocol != "PLAINTEXT" else ""
                raise ConfigError(
                    f"topic {topic.name} is missing on {broker}: run `smidgen topics apply`{hint}"
                )
        described = await retried(lambda: client.describe_topics([topic.name for topic in topics]))
    return [
        TopicPartition(str(topic["topic"]), partition["partition"])
        for topic in described
        for partition in topic["partitions"]
    ]


def entries_of(fetched: Mapping[TopicPartition, Sequence[Any]]) -> list[Entry]:
    """Return what a client has fetched, in order within each partition."""
    return [
        Entry(
            m.partition,
            m.offset,
            m.timestamp / 1000,
            m.key,
            m.value,
            tuple((name, value or b"") for name, value in m.headers),
            m.topic,
        )
        for messages in fetched.values()
        for m in messages
    ]


async def _entries(
    reader: Reader, partitions: Sequence[TopicPartition], follow: bool, deadline: float | None
) -> AsyncIterator[Entry]:
    ends: dict[TopicPartition, int] = {}
    left = set(partitions)
    while follow or left:
        wait_s = POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())
        if wait_s <= 0:
            return
        entries = await reader.poll(wait_s)
        for partition in partitions:
            # The end is what the first fetch says: asked directly, the embedded broker names an earlier one.
            if partition not in ends and (end := reader.fetched_end(partition)) is not None:
                ends[partition] = end
        for entry in entries:
            if follow or entry.offset < ends[TopicPartition(entry.topic, entry.partition)]:
                yield entry
        left = {each for each in left if await reader.position(each) < ends.get(each, math.inf)}
