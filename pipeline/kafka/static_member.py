"""Static member of a consumer group: it keeps its partitions while it restarts, and ends once it is replaced.

The client library joins under a name (``group_instance_id``), but does not know what it means to lose it:
once another process has joined under the same name, it joins again, and so do both for ever. And where the
leader of a group has restarted, no member looks for new partitions any more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaConnectionError, UnknownMemberIdError
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest

_UNKNOWN_MEMBER = UnknownMemberIdError.errno
_FENCED_INSTANCE = 82  # the library has no name for it


def keep_membership(
    consumer: AIOKafkaConsumer,
    session_s: float,
    on_replaced: Callable[[], object],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Watch a started consumer's membership under its name; to be called before it subscribes.

    ``on_replaced`` is called once if the group no longer knows the member although its session of
    ``session_s`` cannot have expired: another process has its name. It then joins no more, and is to be
    stopped.
    """
    _Membership(consumer._coordinator, session_s, on_replaced, monotonic).install()


class _Membership:
    def __init__(
        self,
        coordinator: Any,
        session_s: float,
        on_replaced: Callable[[], object],
        monotonic: Callable[[], float],
    ) -> None:
        self._coordinator = coordinator
        self._session_s = session_s
        self._on_replaced = on_replaced
        self._monotonic = monotonic
        self._known_at = monotonic()  # when the group knew this member last
        self._replaced = False
        self._send = coordinator._send_req
        self._forget = coordinator.reset_generation
        self._joined = coordinator._on_join_complete

    def install(self) -> None:
        self._coordinator._send_req = self._asked
        self._coordinator.reset_generation = self._reset
        self._coordinator._on_join_complete = self._on_join_complete

    async def _asked(self, request: Any) -> Any:
        began = self._monotonic()
        response = await self._send(request)
        if not isinstance(
            request, HeartbeatRequest | JoinGroupRequest | SyncGroupRequest | OffsetCommitRequest
        ):
            return response
        codes = _codes(response)
        if codes == {0}:
            self._known_at = began
        member = isinstance(request, OffsetCommitRequest | HeartbeatRequest) or request._member_id
        expired = began - self._known_at >= self._session_s
        if not self._replaced and (
            _FENCED_INSTANCE in codes or (_UNKNOWN_MEMBER in codes and member and not expired)
        ):
            self._replaced = True
            self._on_replaced()
        if self._replaced and not isinstance(
            request, OffsetCommitRequest
        ):  # a commit has failed, and says so
            await asyncio.wait([self._coordinator._closing])
            # Each in the way in which the library ends without a word.
            raise asyncio.CancelledError if isinstance(request, HeartbeatRequest) else KafkaConnectionError
        return response

    def _reset(self) -> None:
        if not self._replaced:
            self._forget()

    async def _on_join_complete(self, *arguments: Any) -> None:
        """Look for new partitions as the leader does, who may not know that it is the leader."""
        await self._joined(*arguments)
        coordinator = self._coordinator
        if coordinator._group_subscription is None:
            coordinator._group_subscription = set(coordinator._subscription.subscription.topics)
            coordinator._metadata_snapshot = coordinator._get_metadata_snapshot()


def _codes(response: Any) -> set[int]:
    if hasattr(response, "error_code"):
        return {response.error_code}
    return {code for _, partitions in response.topics for _, code in partitions}
