"""Progress of a stage in its topics, and its change by hand while none of the stage's workers runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from pipeline.kafka import (
    Broker,
    Entry,
    Publisher,
    Reader,
    SoleMember,
    TopicPartition,
    admin_client,
    committed_offsets,
    existing_partitions,
    largest_message_bytes,
    open_reader,
    quiet_client,
    sole_member,
)
from pipeline.messages.scans import decode_scan
from pipeline.model import Scan
from pipeline.model.clock import Clock
from pipeline.model.errors import InvalidMessage
from pipeline.settings.topics import Topics
from pipeline.worker.dlq import REPLAYED_FROM, DeadLetterWriter, Rejected

SESSION_S = 10.0
MOST_MESSAGES = 200
MOST_BYTES = 64 * 1024**2
"""Bounds on a batch that is skipped: it is sent to dead letters and committed before more is read."""

Position = tuple[str, int]
"""Topic (logical name) and partition."""

StoredUpTo = Callable[[str, Sequence[int]], Mapping[int, int]]
"""Returns, for a topic (logical name) and partitions, the offset up to which the store has the results."""

Note = Callable[[str, int, int], None]
"""Notes in the store, for a topic (logical name) and partition, the last finished offset."""

ScanCut = tuple[str, str, float, str]
"""Service, workload, end and attempt of a scan in parts."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The progress of a stage in one partition, as offsets of the next message."""

    topic: str  # logical
    partition: int
    first: int
    end: int
    committed: int | None  # None if the group has committed nothing
    stored: int | None  # None if the store has no offset

    @property
    def next(self) -> int:
        """Offset of the next message to handle: the store's if it has one, else the committed one."""
        offset = self.stored if self.stored is not None else self.committed
        return max(self.first, offset or 0)

    @property
    def lag(self) -> int:
        """Number of messages that are not handled."""
        return max(0, self.end - self.next)


