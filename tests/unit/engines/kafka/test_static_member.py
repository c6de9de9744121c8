"""A static member over a coordinator that answers as ordered: when it has been replaced, and when not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest

from pipeline.kafka import keep_membership

SESSION_S = 10.0
UNKNOWN, ILLEGAL_GENERATION, FENCED = 25, 22, 82

HEARTBEAT = HeartbeatRequest("group", 1, "member")
COMMIT = OffsetCommitRequest("group", 1, "member", -1, [])


def join(member: str) -> JoinGroupRequest:
    return JoinGroupRequest("group", 6000, 6000, member, "name", "consumer", [])


class Coordinator:
    """Counts how often a new membership is begun."""

    def __init__(self) -> None:
        self.code = 0
        self.resets = 0
        self._group_subscription: set[str] | None = None
        self._metadata_snapshot: dict[str, int] = {}
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(topics={"profiles"}))
        self._closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def _send_req(self, request: object) -> Any:
        if isinstance(request, OffsetCommitRequest):
            return SimpleNamespace(topics=[("profiles", [(0, self.code)])])
        return SimpleNamespace(error_code=self.code)

    def reset_generation(self) -> None:
        self.resets += 1

    async def _on_join_complete(self) -> None:
        """Joined, and not as the leader."""

    def _get_metadata_snapshot(self) -> dict[str, int]:
        return {"profiles": 12}


def asked(request: Any, code: int, silent_s: float = 1.0) -> tuple[bool, int]:
    """Return whether a member that had an answer so long ago ends, and how often it begins anew."""

    async def scenario() -> tuple[bool, int]:
        coordinator, replaced, now = Coordinator(), [], 0.0
        keep_membership(
            SimpleNamespace(_coordinator=coordinator), SESSION_S, lambda: replaced.append(1), lambda: now
        )
        made: Any = coordinator
        await made._send_req(HEARTBEAT)
        now, coordinator.code = silent_s, code
        coordinator._closing.set_result(None)
        try:
            await made._send_req(request)
            assert not replaced or request is COMMIT
        except (asyncio.CancelledError, KafkaConnectionError):
            assert replaced
        made.reset_generation()
        return bool(replaced), coordinator.resets

    return asyncio.run(scenario())


@pytest.mark.parametrize("request_", [HEARTBEAT, COMMIT, join("member")])
def test_a_member_that_is_suddenly_unknown_is_replaced_and_does_not_join_again(request_: object) -> None:
    assert asked(request_, UNKNOWN) == (True, 0)
    assert asked(request_, FENCED) == (True, 0)


@pytest.mark.parametrize("request_", [HEARTBEAT, COMMIT, join("member")])
def test_one_whose_session_may_have_expired_joins_again(request_: object) -> None:
    assert asked(request_, UNKNOWN, silent_s=SESSION_S) == (False, 1)


def test_what_else_happens_to_members_is_left_to_the_library() -> None:
    assert asked(HEARTBEAT, ILLEGAL_GENERATION) == (False, 1)
    assert asked(join(""), UNKNOWN) == (False, 1)
    assert asked(HEARTBEAT, 0) == (False, 1)


def test_everyone_looks_for_new_partitions() -> None:
    async def scenario() -> Coordinator:
        coordinator = Coordinator()
        keep_membership(SimpleNamespace(_coordinator=coordinator), SESSION_S, lambda: None)
        await coordinator._on_join_complete()
        return coordinator

    found = asyncio.run(scenario())
    assert found._group_subscription == {"profiles"}
    assert found._metadata_snapshot == {"profiles": 12}
