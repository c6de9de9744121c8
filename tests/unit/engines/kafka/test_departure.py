"""A member that ends leaves its group, in whatever generation of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.group import LeaveGroupRequest

from pipeline.kafka import always_leave


def sent_at_the_end(generation: int, instance: str | None, failure: Exception | None = None) -> list[Any]:
    """What a member sends as it ends."""
    sent = []

    async def send(request: Any) -> None:
        sent.append(request)
        if failure is not None:
            raise failure

    always_leave()
    member = SimpleNamespace(generation=generation, _group_instance_id=instance, group_id="g", member_id="m")
    member._send_req, member.reset_generation = send, lambda: None
    asyncio.run(GroupCoordinator._maybe_leave_group(member))
    return sent


@pytest.mark.parametrize(
    ("generation", "instance", "leaves"),
    [(-1, None, 0), (0, None, 1), (1, None, 1), (7, None, 1), (0, "name", 0), (7, "name", 0)],
)
def test_a_member_without_a_name_leaves_once(generation: int, instance: str | None, leaves: int) -> None:
    sent = sent_at_the_end(generation, instance)
    assert [type(request) for request in sent] == [LeaveGroupRequest] * leaves


@pytest.mark.parametrize("generation", [0, 1])
def test_a_broker_that_has_gone_does_not_keep_a_member_from_ending(generation: int) -> None:
    assert len(sent_at_the_end(generation, None, KafkaConnectionError())) == 1
