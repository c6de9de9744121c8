"""Whether a worker may join its consumer groups: asked at the start, or else it would wait unseen."""

from __future__ import annotations

from collections.abc import Iterable

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, for_code
from aiokafka.protocol.group import HeartbeatRequest

from pipeline.kafka.connection import Broker
from pipeline.kafka.identity import admin_client, patiently


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
            await _knock(client, group)


async def _knock(client: AIOKafkaAdminClient, group: str) -> None:
    """Send a heartbeat of a member that does not exist: only who may join is told so."""
    coordinator = await patiently(lambda: client.find_coordinator(group))
    answer = await client._send_request(HeartbeatRequest(group, -1, ""), coordinator)
    if for_code(answer.error_code) is GroupAuthorizationFailedError:
        raise GroupAuthorizationFailedError(group)
