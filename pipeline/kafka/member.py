"""A member of a consumer group: reads what the group has not read yet, and commits what it is done with."""

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
"""How long others wait for a member that finishes what it has begun before partitions move."""

Moving = Callable[[frozenset[TopicPartition]], Awaitable[None]]
"""Is given partitions of the topics: those that are about to go, or all that there are now."""


async def _nothing(_: frozenset[TopicPartition]) -> None:
    return


class Member:
    """One process of a consumer group; see ``open_member``."""

    def __init__(self, consumer: AIOKafkaConsumer, broker: Broker) -> None:
        self._consumer = consumer
        self._broker = broker

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that are this member's now."""
        return frozenset(self._consumer.assignment())

    async def poll(self, timeout_s: float) -> list[Entry]:
        """Return what has come, in order within each partition; nothing after ``timeout_s``."""
        with failures_of(self._broker):
            return entries_of(await self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit where the group goes on, by partition; of partitions that have gone nothing is committed."""
        kept = {each: offset for each, offset in offsets.items() if each in self._consumer.assignment()}
        if kept:
            with failures_of(self._broker):
                await self._consumer.commit(kept)

    async def rewind(self, since: float) -> None:
        """Go on with the first message at ``since`` (epoch seconds) or later, in every partition."""
        asked = dict.fromkeys(self._consumer.assignment(), int(since * 1000))
        with failures_of(self._broker):
            found = await self._consumer.offsets_for_times(asked) if asked else {}
            ends = await self._consumer.end_offsets(list(asked)) if asked else {}
        for partition in asked:
            at = found.get(partition)
            self._consumer.seek(partition, ends[partition] if at is None else at.offset)

    async def begin(self) -> None:
        """Commit where partitions begin that the group is new to, so that a restart skips nothing."""
        with failures_of(self._broker):
            for partition in self._consumer.assignment():
                if await self._consumer.committed(partition) is None:
                    position = await self._consumer.position(partition)
                    await self._consumer.commit({partition: position})


def offsets_after(entries: Iterable[Entry]) -> dict[TopicPartition, int]:
    """Return where a group goes on that is done with messages, in order within each partition."""
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
) -> AsyncIterator[Member]:
    """Join a consumer group of some topics.

    Partitions of which the group has committed nothing are read from their end, or ``from_start``. Before
    partitions go to others ``leaving`` is awaited, and ``arrived`` once they have come.

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
            yield Member(consumer, broker)
