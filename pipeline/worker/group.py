"""Protocols of the consumer group and the publisher of a worker loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from pipeline.model import Outgoing


class Membership(Protocol):
    """The membership of this process in its consumer group."""

    def generation(self) -> int:
        """Return the number of the present assignment."""

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic (broker's name) that are assigned to this process."""

    def committed(self, topic: str) -> Mapping[int, int]:
        """Return the next offset of each assigned partition that has a committed offset."""

    async def first(self, topic: str, partition: int) -> int:
        """Return the offset of the oldest message that a partition (broker's name) still has."""

    def fetched(self, topic: str, partition: int, begin: int, end: int) -> bool:
        """Return whether this process fetched any message of a partition in [``begin``, ``end``)."""

    async def commit(self) -> object:
        """Commit the acknowledged offsets."""


class MessagePublisher(Protocol):
    """Publisher of a stage's messages."""

    def fits(self, message: Outgoing) -> bool:
        """Return whether the topic accepts a message of this size."""

    async def publish(self, messages: Sequence[Outgoing], give_up: asyncio.Event) -> bool:
        """Publish and wait; False if given up.

        Raises:
            MessagesRefused: the broker will never accept some messages; the others are published.
        """
