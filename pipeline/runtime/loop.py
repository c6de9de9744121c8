"""The one worker loop: take, decode, handle, publish, acknowledge.

Nothing here knows Faust; ``runtime.app`` connects it. A message is acknowledged only after everything
that follows from it is stored and published, in the order of its partition. Whatever goes wrong before
that leaves it unacknowledged, so that it comes again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from pipeline.errors import InvalidMessage, StoreUnavailable
from pipeline.model import Outgoing, Record
from pipeline.runtime.assembler import ScanAssembler
from pipeline.runtime.deadletters import DeadLetters, Rejected
from pipeline.runtime.publisher import is_set_within
from pipeline.stages.base import Decoder, Stage
from pipeline.telemetry import Telemetry
from pipeline.topics import Topics

logger = logging.getLogger(__name__)

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 15.0

T = TypeVar("T")


class Message(Protocol):
    """A fetched message."""

    topic: str  # the broker's name
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    generation_id: int  # of the assignment under which it was fetched


class Event(Protocol):
    """A message to be acknowledged."""

    @property
    def message(self) -> Any:
        """Return the Message."""

    def ack(self) -> bool:
        """Allow the offset to be committed."""


class Membership(Protocol):
    """What the consumer group gave to this process."""

    def generation(self) -> int:
        """Return the number of the present assignment."""

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic (broker's name) that are assigned to this process."""


class MessagePublisher(Protocol):
    """Puts a stage's messages on their topics."""

    def fits(self, message: Outgoing) -> bool:
        """Tell whether the topic takes a message of this size."""

    async def publish(self, messages: Sequence[Outgoing], give_up: asyncio.Event) -> bool:
        """Publish and wait; False if it was given up."""


class _Input:
    """What the loop knows of one input topic in the present generation."""

    def __init__(self, logical: str, decode: Decoder, max_bytes: int) -> None:
        self.logical = logical
        self.decode = decode
        self.max_bytes = max_bytes
        self.generation: int | None = None
        self.assembler = ScanAssembler()
        self.unacknowledged: dict[int, deque[Event]] = defaultdict(deque)

    def begin(self, generation: int) -> None:
        """Forget the messages of an earlier generation: they are delivered again to whoever owns them."""
        self.generation = generation
        self.assembler.forget()
        self.unacknowledged.clear()

    def record(self, message: Message) -> Record:
        """Decode a message.

        Raises:
            InvalidMessage: it cannot be used.
        """
        size = len(message.value or b"")
        if size > self.max_bytes:
            raise InvalidMessage(f"{size} bytes, more than the {self.max_bytes} that {self.logical} takes")
        try:
            payload = self.decode(message.value)
        except RecursionError:
            raise InvalidMessage("nested too deeply") from None
        return Record(self.logical, message.partition, message.offset, payload)

    def acknowledge(self, events: Iterable[Event]) -> None:
        """Acknowledge what is done, never past a message that is held: Faust commits across gaps."""
        for event in events:
            self.unacknowledged[event.message.partition].append(event)
        for partition, waiting in self.unacknowledged.items():
            held = self.assembler.held_from(partition)
            while waiting and (held is None or waiting[0].message.offset < held):
                waiting.popleft().ack()


