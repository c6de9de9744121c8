"""Intake of one input topic: its messages decoded, and those that are still owed."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from pipeline.messages.assembler import ScanAssembler
from pipeline.model import Record, Scan
from pipeline.model.errors import InvalidMessage
from pipeline.stages.base import Decoder
from pipeline.worker.dlq import (
    REPLAY,
    REPLAYED_FROM,
    DeadLetterLimit,
    Rejected,
    TooManyDeadLetters,
    printable,
)

_REPLAY = re.compile(rb"[0-9a-f]{32}/\d{1,18}")


class FetchedMessage(Protocol):
    """A fetched message."""

    topic: str  # the broker's name
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Any  # pairs of a name and bytes; None or empty without any
    generation_id: int  # of the assignment under which it was fetched


class PendingEvent(Protocol):
    """A message to be acknowledged."""

    @property
    def message(self) -> Any:
        """Return the Message."""

    def ack(self) -> bool:
        """Allow the offset to be committed."""


class TopicIntake:
    """One input topic in the present generation."""

    def __init__(self, logical: str, decode: Decoder, max_bytes: int, limit: DeadLetterLimit) -> None:
        self.logical = logical
        self.decode = decode
        self.max_bytes = max_bytes
        self.limit = limit
        self.generation: int | None = None
        self.assembler = ScanAssembler()
        self.unacknowledged: dict[int, deque[PendingEvent]] = defaultdict(deque)
        self.others_wait: Callable[[], bool] = lambda: False  # whether another batch could be taken
        self._next: dict[int, int] = {}

    def begin(self, generation: int, committed: Mapping[int, int]) -> None:
        """Forget the messages of an earlier generation: they are delivered again to whoever owns them.

        ``committed`` holds the offset at which each partition goes on, of those that are not new.
        """
        self.generation = generation
        self._next = dict(committed)
        self.assembler.forget()
        self.unacknowledged.clear()

    def gaps(self, events: Iterable[PendingEvent]) -> list[tuple[int, int, int]]:
        """Return partition, offset that should have come next and offset that came, where these differ."""
        found = []
        for event in events:
            partition, offset = event.message.partition, event.message.offset
            wanted = self._next.get(partition, offset)
            if offset > wanted:
                found.append((partition, wanted, offset))
            self._next[partition] = offset + 1
        return found

    def read(self, events: Sequence[PendingEvent]) -> tuple[list[Record], list[Rejected]]:
        """Decode a batch: what can be used, and what goes to the dead letters.

        Raises:
            TooManyDeadLetters: most of what this topic gives cannot be used; nothing of the batch counts.
        """
        records: list[Record] = []
        unusable: list[Rejected] = []
        for event in events:
            try:
                records.append(self._record(event.message))
            except InvalidMessage as error:
                unusable.append(rejected(event.message, str(error)))
        refused = {(dead_letter.partition, dead_letter.offset) for dead_letter in unusable}
        messages = [event.message for event in events]
        self.limit.note(
            (m.key for m in messages if (m.partition, m.offset) not in refused),
            (dead_letter.key for dead_letter in unusable),
        )
        if unusable and (reason := self.limit.reason_to_stop()):
            raise TooManyDeadLetters(f"{reason}; the last one: {printable(unusable[-1].reason)}")
        return records, unusable

    def keys_of(self, records: Sequence[Record], events: Iterable[PendingEvent]) -> set[bytes | None]:
        """Return the key of each record's last message; these messages are among ``events``."""
        keys = {(e.message.partition, e.message.offset): e.message.key for e in events}
        return {keys[record.partition, record.offset] for record in records}

    def messages_of(self, record: Record, events: Iterable[PendingEvent]) -> list[FetchedMessage]:
        """Return the messages of a record, which came with a batch: of a scan in parts, all of them."""
        waiting = (*self.unacknowledged[record.partition], *events)
        before = [
            event.message
            for event in waiting
            if event.message.partition == record.partition and event.message.offset <= record.offset
        ]
        if not isinstance(record.payload, Scan):
            return before[-1:]
        return [message for message in before if self._is_of(message, record.payload)]

    def _is_of(self, message: FetchedMessage, scan: Scan) -> bool:
        try:
            part = self.decode(message.value)
        except (InvalidMessage, RecursionError):
            return False
        own = (scan.service, scan.workload, scan.end)
        return (part.service, part.workload, part.end) == own

    def acknowledge(self, events: Iterable[PendingEvent], held_from: Mapping[int, int]) -> None:
        """Acknowledge what is done, never past a message that is held: Faust commits across gaps.

        ``held_from`` are the offsets, by partition, from which on the stage holds them.
        """
        for event in events:
            self.unacknowledged[event.message.partition].append(event)
        for partition, waiting in self.unacknowledged.items():
            parts = self.assembler.held_from(partition)
            held = min(
                [offset for offset in (parts, held_from.get(partition)) if offset is not None], default=None
            )
            while waiting and (held is None or waiting[0].message.offset < held):
                waiting.popleft().ack()

    def _record(self, message: FetchedMessage) -> Record:
        size = len(message.value or b"")
        if size > self.max_bytes:
            raise InvalidMessage(f"{size} bytes, more than the {self.max_bytes} that {self.logical} takes")
        try:
            payload = self.decode(message.value)
        except RecursionError:
            raise InvalidMessage("nested too deeply") from None
        replayed = _header(message, REPLAY)
        if replayed is not None and not _REPLAY.fullmatch(replayed):
            raise InvalidMessage(f"header {REPLAY}: should be an id and a number")
        identity = (replayed or b"").decode()
        return Record(self.logical, message.partition, message.offset, payload, identity)


def rejected(message: FetchedMessage, reason: str) -> Rejected:
    """Return a message as what goes to the dead letters."""
    return Rejected(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        reason=reason,
        replayed_from=_header(message, REPLAYED_FROM),
    )


def _header(message: FetchedMessage, name: str) -> bytes | None:
    for key, value in message.headers or ():
        if key == name:
            return bytes(value or b"")
    return None
