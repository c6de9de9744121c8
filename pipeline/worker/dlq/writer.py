"""Writer of dead letters: the bytes of what can never be used, its origin and the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.kafka import Packet
from pipeline.model import Outgoing
from pipeline.model.clock import Clock, to_iso
from pipeline.settings.topics import Topics

TOPIC = "dead-letters"
MAX_REASON = 2000
MAX_POSITION = 64

REPLAYED_FROM = "replayed-from"
"""Header of a replayed message: partition and offset of its dead letter."""

REPLAY = "replay"
"""Header of a replayed message: which replay sent it, and its number there (see ``Replay``)."""


class PacketPublisher(Protocol):
    """Puts packets on their topics; False if it was given up."""

    async def publish_packets(self, packets: Sequence[Packet], give_up: asyncio.Event) -> bool:
        """Publish and wait."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A message with its place in the log and why it cannot be used. ``topic`` is the broker's name."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    reason: str
    replayed_from: bytes | None = None  # the dead letter that it was, if it was replayed


class DeadLetterWriter:
    """Writes rejected messages to the dead-letters topic.

    A dead letter has the original key and value, and headers in text: topic, partition, offset, reason,
    stage, time. A value that the topic does not take is cut, with the header ``truncated: <bytes>``. One
    without a value becomes an empty one with the header ``null: value``. What a replay sent says by
    ``replayed-from`` which dead letter it was before.
    """

    def __init__(self, publisher: PacketPublisher, topics: Topics, stage: str, clock: Clock) -> None:
        self._publisher = publisher
        self._limit_bytes = topics[TOPIC].max_message_bytes
        self._stage = stage
        self._clock = clock

    async def send(self, rejected: Sequence[Rejected], give_up: asyncio.Event) -> bool:
        """Write dead letters and wait until they are on the topic; False if it was given up."""
        return await self._publisher.publish_packets([self._dead_letter(r) for r in rejected], give_up)

    async def send_oversized(self, messages: Sequence[Outgoing], give_up: asyncio.Event) -> bool:
        """Write dead letters for a stage's own messages that their topics would not take."""
        return await self.send(
            [
                Rejected(
                    topic=m.topic,
                    partition=-1,
                    offset=-1,
                    key=m.key.encode(),
                    value=m.value,
                    reason=f"{len(m.value)} bytes from {self._stage} are too many for {m.topic}",
                )
                for m in messages
            ],
            give_up,
        )

    def _dead_letter(self, rejected: Rejected) -> Packet:
        value = rejected.value or b""
        headers = {
            "topic": rejected.topic,
            "partition": str(rejected.partition),
            "offset": str(rejected.offset),
            "reason": rejected.reason[:MAX_REASON],
            "stage": self._stage,
            "time": to_iso(self._clock()),
        }
        if rejected.value is None:
            headers["null"] = "value"
        if rejected.replayed_from is not None:
            headers[REPLAYED_FROM] = rejected.replayed_from[:MAX_POSITION].decode(errors="replace")
        room = max(0, self._limit_bytes - 2 * MAX_REASON - len(rejected.key or b"") - 1024)
        if len(value) > room:
            headers["truncated"] = str(len(value))
            value = value[:room]
        return Packet(
            topic=TOPIC,
            key=rejected.key,
            value=value,
            headers=tuple((name, text.encode()) for name, text in headers.items()),
            partition=max(0, rejected.partition),
        )
