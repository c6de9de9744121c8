"""Replay of dead letters: each is sent to its topic exactly once, however often the replay is killed.

Before dead letters are sent, a claim on their topic records which ones, the replay, their numbers in it, and
the offsets from which they would be found on their target topics. Afterwards a receipt records that they are
there. A replay first finishes claims of an earlier one without a receipt: it searches for the messages that
were sent, and sends the rest under the same numbers. Replay and number are the id of the message, and
aggregate counts two copies of one id once. So a copy made by the client library, or by a replay that hung
for minutes, is not counted twice either.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from pipeline.kafka import (
    Broker,
    MessagesRefused,
    Packet,
    Producer,
    ProducerOptions,
    Publisher,
    SoleMember,
    TopicPartition,
    largest_message_bytes,
    open_reader,
    partition_of,
    read_topic,
    sole_member,
)
from pipeline.model.errors import ConfigError
from pipeline.settings.topics import Topics
from pipeline.worker.dlq.dead_letter import (
    CLAIM,
    RECEIPT,
    REFUSED,
    SENT,
    SIGNATURE,
    Claim,
    DeadLetter,
    Position,
    ReceiptKey,
    Receipts,
    claim_value,
    dead_letter_of,
    outcome_value,
    without_copies,
)
from pipeline.worker.dlq.writer import REPLAY, REPLAYED_FROM, TOPIC

GROUP = "dlq-replay"
"""A consumer group whose only member is the running replay; it commits nothing."""

MAX_DEAD_LETTERS = 200
MAX_BYTES = 8 * 1024**2
"""Most dead letters, and about most bytes, that are claimed and sent together."""

SESSION_S = 10.0


@dataclass(frozen=True, slots=True)
class Survey:
    """All dead letters on the topic, without values and copies, and their receipts."""

    dead_letters: tuple[DeadLetter, ...]
    receipts: Receipts
    ends: Mapping[int, int]  # partition → offset after the last message read


async def survey(broker: Broker, topics: Topics, secret: str | None = None) -> Survey:
    """Read the whole dead-letters topic. With a secret, only receipts signed with it count.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: the topic is missing, or a receipt cannot be read.
    """
    key = ReceiptKey(secret.encode(), topics[TOPIC].name) if secret else None
    dead_letters, receipts = [], Receipts(key=key)
    ends: dict[int, int] = {}
    async for entry in read_topic(broker, topics[TOPIC], from_start=True, follow=False):
        ends[entry.partition] = entry.offset + 1
        if not receipts.add(entry):
            dead_letters.append(dead_letter_of(entry))
    return Survey(tuple(without_copies(dead_letters, receipts)), receipts, ends)


def alone(broker: Broker, topics: Topics) -> AbstractAsyncContextManager[SoleMember]:
    """Be the only running replay; raises the errors of ``sole_member``."""
    taken = "another replay is at work"
    return sole_member(broker, [topics[TOPIC]], topics.group(GROUP), taken=taken, session_s=SESSION_S)


Batch = list[tuple[DeadLetter, bytes]]
"""Dead letters of one partition with their values, which are claimed and sent together."""


class Replay:
    """One run of ``smidgen dlq replay``: ``name`` is its identity, random so that nobody can predict it.

    ``progress`` is called after every batch with the number of dead letters on their topics again.
    """

    def __init__(
        self,
        broker: Broker,
        topics: Topics,
        found: Survey,
        *,
        name: str,
        idempotent: bool,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._broker = broker
        self._topics = topics
        self._logical = {topic.name: logical for logical, topic in topics.items()}
        self._receipts = found.receipts
        self._name = name
        self._numbers = itertools.count()
        self._read = dict(found.ends)
        self._progress = progress
        self._publisher = Publisher(broker, topics, idempotent=idempotent)
        self._options = ProducerOptions(idempotent=idempotent)

    async def run(self, wanted: Iterable[DeadLetter]) -> int:
        """Finish an interrupted replay, send those of ``wanted`` that were not sent, return their number.

        Raises:
            BrokerUnavailable: the broker does not answer; the next run continues from here.
            ConfigError: another replay has claimed dead letters meanwhile.
        """
        largest = largest_message_bytes(self._topics)
        async with open_reader(self._broker, max_message_bytes=largest) as reader:
            self._reader = reader
            self._producer = await Producer.open(self._broker, self._topics, self._options)
            try:
                await self._publisher.start()
                finished = await self._finish()
                return finished + await self._send_new({dead_letter.position for dead_letter in wanted})
            finally:
                await self._publisher.stop()
                await self._producer.close()

    async def _finish(self) -> int:
        """Send the dead letters that an earlier replay had claimed when it ended; return their number."""
        left = self._receipts.interrupted()
        claimed = {(partition, offset) for (partition, _), offsets in left.items() for offset in offsets}
        values = {
            dead_letter.position: (dead_letter, value) async for dead_letter, value in self._kept(claimed)
        }
        sent = 0
        for (partition, replay), offsets in left.items():
            batch = [values[partition, offset] for offset in offsets if (partition, offset) in values]
            present = await self._already_there(batch)
            sent += await self._send(replay, batch, present)
        return sent

    async def _kept(self, wanted: set[Position]) -> AsyncIterator[tuple[DeadLetter, bytes]]:
        """Yield some dead letters with their values, without those that have expired."""
        if wanted:
            async for entry in read_topic(self._broker, self._topics[TOPIC], from_start=True, follow=False):
                if (entry.partition, entry.offset) in wanted:
                    yield dead_letter_of(entry), entry.value or b""

    async def _send_new(self, positions: set[Position]) -> int:
        batches: dict[int, Batch] = defaultdict(list)
        sent = 0
        wanted = {p for p in positions if self._receipts.status(p) in ("open", "unsigned")}
        async for dead_letter, value in self._kept(wanted):
            partition = dead_letter.position[0]
            batches[partition].append((dead_letter, value))
            size = sum(len(value) for _, value in batches[partition])
            if len(batches[partition]) >= MAX_DEAD_LETTERS or size >= MAX_BYTES:
                sent += await self._claim_and_send(partition, batches.pop(partition))
        for partition, batch in batches.items():
            sent += await self._claim_and_send(partition, batch)
        return sent

    async def _claim_and_send(self, partition: int, batch: Batch) -> int:
        targets = [self._target(dead_letter) for dead_letter, _ in batch]
        ends = await self._reader.end_offsets(set(targets))
        claims = {
            dead_letter.position[1]: Claim(
                self._name,
                next(self._numbers),
                self._logical[dead_letter.topic],
                target.partition,
                ends[target],
            )
            for (dead_letter, _), target in zip(batch, targets, strict=True)
        }
        offset = await self._write(partition, CLAIM, claim_value(self._name, claims))
        await self._confirm(partition, offset, claims)
        return await self._send(self._name, batch, set())

    async def _send(self, replay: str, batch: Batch, present: set[Position]) -> int:
        """Send and note one claimed batch; return the number of messages sent."""
        left = [(dead_letter, value) for dead_letter, value in batch if dead_letter.position not in present]
        refused: set[Position] = set()
        try:
            await self._publisher.publish_packets([self._packet(*entry) for entry in left], asyncio.Event())
        except MessagesRefused as error:
            refused = {left[number][0].position for number in error.reasons}
        done = {dead_letter.position for dead_letter, _ in batch} - refused
        for kind, positions, known in (
            (SENT, done, self._receipts.sent),
            (REFUSED, refused, self._receipts.refused),
        ):
            if positions:
                offsets = sorted(offset for _, offset in positions)
                await self._write(min(positions)[0], kind, outcome_value(replay, offsets))
                known.update(positions)
        self._progress(len(left) - len(refused))
        return len(left) - len(refused)

    async def _confirm(self, partition: int, last: int, claims: Mapping[int, Claim]) -> None:
        """Read the topic up to the own claim: the first claim in the log has the dead letters.

        Raises:
            ConfigError: another replay has claimed some of them before.
        """
        position = TopicPartition(self._topics[TOPIC].name, partition)
        since = self._read.get(partition, 0)
        async for entry in self._reader.span(position, since, last + 1):
            self._receipts.add(entry)
        self._read[partition] = last + 1
        for offset, claim in claims.items():
            if self._receipts.claims.get((partition, offset)) != claim:
                raise ConfigError("another replay is at work: it has claimed the same dead letters")

    async def _already_there(self, batch: Batch) -> set[Position]:
        """Return the claimed dead letters that are on their topics without a receipt."""
        wanted: dict[str, Position] = {}  # by the header that a replayed message has
        since: dict[TopicPartition, int] = {}
        for dead_letter, _ in batch:
            claim = self._receipts.claims[dead_letter.position]
            wanted[claim.identity] = dead_letter.position
            target = TopicPartition(self._topics[claim.topic].name, claim.partition)
            since[target] = min(since.get(target, claim.since), claim.since)
        present = set()
        for target, first in since.items():
            async for entry in self._reader.span(target, first, None):
                identity = dict(entry.headers).get(REPLAY, b"").decode(errors="replace")
                if identity in wanted:
                    present.add(wanted[identity])
        return present

    def _target(self, dead_letter: DeadLetter) -> TopicPartition:
        """Return the topic and partition to which a dead letter is sent."""
        topic = self._logical[dead_letter.topic]
        packet = Packet(topic, dead_letter.key, b"", partition=dead_letter.origin[0])
        return TopicPartition(self._topics[topic].name, partition_of(packet, self._topics))

    def _packet(self, dead_letter: DeadLetter, value: bytes) -> Packet:
        claim, (partition, offset) = self._receipts.claims[dead_letter.position], dead_letter.position
        headers = (
            (REPLAYED_FROM, f"{partition}/{offset}".encode()),
            (REPLAY, claim.identity.encode()),
        )
        return Packet(claim.topic, dead_letter.key, value, headers, partition=dead_letter.origin[0])

    async def _write(self, partition: int, kind: bytes, value: bytes) -> int:
        """Put a receipt on the dead-letters topic and return its offset."""
        headers: tuple[tuple[str, bytes], ...] = ((RECEIPT, kind),)
        if (key := self._receipts.key) is not None:
            headers += ((SIGNATURE, key.signature(partition, kind, value)),)
        packet = Packet(TOPIC, None, value, headers, partition)
        (offset,) = await self._producer.send_packets([packet])
        return offset
