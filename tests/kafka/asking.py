"""What the tests on Apache Kafka ask a cluster: leaders, offsets, settings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.protocol.admin import DescribeConfigsRequest

from pipeline.kafka import admin_client
from pipeline.kafka.admin import retried
from tests.e2e.worker_process import wait_until

T = TypeVar("T")


def ask(url: str, question: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
    """Return what an administration client answers."""

    async def connected() -> T:
        async with admin_client(url) as client:
            return await retried(lambda: question(client))

    return asyncio.run(connected())


def partitions(url: str, topic: str) -> list[dict[str, Any]]:
    """Return leader, replicas and replicas in sync of each partition, in order."""

    async def describe(client: AIOKafkaAdminClient) -> list[dict[str, Any]]:
        (found,) = await client.describe_topics([topic])
        return sorted(found["partitions"], key=lambda partition: int(partition["partition"]))

    return ask(url, describe)


def settings(url: str, topic: str) -> dict[str, str]:
    """Return every setting of a topic."""

    async def describe(client: AIOKafkaAdminClient) -> dict[str, str]:
        (response,) = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        return {entry[0]: entry[1] for entry in response.resources[0][4]}

    return ask(url, describe)


def alter(url: str, topic: str, changes: Mapping[str, str]) -> None:
    """Give a topic these settings of its own and no others, known to every broker.

    Brokers learn of settings one after the other, and whoever asks next may ask any of them.
    """
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(changes))
    for response in ask(url, lambda client: client.alter_configs([resource])):
        assert [found[0] for found in response.resources] == [0], response
    wait_until(lambda: has_settings(url, topic, changes), "the settings on every broker")


def has_settings(url: str, topic: str, wanted: Mapping[str, str]) -> bool:
    """Return whether each broker knows these settings of a topic."""

    async def describe(client: AIOKafkaAdminClient) -> bool:
        found = await client.describe_cluster()
        for broker in found["brokers"]:
            request = DescribeConfigsRequest([(ConfigResourceType.TOPIC, topic, None)])
            response = await client._send_request_to_node(broker["node_id"], request)
            code, *_, entries = response.resources[0]
            known = {entry[0]: entry[1] for entry in entries}
            if code != 0 or not known.items() >= wanted.items():
                return False
        return True

    return ask(url, describe)


def add_partitions(url: str, topic: str, count: int) -> None:
    """Give a topic more partitions."""
    ask(url, lambda client: client.create_partitions({topic: NewPartitions(count)}))
    wait_until(lambda: len(partitions(url, topic)) == count, "the new partitions")


def first_offsets(url: str, topic: str, *numbers: int) -> dict[int, int]:
    """Return the offset of the oldest message that is still there."""

    async def look() -> dict[int, int]:
        positions = [TopicPartition(topic, number) for number in numbers]
        async with AIOKafkaConsumer(bootstrap_servers=url) as consumer:
            found = await consumer.beginning_offsets(positions)
        return {position.partition: offset for position, offset in found.items()}

    return asyncio.run(look())


def ends(url: str, topic: str) -> dict[int, int]:
    """Return where the partitions of a topic end, of those that are not empty."""

    async def look() -> dict[int, int]:
        async with AIOKafkaConsumer(bootstrap_servers=url) as consumer:
            positions = [TopicPartition(topic, p) for p in await consumer._client._wait_on_metadata(topic)]
            found = await consumer.end_offsets(positions)
        return {position.partition: offset for position, offset in found.items() if offset}

    return asyncio.run(look())
