"""Consumer groups: members, lag by committed offsets, sole membership."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, for_code
from aiokafka.protocol.group import HeartbeatRequest

from pipeline.kafka.admin import admin_client, retried
from pipeline.kafka.connection import Broker, started
from pipeline.kafka.reader import Reader, existing_partitions, open_reader
from pipeline.model.errors import BrokerUnavailable, ConfigError
from pipeline.settings.topics import Topic, Topics

POLL_S = 0.5
POLLS = 10
JOIN_S = 60.0


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One consumer group."""

    members: int | None  # None if the broker did not say
    lag: Mapping[str, int]  # logical topic → messages that are not committed


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic: the number of messages it keeps, and the newest one's time (None if it keeps none)."""

    messages: int
    newest: float | None


@dataclass(frozen=True, slots=True)
class GroupReading:
    """The progress of a group in its topics; the fields were read in this order."""

    ends: Mapping[TopicPartition, int]  # offset after the last message
    committed: Mapping[TopicPartition, int]  # or where a partition begins, if that is later
    published: Mapping[int, int]  # by partition of the topic that it writes: offset after the last message


async def group_reading(broker: Broker, group: str, inputs: Sequence[Topic], output: Topic) -> GroupReading:
    """Return the progress of a group in its input topics, and the end of its output topic after that.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us, or a topic does not exist.
    """
    partitions = await existing_partitions(broker, [*inputs, output])
    written = [partition for partition in partitions if partition.topic == output.name]
    read = [partition for partition in partitions if partition.topic != output.name]
    async with open_reader(broker) as reader, admin_client(broker) as client:
        ends, first = await reader.end_offsets(read), await reader.first_offsets(read)
        done = await committed_offsets(client, group, read)
        published = await reader.end_offsets(written)
    committed = {partition: max(first[partition], done.get(partition, 0)) for partition in read}
    return GroupReading(ends, committed, {partition.partition: end for partition, end in published.items()})


async def require_described(broker: Broker, groups: Iterable[str]) -> None:
    """Check that the user may describe these consumer groups; without a login, everybody may.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: the user may not describe one of them.
    """
    if broker.security.protocol == "PLAINTEXT":
        return
    async with admin_client(broker) as client:
        for group in groups:
            await retried(partial(client.find_coordinator, group))


async def group_facts(
    broker: Broker, topics: Topics, groups: Mapping[str, Iterable[str]]
) -> dict[str, GroupFacts]:
    """Return the facts of groups, each with its logical input topics.

    The lag of a group without a committed offset in a partition is all messages that the partition keeps.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us, or a topic does not exist.
    """
    members = await _members(broker, groups)
    every = sorted({name for names in groups.values() for name in names})
    existing = await existing_partitions(broker, [topics[name] for name in every])
    facts = {}
    async with open_reader(broker) as reader, admin_client(broker) as client:
        for group, names in groups.items():
            lag = {}
            for name in names:
                partitions = [partition for partition in existing if partition.topic == topics[name].name]
                done = await committed_offsets(client, group, partitions)
                first, ends = await reader.first_offsets(partitions), await reader.end_offsets(partitions)
                lag[name] = sum(max(0, ends[p] - max(first[p], done.get(p, 0))) for p in partitions)
            facts[group] = GroupFacts(None if members is None else members[group], lag)
    return facts


