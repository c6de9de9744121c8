"""Intake of one input topic: its messages decoded, and those that are still owed."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from pipeline.errors import InvalidMessage
from pipeline.model import Record
from pipeline.replayed import ReplayedRecord, log_of, number_of
from pipeline.runtime.dlq import (
    REPLAY,
    REPLAYED_FROM,
    DeadLetterLimit,
    Rejected,
    TooManyDeadLetters,
    printable,
)
from pipeline.runtime.worker.assembler import ScanAssembler
from pipeline.stages.base import Decoder

MAX_REPLAYS = 8
"""Most replays in one batch: each is stored on its own, and a header is quickly forged."""

_REPLAY = re.compile(rb"([0-9a-f]{32})/(\d{1,18})")


class Message(Protocol):
    """A fetched message."""

    topic: str  # the broker's name
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Any  # pairs of a name and bytes; None or empty without any
    generation_id: int  # of the assignment under which it was fetched


class Event(Protocol):
    """A message to be acknowledged."""

    @property
    def message(self) -> Any:
        """Return the Message."""

    def ack(self) -> bool:
        """Allow the offset to be committed."""


class Intake:
    """One input topic in the present generation."""

    def __init__(self, logical: str, decode: Decoder, max_bytes: int, limit: DeadLetterLimit) -> None:
        self.logical = logical
        self.decode = decode
        self.max_bytes = max_bytes
        self.limit = limit
        self.generation: int | None = None
        self.assembler = ScanAssembler()
        self.unacknowledged: dict[int, deque[Event]] = defaultdict(deque)
        self._next: dict[int, int] = {}

    def begin(self, generation: int, committed: Mapping[int, int]) -> None:
        """Forget the messages of an earlier generation: they are delivered again to whoever owns them.

        ``committed`` holds the offset at which each partition goes on, of those that are not new.
        """
        self.generation = generation
        self._next = dict(committed)
        self.assembler.forget()
        self.unacknowledged.clear()

    def missing(self, events: Iterable[Event]) -> list[tuple[int, int, int]]:
        """Return partition, first and last offset of what was gone when this assignment began to read."""
        found = []
        for event in events:
            place, offset = event.message.partition, event.message.offset
            wanted = self._next.pop(place, offset)
            if offset > wanted:
                found.append((place, wanted, offset - 1))
        return found

    def read(self, events: Sequence[Event]) -> tuple[list[Record], list[Rejected]]:
        """Decode a batch: what can be used, and what goes to the dead letters.

        Raises:
            TooManyDeadLetters: most of what this topic gives cannot be used; nothing of the batch counts.
        """
        records: list[Record] = []
        rejected: list[Rejected] = []
        replays: set[str] = set()
        for event in events:
            try:
                records.append(self._record(event.message, replays))
            except InvalidMessage as error:
                rejected.append(_rejected(event.message, str(error)))
        refused = {(dead_letter.partition, dead_letter.offset) for dead_letter in rejected}
        messages = [event.message for event in events]
        self.limit.note(
            (m.key for m in messages if (m.partition, m.offset) not in refused),
            (dead_letter.key for dead_letter in rejected),
        )
        if rejected and (reason := self.limit.reason_to_stop()):
            raise TooManyDeadLetters(f"{reason}; the last one: {printable(rejected[-1].reason)}")
        return records, rejected

    def acknowledge(self, events: Iterable[Event]) -> None:
        """Acknowledge what is done, never past a message that is held: Faust commits across gaps."""
        for event in events:
            self.unacknowledged[event.message.partition].append(event)
        for partition, waiting in self.unacknowledged.items():
            held = self.assembler.held_from(partition)
            while waiting and (held is None or waiting[0].message.offset < held):
                waiting.popleft().ack()

    def _record(self, message: Message, replays: set[str]) -> Record:
        size = len(message.value or b"")
        if size > self.max_bytes:
            raise InvalidMessage(f"{size} bytes, more than the {self.max_bytes} that {self.logical} takes")
        try:
            payload = self.decode(message.value)
        except RecursionError:
            raise InvalidMessage("nested too deeply") from None
        place = _header(message, REPLAY)
        if place is None:
            return Record(self.logical, message.partition, message.offset, payload)
        found = _REPLAY.fullmatch(place)
        if found is None:
            raise InvalidMessage(f"header {REPLAY}: should be an id and a number")
        replay, number = found[1].decode(), int(found[2])
        if replay not in replays and len(replays) == MAX_REPLAYS:
            raise InvalidMessage(
                f"header {REPLAY}: more than {MAX_REPLAYS} replays at a time; replay it again"
            )
        replays.add(replay)
        return ReplayedRecord(self.logical, message.partition, message.offset, payload, replay, number)


def by_replay(records: Sequence[Record]) -> list[list[Record]]:
    """Part a batch into what came as usual, and then what each replay sent, each in its order.

    Of several copies of a replayed message the first is kept: a stage knows those of earlier batches only.
    """
    groups: dict[str, list[Record]] = {}
    seen: set[tuple[str, int, int]] = set()
    for record in records:
        log = log_of(record)
        if isinstance(record, ReplayedRecord):
            place = (log, record.partition, number_of(record))
            if place in seen:
                continue
            seen.add(place)
        groups.setdefault(log, []).append(record)
    return sorted(groups.values(), key=lambda group: isinstance(group[0], ReplayedRecord))


def _rejected(message: Message, reason: str) -> Rejected:
    return Rejected(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        reason=reason,
        replayed_from=_header(message, REPLAYED_FROM),
    )


def _header(message: Message, name: str) -> bytes | None:
    for key, value in message.headers or ():
        if key == name:
            return bytes(value or b"")
    return None
