"""How far each stage's consumer group is: what it has committed against what its topics hold.

Asked for its end, the embedded broker leaves out the messages that were published together last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, for_code

from pipeline.errors import BrokerUnavailable
from pipeline.kafka.connection import Broker
from pipeline.kafka.identity import admin_client, patiently
from pipeline.topics import Topics

POLL_MS = 500
POLLS = 10


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One consumer group."""

    members: int | None  # None if the broker did not tell
    lag: Mapping[str, int]  # logical topic → messages that are not committed


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic: how many messages it keeps, and the time of the newest one (None if it keeps none)."""

    messages: int
    newest: float | None


async def group_facts(
    broker: Broker, topics: Topics, groups: Mapping[str, Iterable[str]]
) -> dict[str, GroupFacts]:
    """Return the facts of groups, each with its logical input topics.

    A group that has committed nothing of a partition is behind by all that the partition keeps.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    members = await _members(broker, groups)
    found = {}
    for group, names in groups.items():
        consumer = AIOKafkaConsumer(**broker.arguments(), group_id=group, enable_auto_commit=False)
        try:
            await consumer.start()
            lag = {name: await _lag(consumer, _places(topics, name)) for name in names}
        except (KafkaError, OSError) as error:
            raise BrokerUnavailable(f"broker {broker}: {error}") from None
        finally:
            await consumer.stop()
        found[group] = GroupFacts(None if members is None else members[group], lag)
    return found


async def _members(broker: Broker, groups: Iterable[str]) -> dict[str, int] | None:
    """Return how many members groups have; None from a broker that hangs up on the question."""
    try:
        async with admin_client(broker) as client:
            # One at a time: the library misreads every group of an answer but the first.
            return {group: await patiently(partial(_count_members, client, group)) for group in groups}
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
    """
    consumer = AIOKafkaConsumer(**broker.arguments(), enable_auto_commit=False)
    places = _places(topics, name)
    try:
        await consumer.start()
        first, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
        kept = [place for place in places if ends[place] > first[place]]
        newest = await _newest(consumer, {place: ends[place] - 1 for place in kept})
    except (KafkaError, OSError) as error:
        raise BrokerUnavailable(f"broker {broker}: {error}") from None
    finally:
        await consumer.stop()
    return TopicFacts(sum(ends[place] - first[place] for place in kept), newest)


async def _lag(consumer: AIOKafkaConsumer, places: list[TopicPartition]) -> int:
    first, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
    lag = 0
    for place in places:
        done = await consumer.committed(place)
        lag += max(0, ends[place] - max(first[place], done or 0))
    return lag


async def _newest(consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, int]) -> float | None:
    """Return the highest time of the messages at some offsets, as their senders gave it."""
    if not offsets:
        return None
    consumer.assign(list(offsets))
    for place, offset in offsets.items():
        consumer.seek(place, offset)
    heard: dict[TopicPartition, float] = {}
    for _ in range(POLLS):
        for place, messages in (await consumer.getmany(timeout_ms=POLL_MS)).items():
            heard[place] = max(heard.get(place, 0.0), *(m.timestamp / 1000 for m in messages))
        if len(heard) == len(offsets):
            break
    return max(heard.values(), default=None)


def _places(topics: Topics, name: str) -> list[TopicPartition]:
    topic = topics[name]
    return [TopicPartition(topic.name, partition) for partition in range(topic.partitions)]
