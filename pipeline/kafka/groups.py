"""Consumer groups: members, committed offsets against what topics hold, sole membership."""

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
    """One topic: how many messages it keeps, and the time of the newest one (None if it keeps none)."""

    messages: int
    newest: float | None


@dataclass(frozen=True, slots=True)
class GroupReading:
    """How far a group has read its topics; the parts were asked in this order."""

    ends: Mapping[TopicPartition, int]  # offset after the last message
    committed: Mapping[TopicPartition, int]  # or where a partition begins, if that is later
    published: Mapping[int, int]  # by partition of the topic that it writes: offset after the last message


async def group_reading(broker: Broker, group: str, inputs: Sequence[Topic], output: Topic) -> GroupReading:
    """Return how far a group has read its topics, and where what it wrote meanwhile ends.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us, or a topic does not exist.
    """
    there = await existing_partitions(broker, [*inputs, output])
    written = [each for each in there if each.topic == output.name]
    read = [each for each in there if each.topic != output.name]
    async with open_reader(broker) as reader, admin_client(broker) as client:
        ends, first = await reader.end_offsets(read), await reader.first_offsets(read)
        done = await committed_offsets(client, group, read)
        published = await reader.end_offsets(written)
    committed = {each: max(first[each], done.get(each, 0)) for each in read}
    return GroupReading(ends, committed, {each.partition: end for each, end in published.items()})


async def require_described(broker: Broker, groups: Iterable[str]) -> None:
    """Check that the user may ask how far these consumer groups are; where nobody logs in, everybody may.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: the user may not ask it of one of them.
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

    A group that has committed nothing of a partition is behind by all that the partition keeps.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us, or a topic does not exist.
    """
    members = await _members(broker, groups)
    every = sorted({name for names in groups.values() for name in names})
    there = await existing_partitions(broker, [topics[name] for name in every])
    found = {}
    async with open_reader(broker) as reader, admin_client(broker) as client:
        for group, names in groups.items():
            lag = {}
            for name in names:
                partitions = [each for each in there if each.topic == topics[name].name]
                done = await committed_offsets(client, group, partitions)
                first, ends = await reader.first_offsets(partitions), await reader.end_offsets(partitions)
                lag[name] = sum(max(0, ends[p] - max(first[p], done.get(p, 0))) for p in partitions)
            found[group] = GroupFacts(None if members is None else members[group], lag)
    return found


async def committed_offsets(
    client: AIOKafkaAdminClient, group: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the offsets that a group has committed; none of partitions of which it has committed nothing."""
    # Each by its name: asked for all of a group, the embedded broker gives no answer that is one.
    asked = partial(client.list_consumer_group_offsets, group, partitions=partitions)
    found = await retried(asked)
    return {partition: each.offset for partition, each in found.items() if each.offset >= 0}


class SoleMember:
    """The only member of a consumer group; see ``sole_member``."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit where the group goes on."""
        await self._consumer.commit(dict(offsets))


@asynccontextmanager
async def sole_member(
    broker: Broker, topics: Sequence[Topic], group: str, *, taken: str, session_s: float
) -> AsyncIterator[SoleMember]:
    """Be the only member of a consumer group of topics: what only one process may do at a time.

    A member that was killed is one for ``session_s`` more.

    Raises:
        ConfigError: there is another member, and what ``taken`` says of it; or there is no such topic, or the
            broker refuses us.
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
        max_poll_interval_ms=24 * 3600 * 1000,  # it never polls: to be a member is all that it is for
    )
    async with started(member.start, member.stop, broker, timeout_s=JOIN_S):
        deadline = time.monotonic() + JOIN_S
        while not member.assignment() and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        if len(member.assignment()) < len(partitions):
            raise ConfigError(f"{taken} (a member of the consumer group {group})")
        yield SoleMember(member)


async def _members(broker: Broker, groups: Iterable[str]) -> dict[str, int] | None:
    """Return how many members groups have; None from a broker that hangs up on the question."""
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
        kept = [each for each in partitions if ends[each] > first[each]]
        newest = await _newest(reader, {each: ends[each] - 1 for each in kept})
    return TopicFacts(sum(ends[each] - first[each] for each in kept), newest)


async def _newest(reader: Reader, offsets: Mapping[TopicPartition, int]) -> float | None:
    """Return the highest time of the messages at some offsets, as their senders gave it."""
    if not offsets:
        return None
    reader.seek(offsets)
    heard: dict[int, float] = {}
    for _ in range(POLLS):
        for entry in await reader.poll(POLL_S):
            heard[entry.partition] = max(heard.get(entry.partition, 0.0), entry.timestamp)
        if len(heard) == len(offsets):
            break
    return max(heard.values(), default=None)


async def require_groups(broker: Broker, groups: Iterable[str]) -> None:
    """Check that the user may join these consumer groups; where nobody logs in or encrypts, there is none.

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
    """Send a heartbeat of a member that does not exist: only who may join learns of it."""
    coordinator = await retried(lambda: client.find_coordinator(group))
    answer = await client._send_request(HeartbeatRequest(group, -1, ""), coordinator)
    if for_code(answer.error_code) is GroupAuthorizationFailedError:
        raise GroupAuthorizationFailedError(group)
