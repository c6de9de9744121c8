"""What a worker loop asks of the consumer group and of the publisher around it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from pipeline.model import Outgoing


class Membership(Protocol):
    """What the consumer group gave to this process."""

    def generation(self) -> int:
        """Return the number of the present assignment."""

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic (broker's name) that are assigned to this process."""

    def committed(self, topic: str) -> Mapping[int, int]:
        """Return the offset at which each of them goes on, of those of which something was committed."""

    async def first(self, topic: str, partition: int) -> int:
        """Return the offset of the oldest message of a partition (broker's name) that is still there."""

    def fetched(self, topic: str, partition: int, begin: int, end: int) -> bool:
        """Return whether any message of a partition from ``begin`` to before ``end`` came to this process."""

    async def commit(self) -> object:
        """Commit what is acknowledged."""


class MessagePublisher(Protocol):
    """Puts a stage's messages on their topics."""

    def fits(self, message: Outgoing) -> bool:
        """Return whether the topic takes a message of this size."""

    async def publish(self, messages: Sequence[Outgoing], give_up: asyncio.Event) -> bool:
        """Publish and wait; False if it was given up.

        Raises:
            MessagesRefused: the broker will never take some of them; the others are published.
        """
