"""Topics on the broker: created from topics.yaml, compared with it, required by a worker."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError, for_code

from pipeline.kafka.admin import admin_client, retried
from pipeline.kafka.connection import Broker, as_broker
from pipeline.kafka.groups import group_facts
from pipeline.model.errors import BrokerUnavailable, ConfigError
from pipeline.settings.topics import Topic, Topics

MAX_REPLICATION = 3

SETTINGS = {
    # An agent's clock may be wrong: by that clock, Kafka would drop messages older than the retention, keep
    # younger ones for too long, and refuse those more than an hour ahead.
    "message.timestamp.type": "LogAppendTime",
    # A replica that lacks messages never becomes the leader: confirmed messages stay.
    "unclean.leader.election.enable": "false",
}
"""Settings of every topic besides those in topics.yaml."""

_MIN_REPLICAS = "min.insync.replicas"
_APPEAR_S = 3.0  # brokers of a cluster learn of a new topic one after the other
_CREATED_APPEAR_S = 30.0  # a loaded cluster creates confirmed topics with a delay
_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Actual:
    """A topic on the broker; ``replicas`` is the number of the partition with the fewest."""

    partitions: int
    config: Mapping[str, str]
    replicas: int = 1


def drift(topics: Topics, actual: Mapping[str, Actual], *, brokers: int = 1) -> list[str]:
    """Return one line for each way in which the broker's topics (by name) differ from topics.yaml.

    ``brokers`` is their number: fewer replicas than a new topic would get are a difference too.
    """
    findings = []
    for topic in topics.values():
        existing = actual.get(topic.name)
        if existing is None:
            findings.append(f"{topic.name}: missing")
            continue
        if existing.partitions != topic.partitions:
            findings.append(f"{topic.name}: {existing.partitions} partitions instead of {topic.partitions}")
        if existing.replicas < replication(brokers):
            findings.append(
                f"{topic.name}: replication {existing.replicas} instead of {replication(brokers)}"
            )
        for key, wanted in topic_config(topic, existing.replicas).items():
            value = existing.config.get(key)
            if value is not None and value != wanted:
                findings.append(f"{topic.name}: {key} is {value} instead of {wanted}")
    return findings


def shard_lines(topics: Topics) -> list[str]:
    """Return one line for each service with partitions of its own, with their numbers."""
    lines = []
    for service in topics.shards:
        names: dict[range, list[str]] = defaultdict(list)
        for logical, topic in topics.items():
            if own := topics.reserved(logical).get(service):
                names[own].append(topic.name)
        parts = [f"{_numbers(own)} of {', '.join(of)}" for own, of in names.items()]
        lines.append(f"{service} has for itself: {'; '.join(parts)}")
    return lines


def _numbers(partitions: range) -> str:
    first, last = partitions[0], partitions[-1]
    return f"partition {first}" if first == last else f"partitions {first} to {last}"


def replication(brokers: int) -> int:
    """Return the number of replicas of a new topic: one per broker, at most three."""
    return max(1, min(MAX_REPLICATION, brokers))


def topic_config(topic: Topic, replicas: int) -> dict[str, str]:
    """Return the settings that a topic has on the broker.

    A message counts as published once all replicas in sync have it. Of three replicas, two must be in sync:
    then one broker may be lost for good, or be away without a stop. Of fewer than three, one is enough, or
    each restart of a broker would stop the flow.
    """
    in_sync = 2 if replicas >= 3 else 1
    return {**topic.broker_config(), **SETTINGS, _MIN_REPLICAS: str(in_sync)}


async def check_topics(broker: Broker | str, topics: Topics) -> list[str]:
    """Compare the broker's topics with topics.yaml; return one line per difference.

    Topics that seem to be missing are queried again for some seconds: the broker may not know them yet.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us.
    """
    async with admin_client(broker) as client:
        actual = await _appeared(client, topics, settings=True)
        return drift(topics, actual, brokers=await _brokers(client))


async def apply_topics(broker: Broker | str, topics: Topics) -> tuple[list[str], list[str]]:
    """Create the topics that are missing, and raise partitions; else existing ones are never altered.

    Returns one line for each topic created or raised, and one for each difference that remains. A new topic
    has as many replicas as there are brokers, at most three; see ``topic_config`` for its settings.

    Partitions of topics with a shared key are raised only while no worker reads or writes them and all
    messages are read: a service moves to another partition, and would overtake messages in the former one.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us, or refuses to create or raise a topic.
    """
    async with admin_client(broker) as client:
        actual = await _actual(client, topics)
        missing = [topic for topic in topics.values() if topic.name not in actual]
        created = [f"{name}: created" for name in await _create(client, missing)]
        few = {
            logical: actual[topic.name].partitions
            for logical, topic in topics.items()
            if topic.name in actual and actual[topic.name].partitions < topic.partitions
        }
        held = [logical for logical in few if logical in topics.shared_key]
        obstacles = await _obstacles(as_broker(broker), topics, held) if held else []
        if not obstacles:  # else none: workers need all as in one topics.yaml
            created += await _raise_partitions(client, topics, few)
        # Each query may go to another broker: the comparison uses the full answer of one of them.
        actual = await _appeared(
            client, topics, settings=True, patience_s=_CREATED_APPEAR_S if created else _APPEAR_S
        )
        return created, [*drift(topics, actual, brokers=await _brokers(client)), *obstacles]


async def require_topics(broker: Broker | str, topics: Topics, names: Iterable[str]) -> None:
    """Check that these topics exist with their partitions.

    Other topics may be missing: a worker that is upgraded before `smidgen topics apply` ran works without a
    new topic that it does not use.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us, or a topic is missing or has other partitions; says what to run.
    """
    needed = frozenset(names)
    wanted = {name: topic for name, topic in topics.items() if name in needed}
    async with admin_client(broker) as client:
        actual = await _appeared(client, wanted)
    for topic in wanted.values():
        existing = actual.get(topic.name)
        if existing is None:
            raise ConfigError(f"topic {topic.name} is missing on {broker}: run `smidgen topics apply`")
        if existing.partitions != topic.partitions:
            raise ConfigError(
                f"topic {topic.name} has {existing.partitions} partitions instead of {topic.partitions}: see "
                f"`smidgen topics {'apply' if existing.partitions < topic.partitions else 'check'}`"
            )


async def _create(client: AIOKafkaAdminClient, missing: list[Topic]) -> list[str]:
    if not missing:
        return []
    replicas = replication(await _brokers(client))
    response = await retried(
        lambda: client.create_topics(
            [
                NewTopic(t.name, t.partitions, replicas, topic_configs=topic_config(t, replicas))
                for t in missing
            ]
        )
    )
    created = []
    for name, code, *rest in response.topic_errors:
        error = for_code(code)
        if code == 0:
            created.append(str(name))
        elif error is not TopicAlreadyExistsError:  # another process was quicker
            failure = BrokerUnavailable if error.retriable else ConfigError
            raise failure(f"topic {name}: {rest[0] if rest and rest[0] else error.__name__}")
    return created


async def _obstacles(broker: Broker, topics: Topics, held: list[str]) -> list[str]:
    """Return the steps required before topics with a shared key (logical names) get more partitions."""
    groups = {topics.group(stage): topics.inputs(stage) for stage in topics.stages}
    facts = await group_facts(broker, topics, groups)
    first = topics[held[0]].name
    running, behind = [], []
    for stage in topics.stages:
        group = facts[topics.group(stage)]
        touched = [name for name in held if stage in (*topics[name].readers, *topics[name].writers)]
        if touched and group.members != 0:
            running.append(stage)
        waiting = sum(group.lag[name] for name in topics.inputs(stage) if name in topics.shared_key)
        if waiting:
            behind.append(f"{stage} has {waiting} messages to read")
    if behind:
        todo = "stop aggregate alone, and wait until they have read all"
        return [f"{first}: not raised: {', '.join(behind)}: {todo}"]
    if running:
        return [f"{first}: not raised: stop the workers of {', '.join(running)}, and try again"]
    return []


async def _raise_partitions(client: AIOKafkaAdminClient, topics: Topics, few: Mapping[str, int]) -> list[str]:
    """Raise the partitions of topics (logical names) that have too few; return one line for each."""
    if not few:
        return []
    wanted = {topics[logical].name: NewPartitions(topics[logical].partitions) for logical in few}
    await retried(lambda: client.create_partitions(wanted))
    deadline = time.monotonic() + _CREATED_APPEAR_S
    while time.monotonic() < deadline:
        actual = await _actual(client, topics, settings=False)
        if all(actual[name].partitions >= new.total_count for name, new in wanted.items() if name in actual):
            break
        await asyncio.sleep(_PAUSE_S)
    return [
        f"{topics[logical].name}: {before} partitions raised to {topics[logical].partitions}"
        for logical, before in few.items()
    ]


async def _brokers(client: AIOKafkaAdminClient) -> int:
    return len((await retried(client.describe_cluster))["brokers"])


async def _appeared(
    client: AIOKafkaAdminClient,
    topics: Mapping[str, Topic],
    *,
    settings: bool = False,
    patience_s: float = _APPEAR_S,
) -> dict[str, Actual]:
    """Return the topics once all exist, or their state after a while."""
    deadline = time.monotonic() + patience_s
    while True:
        actual = await _actual(client, topics, settings=settings)
        if len(actual) == len(topics) or time.monotonic() > deadline:
            return actual
        await asyncio.sleep(_PAUSE_S)


async def _actual(
    client: AIOKafkaAdminClient, topics: Mapping[str, Topic], *, settings: bool = True
) -> dict[str, Actual]:
    return await retried(lambda: _described(client, topics, settings=settings))


async def _described(
    client: AIOKafkaAdminClient, topics: Mapping[str, Topic], *, settings: bool
) -> dict[str, Actual]:
    # Only topics that exist are described: describing another one may create it.
    wanted = {topic.name for topic in topics.values()}
    names = sorted(wanted & set(await client.list_topics()))
    if not names:
        return {}
    # Seeing settings is a right of its own, which workers need not have.
    configs = await _configs(client, names) if settings else {}
    return {
        str(description["topic"]): Actual(
            partitions=len(description["partitions"]),
            config=configs.get(str(description["topic"]), {}),
            replicas=min((len(partition["replicas"]) for partition in description["partitions"]), default=0),
        )
        for description in await client.describe_topics(names)
        if for_code(description["error_code"]) is not UnknownTopicOrPartitionError
    }


async def _configs(client: AIOKafkaAdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    responses = await client.describe_configs(
        [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    )
    configs: dict[str, dict[str, str]] = {}
    for response in responses:
        for code, text, _, name, entries in response.resources:
            if code != 0:
                raise for_code(code)(f"topic {name}: {text or for_code(code).__name__}")
            configs[str(name)] = {str(entry[0]): str(entry[1]) for entry in entries}
    return configs
