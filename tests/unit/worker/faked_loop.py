"""The worker loop over a stage, a publisher and a consumer group that do as ordered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.kafka import Packet
from pipeline.model import Outgoing, Record
from pipeline.model.errors import InvalidMessage, StoreUnavailable
from pipeline.settings.topics import Topics, load_topics
from pipeline.stages.abilities import Assignable, Divisible, Periodic, Positioned, Skipping
from pipeline.stages.base import Decoder, Stage
from pipeline.telemetry.metrics import Telemetry
from pipeline.worker.dlq.limit import LimitConfig
from pipeline.worker.dlq.writer import DeadLetterWriter
from pipeline.worker.loop import StageLoop

TOPICS = load_topics()


def decode_text(value: bytes | None) -> str:
    if not value:
        raise InvalidMessage("empty message")
    return value.decode()


@dataclass
class FakeMessage:
    offset: int
    value: bytes | None
    topic: str = "profiles"
    partition: int = 0
    key: bytes | None = b"k"
    generation_id: int = 1
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass
class FakeEvent:
    message: FakeMessage
    log: list[str]

    def ack(self) -> bool:
        self.log.append(f"ack {self.message.partition}/{self.message.offset}")
        return True


@dataclass
class FakeStage(Stage, Assignable, Divisible, Periodic, Positioned):
    """Writes down what happens to it; ``outcomes`` says what each call of handle does."""

    log: list[str]
    inputs: Mapping[str, Decoder] = field(default_factory=lambda: {"profiles": decode_text})
    outcomes: list[Callable[[], object]] = field(default_factory=list)
    settlings: list[Callable[[], object]] = field(default_factory=list)
    outgoing: list[Outgoing] = field(default_factory=list)
    name: str = "fake"
    threads: set[int] = field(default_factory=set)
    records: list[Record] = field(default_factory=list)
    parts: int = 1  # calls of handle that a batch takes
    seen: list[dict[int, int]] = field(default_factory=list)  # what it was said to be past
    passings: list[Callable[[], object]] = field(default_factory=list)

    idlings: list[Callable[[], object]] = field(default_factory=list)

    idle_s: float = 0.0

    @property
    def unfinished(self) -> bool:
        return self.log.count("settled") % self.parts > 0

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        self.log.append(f"assigned {topic} {list(partitions)}")

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        self.threads.add(threading.get_ident())
        self.records += batch
        self.log.append(f"handle {[record.offset for record in batch]}")
        if self.outcomes:
            self.outcomes.pop(0)()
        return self.outgoing

    def idle(self) -> list[Outgoing]:
        self.log.append("idle")
        if self.idlings:
            self.idlings.pop(0)()
        return self.outgoing

    def stored_up_to(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        return {}

    def passed(self, topic: str, last: Mapping[int, int]) -> None:
        if self.passings:
            self.passings.pop(0)()
        self.seen.append(dict(last))

    def settled(self) -> None:
        if self.settlings:
            self.settlings.pop(0)()
        self.log.append("settled")


@dataclass
class SkippingStage(FakeStage, Skipping):
    """A stage that can do without a record."""

    omitted: list[int] = field(default_factory=list)  # offsets of records that were left out

    def left_out(self, record: Record) -> None:
        self.omitted.append(record.offset)


@dataclass
class FakePublisher:
    log: list[str]
    packets: list[Packet] = field(default_factory=list)
    blocked: bool = False
    largest: int = 1000

    def fits(self, message: Outgoing) -> bool:
        return len(message.value) <= self.largest

    async def publish(self, messages: Sequence[Outgoing], give_up: asyncio.Event) -> bool:
        self.log.append(f"publish {len(messages)}")
        if self.blocked:
            await give_up.wait()
            return False
        return True

    async def publish_packets(self, packets: Sequence[Packet], give_up: asyncio.Event) -> bool:
        self.log.append(f"dead letters {len(packets)}")
        self.packets += packets
        return True


@dataclass
class FakeMembership:
    number: int = 1
    commits: int = 0
    oldest: int = 0
    came: tuple[int, ...] = ()
    begins: dict[int, int] = field(default_factory=dict)
    owned: tuple[int, ...] = (0, 1)
    on_commit: Callable[[], Awaitable[None]] | None = None

    async def commit(self) -> None:
        self.commits += 1
        if self.on_commit:
            await self.on_commit()

    def generation(self) -> int:
        return self.number

    def partitions(self, topic: str) -> list[int]:
        return list(self.owned)

    def committed(self, topic: str) -> dict[int, int]:
        return self.begins

    async def first(self, topic: str, partition: int) -> int:
        return self.oldest

    def fetched(self, topic: str, partition: int, begin: int, end: int) -> bool:
        return any(begin <= offset < end for offset in self.came)


class Bench:
    """A loop with everything around it faked; ``log`` is the order in which things happened."""

    def __init__(
        self,
        *,
        inputs: Mapping[str, Decoder] | None = None,
        topics: Topics = TOPICS,
        limit: LimitConfig = LimitConfig(),  # noqa: B008 - frozen
        stage: type[FakeStage] = FakeStage,
    ) -> None:
        self.now = 0.0
        self.log: list[str] = []
        self.failures: list[BaseException] = []
        self.stage = stage(self.log)
        if inputs is not None:
            self.stage.inputs = inputs
        self.publisher = FakePublisher(self.log)
        self.membership = FakeMembership()
        self.telemetry = Telemetry("fake")
        self.loop = StageLoop(
            self.stage,
            topics,
            self.membership,
            self.publisher,
            DeadLetterWriter(self.publisher, topics, "fake", lambda: 1_700_000_000.0),
            self.telemetry,
            on_failure=self.failures.append,
            limit=limit,
            first_retry_s=0.001,
            monotonic=lambda: self.now,
        )

    def event(self, offset: int, value: bytes | None = b"x", **position: Any) -> FakeEvent:
        return FakeEvent(FakeMessage(offset, value, **position), self.log)

    async def run(self, *batches: Sequence[FakeEvent], topic: str = "profiles") -> None:
        async def source() -> AsyncIterator[Sequence[FakeEvent]]:
            for batch in batches:
                yield batch

        await self.loop.run(topic, source())


def drive(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, 60))


def unavailable() -> None:
    raise StoreUnavailable("gone for a moment")


def bug() -> None:
    raise KeyError("a bug")
