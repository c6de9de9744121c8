"""Creates the topics of topics.yaml and tells where the broker differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from pipeline.errors import BrokerUnavailable, ConfigError
from pipeline.runtime.identity import admin_client
from pipeline.topics import Topic, Topics

MAX_REPLICATION = 3


@dataclass(frozen=True, slots=True)
class Actual:
    """A topic as the broker has it."""

    partitions: int
    config: Mapping[str, str]


def drift(topics: Topics, actual: Mapping[str, Actual]) -> list[str]:
    """Return one line for each way in which the broker's topics (by name) differ from topics.yaml."""
    findings = []
    for topic in topics.values():
        found = actual.get(topic.name)
        if found is None:
            findings.append(f"{topic.name}: missing")
            continue
        if found.partitions != topic.partitions:
            findings.append(f"{topic.name}: {found.partitions} partitions instead of {topic.partitions}")
        for key, wanted in topic.broker_config().items():
            has = found.config.get(key)
            if has is not None and has != wanted:
                findings.append(f"{topic.name}: {key} is {has} instead of {wanted}")
    return findings


async def check_topics(broker: str, topics: Topics) -> list[str]:
    """Compare the broker's topics with topics.yaml; return one line a finding.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    async with admin_client(broker) as client:
        return drift(topics, await _actual(client, topics))


async def apply_topics(broker: str, topics: Topics) -> tuple[list[str], list[str]]:
    """Create the topics that are missing; existing ones are never altered.

    Returns the names created, and one line for each difference that remains. A new topic has as many
    replicas as there are brokers, at most three.

    Raises:
        BrokerUnavailable: the broker does not answer, or refuses to create a topic.
    """
    async with admin_client(broker) as client:
        actual = await _actual(client, topics)
        missing = [topic for topic in topics.values() if topic.name not in actual]
        created = await _create(client, missing)
        return created, drift(topics, await _actual(client, topics))


async def require_topics(broker: str, topics: Topics) -> None:
    """Check that every topic is there with its partitions.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: a topic is missing or has other partitions; says what to run.
    """
    async with admin_client(broker) as client:
        actual = await _actual(client, topics)
    for topic in topics.values():
        found = actual.get(topic.name)
        if found is None:
            raise ConfigError(f"topic {topic.name} is missing on {broker}: run `smidgen topics apply`")
        if found.partitions != topic.partitions:
            raise ConfigError(
                f"topic {topic.name} has {found.partitions} partitions instead of {topic.partitions}: "
                "see `smidgen topics check`"
            )


async def _create(client: AIOKafkaAdminClient, missing: list[Topic]) -> list[str]:
    if not missing:
        return []
    brokers = len((await client.describe_cluster())["brokers"])
    replicas = max(1, min(MAX_REPLICATION, brokers))
    response = await client.create_topics(
        [NewTopic(t.name, t.partitions, replicas, topic_configs=t.broker_config()) for t in missing]
    )
    created = []
    for name, code, *rest in response.topic_errors:
        error = for_code(code)
        if code == 0:
            created.append(str(name))
        elif error is not TopicAlreadyExistsError:  # another process was quicker
            raise BrokerUnavailable(f"topic {name}: {rest[0] if rest and rest[0] else error.__name__}")
    return created


async def _actual(client: AIOKafkaAdminClient, topics: Topics) -> dict[str, Actual]:
    # Only topics that exist are described: describing another one may create it.
    wanted = {topic.name for topic in topics.values()}
    names = sorted(wanted & set(await client.list_topics()))
    if not names:
        return {}
    configs = await _configs(client, names)
    return {
        str(found["topic"]): Actual(len(found["partitions"]), configs.get(str(found["topic"]), {}))
        for found in await client.describe_topics(names)
    }


async def _configs(client: AIOKafkaAdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    responses = await client.describe_configs(
        [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    )
    configs: dict[str, dict[str, str]] = {}
    for response in responses:
        for code, text, _, name, entries in response.resources:
            if code != 0:
                raise KafkaError(f"topic {name}: {text or for_code(code).__name__}")
            configs[str(name)] = {str(entry[0]): str(_value(entry)) for entry in entries}
    return configs


def _value(entry: tuple[Any, ...]) -> Any:
    return entry[1]
