"""Dead letters on their topic, and the receipts that note which of them were replayed.

A receipt is a message of the same partition, with the header ``receipt``: ``claim`` before dead letters are
sent, ``sent`` once they are on their topics, ``refused`` if the broker will never take them. Receipts come
after their dead letters and are therefore never deleted before them.

Every stage may write to that topic. With a key, receipts are signed, and others change nothing but that the
dead letters they speak of are shown as ``unsigned``.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from xxhash import xxh3_64_intdigest

from pipeline.kafka import Entry
from pipeline.model.clock import from_iso
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.settings.topics import Topic
from pipeline.worker.dlq.limit import printable, source_of

RECEIPT = "receipt"
CLAIM = b"claim"
SENT = b"sent"
REFUSED = b"refused"

Position = tuple[int, int]
"""Partition and offset of a dead letter."""

SIGNATURE = "signature"
"""Header of a signed receipt."""

Status = Literal["open", "unsigned", "claimed", "replayed", "refused"]
"""Not replayed, the same but for receipts without our signature, claimed by a replay (that may have been
killed), on its topic again, too large for that."""

_SETTLED = ("claimed", "replayed", "refused")


@dataclass(frozen=True, slots=True)
class ReceiptKey:
    """Key that signs receipts on one topic (broker's name); a receipt is valid in one partition only."""

    secret: bytes = field(repr=False)
    topic: str

    def signature(self, partition: int, kind: bytes, value: bytes) -> bytes:
        """Return the header of a receipt that proves its origin."""
        where = f"{self.topic}/{partition}/".encode()
        return hmac.digest(self.secret, where + kind + b"/" + value, "sha256").hex().encode()


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter: where it stands, where it came from, and why. ``topic`` is the broker's name."""

    position: Position
    topic: str
    origin: Position
    reason: str
    stage: str
    time: float
    key: bytes | None
    size: int
    truncated: bool
    null: bool
    replayed_from: str
    digest: int  # of the value

    @property
    def service(self) -> str:
        """The service that its key names."""
        return source_of(self.key)

    def obstacle(self, topics: Mapping[str, Topic]) -> str:
        """Return why it cannot be replayed to one of the topics (by the broker's name); empty if it can."""
        if self.truncated:
            return "was too large to be kept whole"
        if self.origin[1] < 0:
            return "was made by a stage and is too large for its topic"
        if self.null:
            return "never had a value"
        if self.topic not in topics:
            return f"is of a topic that topics.yaml does not name: {self.topic}"
        if self.size > topics[self.topic].max_message_bytes:
            return f"has {self.size} bytes, more than {self.topic} takes"
        return ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A dead letter that a replay was about to send: its number in the replay and the place that it goes to.

    Its message, if it was sent, stands at ``since`` or later in that partition. ``topic`` is logical.
    """

    replay: str
    number: int
    topic: str
    partition: int
    since: int

    @property
    def identity(self) -> str:
        """The id of its message: copies of it are counted once."""
        return f"{self.replay}/{self.number}"


@dataclass
class Receipts:
    """What the receipts read so far say."""

    claims: dict[Position, Claim] = field(default_factory=dict)
    sent: set[Position] = field(default_factory=set)
    refused: set[Position] = field(default_factory=set)
    unsigned: set[Position] = field(default_factory=set)
    key: ReceiptKey | None = None

    def status(self, position: Position) -> Status:
        """Return the status of a dead letter."""
        if position in self.sent:
            return "replayed"
        if position in self.refused:
            return "refused"
        if position in self.claims:
            return "claimed"
        return "unsigned" if position in self.unsigned else "open"

    def interrupted(self) -> dict[tuple[int, str], list[int]]:
        """Return the dead letters that were claimed and never noted as sent.

        The offsets are by partition and replay, in the order of their numbers.
        """
        offsets_by_replay: dict[tuple[int, str], list[int]] = {}
        for (partition, offset), claim in sorted(self.claims.items(), key=lambda item: item[1].number):
            if self.status((partition, offset)) == "claimed":
                offsets_by_replay.setdefault((partition, claim.replay), []).append(offset)
        return offsets_by_replay

    def add(self, entry: Entry) -> bool:
        """Add a message if it is a receipt; return False if it is a dead letter.

        Of several claims of a dead letter the first one is valid.

        Raises:
            ConfigError: it is a receipt that says nothing: nobody can know what was replayed.
        """
        headers = dict(entry.headers)
        kind = headers.get(RECEIPT)
        if kind is None:
            return False
        if self.key is not None:
            wanted = self.key.signature(entry.partition, kind, entry.value or b"")
            if not hmac.compare_digest(headers.get(SIGNATURE, b""), wanted):
                self.unsigned.update((entry.partition, offset) for offset in _offsets(entry))
                return True
        try:
            raw = orjson.loads(entry.value or b"")
            if kind == CLAIM:
                self._claim(entry.partition, raw)
            else:
                outcome = {SENT: self.sent, REFUSED: self.refused}[kind]
                outcome.update((entry.partition, int(offset)) for offset in raw["offsets"])
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"dead-letters partition {entry.partition} offset {entry.offset}: not a receipt of a replay"
            ) from None
        return True

    def _claim(self, partition: int, raw: Mapping[str, Any]) -> None:
        for offset, number, topic, target, since in raw["letters"]:
            claim = Claim(str(raw["replay"]), int(number), str(topic), int(target), int(since))
            self.claims.setdefault((partition, int(offset)), claim)


def _offsets(entry: Entry) -> list[int]:
    """Return the dead letters that a receipt names, whoever wrote it; none if it cannot be read."""
    try:
        raw = orjson.loads(entry.value or b"")
        rows = raw["letters"] if "letters" in raw else [[offset] for offset in raw["offsets"]]
        return [int(row[0]) for row in rows]
    except (ValueError, KeyError, TypeError, IndexError):
        return []


def claim_value(replay: str, claims: Mapping[int, Claim]) -> bytes:
    """Return a claim of dead letters, by offset."""
    rows = [[offset, c.number, c.topic, c.partition, c.since] for offset, c in claims.items()]
    return orjson.dumps({"replay": replay, "letters": rows})


def outcome_value(replay: str, offsets: Iterable[int]) -> bytes:
    """Return a receipt of dead letters that are on their topics, or were refused."""
    return orjson.dumps({"replay": replay, "offsets": list(offsets)})


def dead_letter_of(entry: Entry) -> DeadLetter:
    """Read a dead letter; missing headers are left empty, so that a bad one hides no dead letter."""
    headers = {name: printable(value.decode(errors="replace")) for name, value in entry.headers}
    try:
        time = from_iso(headers.get("time", ""))
    except InvalidMessage:
        time = entry.timestamp
    return DeadLetter(
        position=(entry.partition, entry.offset),
        topic=headers.get("topic", ""),
        origin=(_number(headers.get("partition")), _number(headers.get("offset"))),
        reason=headers.get("reason", ""),
        stage=headers.get("stage", ""),
        time=time,
        key=entry.key,
        size=len(entry.value or b""),
        truncated="truncated" in headers,
        null="null" in headers,
        replayed_from=headers.get("replayed-from", ""),
        digest=xxh3_64_intdigest(entry.value or b""),
    )


def without_copies(dead_letters: Iterable[DeadLetter], receipts: Receipts) -> list[DeadLetter]:
    """Return dead letters in order, only one for each message in the log.

    A worker that is killed before it commits writes some dead letters twice, and a replay of both would count
    the message twice. The copy that a receipt names stays, or else the first one.
    """
    by_message: dict[tuple[object, ...], DeadLetter] = {}
    for candidate in sorted(dead_letters, key=lambda dead_letter: dead_letter.position):
        made_here = candidate.origin[1] < 0
        message = (
            (candidate.position,) if made_here else (candidate.topic, candidate.origin, candidate.digest)
        )
        chosen = by_message.setdefault(message, candidate)
        if _weight(receipts.status(chosen.position)) < _weight(receipts.status(candidate.position)):
            by_message[message] = candidate
    return sorted(by_message.values(), key=lambda dead_letter: dead_letter.position)


def _weight(status: Status) -> int:
    return 2 if status in _SETTLED else 1 if status == "unsigned" else 0


def _number(text: str | None) -> int:
    try:
        return int(text or "")
    except ValueError:
        return -1