class StageLoop:
    """Drives one stage over the batches of its input topics, one batch at a time."""

    def __init__(
        self,
        stage: Stage,
        topics: Topics,
        membership: Membership,
        publisher: MessagePublisher,
        dead_letters: DeadLetters,
        telemetry: Telemetry,
        *,
        on_failure: Callable[[BaseException], None],
        first_retry_s: float = FIRST_RETRY_S,
    ) -> None:
        self.stage = stage
        self._membership = membership
        self._publisher = publisher
        self._dead_letters = dead_letters
        self._telemetry = telemetry
        self._on_failure = on_failure
        self._first_retry_s = first_retry_s
        self._inputs = {
            topics[name].name: _Input(name, decode, topics[name].max_message_bytes)
            for name, decode in stage.inputs.items()
        }
        self._turn = asyncio.Lock()
        self._give_up = asyncio.Event()
        self._stopping = False

    @property
    def input_topics(self) -> tuple[str, ...]:
        """The broker's names of the topics that the stage reads."""
        return tuple(self._inputs)

    async def run(self, topic: str, batches: AsyncIterator[Sequence[Event]]) -> None:
        """Work through the batches of one topic (broker's name) until cancelled.

        An unexpected exception is reported to ``on_failure`` and nothing is acknowledged any more.
        """
        async for batch in batches:
            async with self._turn:
                if self._give_up.is_set():
                    continue  # stopping or revoked: the batch comes again
                try:
                    await self._step(self._inputs[topic], batch)
                except Exception as error:  # the one place: whatever it is, the process stops unacknowledged
                    self._fail(topic, batch, error)

    async def pause(self) -> None:
        """Take no more batches, and wait until the present one is finished or given up.

        Called when partitions are revoked: the group waits for this, so that no other process begins with
        them while a batch of theirs is still being stored here.
        """
        self._give_up.set()
        async with self._turn:
            pass

    def resume(self) -> None:
        """Take batches again, unless the loop is stopping."""
        if not self._stopping:
            self._give_up.clear()

    async def stop(self) -> None:
        """Pause for good."""
        self._stopping = True
        await self.pause()

    async def _step(self, source: _Input, batch: Sequence[Event]) -> None:
        generation = self._membership.generation()
        events = [event for event in batch if event.message.generation_id == generation]
        if not events:
            return
        if source.generation != generation:
            source.begin(generation)
            name = events[0].message.topic
            await self._in_thread(self.stage.assigned, source.logical, self._membership.partitions(name))
        records, rejected = await self._in_thread(_decode, source, events)
        if rejected and not await self._dead_letters.send(rejected, self._give_up):
            return
        whole = [found for record in records if (found := source.assembler.add(record)) is not None]
        if whole and not await self._handled(whole):
            return
        if self._membership.generation() == generation:
            source.acknowledge(events)
        self._telemetry.batch(events, whole, rejected)

    async def _handled(self, records: Sequence[Record]) -> bool:
        """Handle, publish, settle; False if it was given up."""
        outgoing = await self._stored(self.stage.handle, records)
        if outgoing is None:
            return False
        oversized = [message for message in outgoing if not self._publisher.fits(message)]
        if oversized and not await self._dead_letters.send_oversized(oversized, self._give_up):
            return False
        fitting = [message for message in outgoing if self._publisher.fits(message)]
        if fitting and not await self._publisher.publish(fitting, self._give_up):
            return False
        self._telemetry.published(len(fitting), len(oversized))
        return await self._stored(self._settled) is not None

    def _settled(self) -> bool:
        self.stage.settled()
        return True

    async def _stored(self, call: Callable[..., T], *arguments: Any) -> T | None:
        """Make a call of the stage again and again while the store is unavailable; None if given up."""
        delay_s = self._first_retry_s
        while True:
            try:
                return await self._in_thread(call, *arguments)
            except StoreUnavailable as error:
                logger.warning("%s: store unavailable, trying again: %s", self.stage.name, error)
                self._telemetry.retried()
            if await is_set_within(self._give_up, delay_s):
                return None
            delay_s = min(delay_s * 2, LAST_RETRY_S)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call off the event loop; if this is cancelled, still wait for the thread before it passes on.

        Otherwise a second call could run on the stage while the first still does.
        """
        call = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            await asyncio.wait({call})
            raise

    def _fail(self, topic: str, batch: Sequence[Event], error: Exception) -> None:
        self._stopping = True
        self._give_up.set()
        places: dict[int, list[int]] = defaultdict(list)
        for event in batch:
            places[event.message.partition].append(event.message.offset)
        spans = ", ".join(f"partition {p} offsets {min(o)} to {max(o)}" for p, o in sorted(places.items()))
        logger.error("%s: failed on %s %s", self.stage.name, topic, spans, exc_info=error)
        self._on_failure(error)


def _decode(source: _Input, events: Sequence[Event]) -> tuple[list[Record], list[Rejected]]:
    records: list[Record] = []
    rejected: list[Rejected] = []
    for event in events:
        message = event.message
        try:
            records.append(source.record(message))
        except InvalidMessage as error:
            rejected.append(
                Rejected(
                    topic=message.topic,
                    partition=message.partition,
                    offset=message.offset,
                    key=message.key,
                    value=message.value,
                    reason=str(error),
                )
            )
    return records, rejected