@dataclass(frozen=True, slots=True)
class Seat:
    """A stage without a running worker, and the only membership of its group, to commit offsets."""

    broker: Broker
    topics: Topics
    stage: str
    member: SoleMember

    async def commit(self, offsets: Mapping[Position, int]) -> None:
        """Commit the offsets at which the stage continues."""
        by_name = {
            TopicPartition(self.topics[name].name, number): to for (name, number), to in offsets.items()
        }
        await self.member.commit(by_name)


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that are skipped together."""

    messages: tuple[Entry, ...]  # consecutive
    rest: tuple[Entry, ...]  # later messages: remaining parts of the scans that these messages cut


@asynccontextmanager
async def seat(broker: Broker, topics: Topics, stage: str) -> AsyncIterator[Seat]:
    """Be the only member of a stage's consumer group.

    Raises:
        ConfigError: a worker of the stage runs; it continues after a rebalance.
        BrokerUnavailable: the broker does not answer.
    """
    inputs = [topics[name] for name in topics.inputs(stage)]
    taken = f"a worker runs {stage}: stop all that do, and try again"
    async with sole_member(broker, inputs, topics.group(stage), taken=taken, session_s=SESSION_S) as member:
        yield Seat(broker, topics, stage, member)


async def standings(broker: Broker, topics: Topics, stage: str, stored_up_to: StoredUpTo) -> list[Standing]:
    """Return the progress of a stage in every partition of its topics, in the order of the topics.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us, or a topic does not exist.
        StoreUnavailable: the store does not answer.
    """
    names = topics.inputs(stage)
    existing = await existing_partitions(broker, [topics[name] for name in names])
    async with admin_client(broker) as client:
        committed = await committed_offsets(client, topics.group(stage), existing)
    with quiet_client():
        async with open_reader(broker) as reader:
            firsts, ends = await reader.first_offsets(existing), await reader.end_offsets(existing)
    standing = []
    for name in names:
        partitions = sorted(partition for partition in existing if partition.topic == topics[name].name)
        stored = await asyncio.to_thread(
            stored_up_to, name, [partition.partition for partition in partitions]
        )
        standing += [
            Standing(name, p.partition, firsts[p], ends[p], committed.get(p), stored.get(p.partition))
            for p in partitions
        ]
    return standing


async def batches(
    broker: Broker, topics: Topics, position: Position, start: int, count: int
) -> AsyncIterator[Batch]:
    """Yield the next messages of a partition, at most ``count`` of them and none after the newest.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us, or the topic does not exist.
    """
    partition = TopicPartition(topics[position[0]].name, position[1])
    with quiet_client():
        async with open_reader(broker, max_message_bytes=largest_message_bytes(topics)) as reader:
            while count > 0 and (messages := await _messages(reader, partition, start, count)):
                count -= len(messages)
                start = messages[-1].offset + 1
                yield Batch(messages, await _rest(reader, partition, start, cut_scans(messages)))


async def move_past(
    seat: Seat, position: Position, batch: Batch, reason: str, publisher: Publisher, note: Note, clock: Clock
) -> None:
    """Turn a batch into dead letters, and let the stage continue after it.

    Raises:
        BrokerUnavailable: the broker does not answer; nothing is lost, but dead letters may be duplicated.
        StoreUnavailable: the store does not answer, with the same consequences.
    """
    writer = DeadLetterWriter(publisher, seat.topics, seat.stage, clock)
    entries = (*batch.messages, *batch.rest)
    await writer.send([_rejected(entry, reason) for entry in entries], asyncio.Event())
    await asyncio.to_thread(note, *position, batch.messages[-1].offset)
    await seat.commit({position: batch.messages[-1].offset + 1})


async def offsets_since(broker: Broker, topics: Topics, found: Sequence[Standing], since: float) -> list[int]:
    """Return the offset of the first message of each partition that came at ``since`` or later.

    ``since`` is in epoch seconds. Without such a message, the offset is the end of the partition.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us.
    """
    with quiet_client():
        async with open_reader(broker) as reader:
            positions = [
                TopicPartition(topics[standing.topic].name, standing.partition) for standing in found
            ]
            at = await reader.offsets_since(positions, since)
    return [
        standing.end if (offset := at[position]) is None else offset
        for standing, position in zip(found, positions, strict=True)
    ]


def cut_scans(messages: Iterable[Entry]) -> set[ScanCut]:
    """Return the scans with a part among some messages, without those whose last part is among them.

    A scan that has lost a part is never assembled: its other parts have to be skipped too.
    """
    cut: set[ScanCut] = set()
    for message in messages:
        if (part := _part(message)) is not None:
            (cut.discard if part.part + 1 == part.parts else cut.add)(_cut_of(part))
    return cut


def _rejected(entry: Entry, reason: str) -> Rejected:
    before = dict(entry.headers).get(REPLAYED_FROM)
    return Rejected(entry.topic, entry.partition, entry.offset, entry.key, entry.value, reason, before)


def _cut_of(part: Scan) -> ScanCut:
    return part.service, part.workload, part.end, part.attempt


def _part(message: Entry) -> Scan | None:
    """Return a message as a part of a scan; None if it is another message."""
    try:
        scan = decode_scan(message.value)
    except (InvalidMessage, RecursionError):
        return None
    return scan if scan.parts > 1 else None


async def _messages(reader: Reader, partition: TopicPartition, start: int, count: int) -> tuple[Entry, ...]:
    read: list[Entry] = []
    size = 0
    async with aclosing(reader.span(partition, start)) as entries:
        async for entry in entries:
            read.append(entry)
            size += len(entry.value or b"")
            if len(read) >= min(count, MOST_MESSAGES) or size >= MOST_BYTES:
                break
    return tuple(read)


async def _rest(
    reader: Reader, partition: TopicPartition, start: int, cut: set[ScanCut]
) -> tuple[Entry, ...]:
    """Return the parts of the scans ``cut`` from the offset ``start`` on."""
    parts: list[Entry] = []
    async with aclosing(reader.span(partition, start)) as entries:
        while cut and (entry := await anext(entries, None)) is not None:
            part = _part(entry)
            if part is not None and _cut_of(part) in cut:
                parts.append(entry)
                if part.part + 1 == part.parts:
                    cut.remove(_cut_of(part))
    return tuple(parts)
