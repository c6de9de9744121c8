"""Departure from a consumer group: a member that ends says so, and the next one need not wait for it.

The library says it from generation 1 of the group on, which is the first one of Kafka. The embedded broker
begins with 0: whoever came after its first member waited 13 seconds for one that had gone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import KafkaError
from aiokafka.protocol.group import LeaveGroupRequest

_FIRST_GENERATION = 0

_leave = GroupCoordinator._maybe_leave_group


def always_leave() -> None:
    """Have all consumers of this process leave their group as they end; may be called again."""
    GroupCoordinator._maybe_leave_group = _leave_any_generation


async def _leave_any_generation(coordinator: Any) -> None:
    if coordinator.generation == _FIRST_GENERATION and coordinator._group_instance_id is None:
        with suppress(KafkaError):  # the broker will notice by itself
            await coordinator._send_req(LeaveGroupRequest(coordinator.group_id, coordinator.member_id))
    await _leave(coordinator)
