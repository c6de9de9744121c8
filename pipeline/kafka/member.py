"""Member of a consumer group: it reads messages that the group has not read, and commits finished ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition

from pipeline.kafka.connection import Broker, failures_of, quiet_client, started
from pipeline.kafka.decompression import guard_batches
from pipeline.kafka.groups import JOIN_S
from pipeline.kafka.producer import OVERHEAD_BYTES
from pipeline.kafka.reader import FETCH_WAIT_MS, LEAST_FETCH_BYTES, Entry, entries_of, existing_partitions
from pipeline.settings.topics import Topic

SESSION_S = 10.0
REBALANCE_S = 30.0
"""Seconds that other members wait for one to finish its work before partitions move."""

Moving = Callable[[frozenset[TopicPartition]], Awaitable[None]]
"""Called with partitions of the topics: those about to be revoked, or all present ones."""


async def _nothing(_: frozenset[TopicPartition]) -> None:
    return


class ConsumerMember:
    """One process of a consumer group; see ``open_member``."""

    def __init__(self, consumer: AIOKafkaConsumer, broker: Broker) -> None:
        self._consumer = consumer
        self._broker = broker

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned to this member."""
        return frozenset(self._consumer.assignment())

    async def poll(self, timeout_s: float) -> list[Entry]:
        """Return new messages, in order within each partition; none after ``timeout_s``."""
        with failures_of(self._broker):
            return entries_of(await self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit the next offset of each partition; revoked partitions are left out."""
        owned = {
            partition: offset
            for partition, offset in offsets.items()
            if partition in self._consumer.assignment()
        }
        if owned:
            with failures_of(self._broker):
                await self._consumer.commit(owned)

    async def rewind(self, since: float) -> None:
        """Continue with the first message at ``since`` (epoch seconds) or later, in every partition."""
        times = dict.fromkeys(self._consumer.assignment(), int(since * 1000))
        with failures_of(self._broker):
            offsets = await self._consumer.offsets_for_times(times) if times else {}
            ends = await self._consumer.end_offsets(list(times)) if times else {}
        for partition in times:
            offset = offsets.get(partition)
            self._consumer.seek(partition, ends[partition] if offset is None else offset.offset)

    async def begin(self) -> None:
        """Commit the start of partitions without a committed offset, so that a restart skips nothing."""
        with failures_of(self._broker):
            for partition in self._consumer.assignment():
                if await self._consumer.committed(partition) is None:
                    position = await self._consumer.position(partition)
                    await self._consumer.commit({partition: position})


def offsets_after(entries: Iterable[Entry]) -> dict[TopicPartition, int]:
    """Return the offsets after finished messages, which are in order within each partition."""
    return {TopicPartition(entry.topic, entry.partition): entry.offset + 1 for entry in entries}


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, leaving: Moving, arrived: Moving) -> None:
        self._leaving = leaving
        self._arrived = arrived

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        await self._leaving(frozenset(revoked))

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        await self._arrived(frozenset(assigned))


@asynccontextmanager
async def open_member(
    broker: Broker,
    topics: Sequence[Topic],
    group: str,
    *,
    from_start: bool = False,
    leaving: Moving = _nothing,
    arrived: Moving = _nothing,
) -> AsyncIterator[ConsumerMember]:
    """Join a consumer group of some topics.

    Partitions without a committed offset are read from their end, or with ``from_start`` from their start.
    ``leaving`` is awaited before partitions are revoked, ``arrived`` after they are assigned.

    Raises:
        ConfigError: a topic does not exist, or the broker refuses us.
        BrokerUnavailable: the broker does not answer.
    """
    await existing_partitions(broker, topics)
    guard_batches()
    largest = max(topic.max_message_bytes for topic in topics)
    consumer = AIOKafkaConsumer(
        **broker.arguments(),
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest" if from_start else "latest",
        fetch_max_wait_ms=FETCH_WAIT_MS,
        max_partition_fetch_bytes=max(LEAST_FETCH_BYTES, largest + OVERHEAD_BYTES),
        session_timeout_ms=int(SESSION_S * 1000),
        heartbeat_interval_ms=3000,
        rebalance_timeout_ms=int(REBALANCE_S * 1000),
    )
    with quiet_client():
        consumer.subscribe([topic.name for topic in topics], listener=_Listener(leaving, arrived))
        async with started(consumer.start, consumer.stop, broker, timeout_s=JOIN_S):
            yield ConsumerMember(consumer, broker)