async def committed_offsets(
    client: AIOKafkaAdminClient, group: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return a group's committed offsets, without the partitions in which it has committed nothing."""
    # Partitions are named: the embedded broker answers a request for all of a group's offsets wrongly.
    request = partial(client.list_consumer_group_offsets, group, partitions=partitions)
    answers = await retried(request)
    return {partition: answer.offset for partition, answer in answers.items() if answer.offset >= 0}


class SoleMember:
    """The only member of a consumer group; see ``sole_member``."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit the offsets at which the group continues."""
        await self._consumer.commit(dict(offsets))


@asynccontextmanager
async def sole_member(
    broker: Broker, topics: Sequence[Topic], group: str, *, taken: str, session_s: float
) -> AsyncIterator[SoleMember]:
    """Be the only member of a consumer group, so that no other process does the same work meanwhile.

    A killed process remains a member for ``session_s``.

    Raises:
        ConfigError: there is another member (the message begins with ``taken``), there is no such topic, or
            the broker refuses us.
        BrokerUnavailable: the broker does not answer.
    """
    partitions = await existing_partitions(broker, topics)
    member = AIOKafkaConsumer(
        *(topic.name for topic in topics),
        **broker.arguments(),
        group_id=group,
        enable_auto_commit=False,
        session_timeout_ms=int(session_s * 1000),
        heartbeat_interval_ms=2000,
        rebalance_timeout_ms=int(session_s * 1000),
        max_poll_interval_ms=24 * 3600 * 1000,  # it never polls, it only holds the membership
    )
    async with started(member.start, member.stop, broker, timeout_s=JOIN_S):
        deadline = time.monotonic() + JOIN_S
        while not member.assignment() and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        if len(member.assignment()) < len(partitions):
            raise ConfigError(f"{taken} (a member of the consumer group {group})")
        yield SoleMember(member)


async def _members(broker: Broker, groups: Iterable[str]) -> dict[str, int] | None:
    """Return the number of members of each group; None if the broker closes the connection instead."""
    try:
        async with admin_client(broker) as client:
            # One at a time: the library misreads every group of an answer but the first.
            return {group: await retried(partial(_count_members, client, group)) for group in groups}
    except BrokerUnavailable:  # if it is really gone, the next question says so
        return None


async def _count_members(client: AIOKafkaAdminClient, group: str) -> int:
    (answer,) = await client.describe_consumer_groups([group])
    ((error, _, _, _, _, members, *_),) = answer.groups
    if error:
        raise for_code(error)
    return len(members)


async def topic_facts(broker: Broker, topics: Topics, name: str) -> TopicFacts:
    """Return the facts of a topic.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us, or the topic does not exist.
    """
    partitions = await existing_partitions(broker, [topics[name]])
    async with open_reader(broker, max_message_bytes=topics[name].max_message_bytes) as reader:
        first, ends = await reader.first_offsets(partitions), await reader.end_offsets(partitions)
        filled = [partition for partition in partitions if ends[partition] > first[partition]]
        newest = await _newest(reader, {partition: ends[partition] - 1 for partition in filled})
    return TopicFacts(sum(ends[partition] - first[partition] for partition in filled), newest)


async def _newest(reader: Reader, offsets: Mapping[TopicPartition, int]) -> float | None:
    """Return the latest timestamp of the messages at some offsets, as set by their senders."""
    if not offsets:
        return None
    reader.seek(offsets)
    newest: dict[int, float] = {}
    for _ in range(POLLS):
        for entry in await reader.poll(POLL_S):
            newest[entry.partition] = max(newest.get(entry.partition, 0.0), entry.timestamp)
        if len(newest) == len(offsets):
            break
    return max(newest.values(), default=None)


async def require_groups(broker: Broker, groups: Iterable[str]) -> None:
    """Check that the user may join these consumer groups; skipped without login and encryption.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: the user may not join one of them.
    """
    if broker.security.protocol == "PLAINTEXT":
        return
    async with admin_client(broker) as client:
        for group in groups:
            await _heartbeat(client, group)


async def _heartbeat(client: AIOKafkaAdminClient, group: str) -> None:
    """Send a heartbeat of a member that does not exist: a user without permission gets another error."""
    coordinator = await retried(lambda: client.find_coordinator(group))
    answer = await client._send_request(HeartbeatRequest(group, -1, ""), coordinator)
    if for_code(answer.error_code) is GroupAuthorizationFailedError:
        raise GroupAuthorizationFailedError(group)
