"""Looks at the broker from outside: how far every topic and every stage is, and what events came."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from pipeline.topics import Topics, group_name

_LOOK_S = 0.5
_ANSWER_S = 5.0

Place = tuple[str, int]
"""Logical topic and partition."""


@dataclass(frozen=True)
class View:
    """What was seen at one moment: offsets after the last message, and committed ones."""

    at: float
    topics: Topics
    ends: Mapping[Place, int] = field(default_factory=dict)
    committed: Mapping[Place, int] = field(default_factory=dict)

    def lag(self, stage: str) -> int:
        """Return how many messages a stage has not committed."""
        inputs = self.topics.inputs(stage)
        return sum(
            end - self.committed.get(place, 0) for place, end in self.ends.items() if place[0] in inputs
        )

    def covers(self, earlier: View) -> bool:
        """Tell whether every stage is done with all that was on its topics at an earlier moment."""
        inputs = {topic for stage in self.topics.stages for topic in self.topics.inputs(stage)}
        return all(
            self.committed.get(place, 0) >= end for place, end in earlier.ends.items() if place[0] in inputs
        )


class Watcher:
    """Reads every topic to its end and asks for every group's offsets, twice a second, in a thread.

    It outlives outages of the broker: while it gets no answer, its latest view stays as it was.
    """

    def __init__(self, broker: str, topics: Topics) -> None:
        self._broker = broker
        self._topics = topics
        self._watched = tuple(name for name, topic in topics.items() if topic.readers)
        self._logical = {topics[name].name: name for name in self._watched}
        self._ends: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}
        self.events: list[bytes] = []
        self.recoveries: list[float] = []
        """Seconds from each mark until all that was on the topics by then had been worked through."""
        self._marks: list[View] = []
        self.refused: set[bytes] = set()
        """Where the dead letters came from, each place once."""
        self.view = View(time.monotonic(), topics)
        self.trouble = ""
        """Why it last could not look."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(4 * _ANSWER_S)

    def mark(self) -> None:
        """Take note of this moment, in which a fault strikes."""
        self._marks.append(replace(self.view, at=time.monotonic()))

    async def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                await self._look_on()
            except (KafkaError, OSError, TimeoutError) as error:
                self.trouble = f"{type(error).__name__}: {error}"
            await asyncio.sleep(_LOOK_S)

    async def _look_on(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._broker, max_partition_fetch_bytes=32 << 20, auto_offset_reset="earliest"
        )
        admin = AIOKafkaAdminClient(bootstrap_servers=self._broker, request_timeout_ms=10_000)
        try:
            await asyncio.wait_for(consumer.start(), _ANSWER_S)
            await asyncio.wait_for(admin.start(), _ANSWER_S)
            places = [
                TopicPartition(topic.name, partition)
                for topic in (self._topics[name] for name in self._watched)
                for partition in range(topic.partitions)
            ]
            consumer.assign(places)
            for place in places:
                consumer.seek(place, self._ends.get((self._logical[place.topic], place.partition), 0))
            while not self._stop.is_set():
                await self._look(consumer, admin)
        finally:
            # As tasks: a client that is closed while it is disconnected may end in CancelledError.
            closing = [asyncio.ensure_future(consumer.stop()), asyncio.ensure_future(admin.close())]
            _, late = await asyncio.wait(closing, timeout=_ANSWER_S)
            for task in late:
                task.cancel()

    async def _look(self, consumer: AIOKafkaConsumer, admin: AIOKafkaAdminClient) -> None:
        # Offsets before ends: were it the other way round, what came between would look done.
        for stage in self._topics.stages:
            # Each by its name: asked for all of a group, the embedded broker gives no answer that is one.
            asked = [
                TopicPartition(self._topics[name].name, partition)
                for name in self._topics.inputs(stage)
                for partition in range(self._topics[name].partitions)
            ]
            found = await asyncio.wait_for(
                admin.list_consumer_group_offsets(group_name(stage), partitions=asked), 2 * _ANSWER_S
            )
            for place, offset in found.items():
                if offset.offset >= 0:
                    self._committed[self._logical[place.topic], place.partition] = offset.offset
        deadline = time.monotonic() + _LOOK_S
        while (left_s := deadline - time.monotonic()) > 0:
            for place, messages in (await consumer.getmany(timeout_ms=int(left_s * 1000) + 1)).items():
                logical = self._logical[place.topic]
                self._ends[logical, place.partition] = messages[-1].offset + 1
                for message in messages:
                    self._note(logical, message.value or b"", tuple(message.headers))
        self.view = View(time.monotonic(), self._topics, dict(self._ends), dict(self._committed))
        for mark in list(self._marks):
            if self.view.covers(mark):
                self.recoveries.append(self.view.at - mark.at)
                self._marks.remove(mark)

    def _note(self, topic: str, value: bytes, headers: tuple[tuple[str, bytes], ...]) -> None:
        if topic == "regressions":
            self.events.append(value)
        elif topic == "dead-letters":
            told = dict(headers)
            self.refused.add(b" ".join(told.get(name, b"?") for name in ("topic", "partition", "offset")))
