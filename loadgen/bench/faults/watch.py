"""Watcher of the broker from outside: the progress of every topic and stage, and the events."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import xxhash

from pipeline.kafka import Reader, admin_client, committed_offsets, open_reader, partitions_of
from pipeline.messages.scans import decode_scan
from pipeline.processes import TaskSupervisor
from pipeline.settings.topics import OUTSIDE, Topics

_LOOK_S = 0.5
_ANSWER_S = 5.0

Position = tuple[str, int]
"""Logical topic and partition."""


@dataclass(frozen=True)
class OffsetView:
    """Offsets at one moment: those after the last message, and the committed ones."""

    at: float
    topics: Topics
    ends: Mapping[Position, int] = field(default_factory=dict)
    committed: Mapping[Position, int] = field(default_factory=dict)

    def lag(self, stage: str) -> int:
        """Return the number of messages that a stage has not committed."""
        inputs = self.topics.inputs(stage)
        return sum(
            end - self.committed.get(position, 0)
            for position, end in self.ends.items()
            if position[0] in inputs
        )

    def under_way(self) -> int:
        """Return the number of messages that all stages together have not committed."""
        return sum(map(self.lag, self.topics.stages))

    def covers(self, earlier: OffsetView) -> bool:
        """Return whether every stage has committed all messages of its topics as of an earlier moment."""
        inputs = {topic for stage in self.topics.stages for topic in self.topics.inputs(stage)}
        return all(
            self.committed.get(position, 0) >= end
            for position, end in earlier.ends.items()
            if position[0] in inputs
        )


def content_hash(topic: str, value: bytes) -> int:
    """Return a hash that identifies a message of a load: no two messages are equal."""
    return xxhash.xxh3_64_intdigest(b"%s %s" % (topic.encode(), value))


class OffsetWatcher:
    """Thread that reads every topic to its end and every group's offsets, twice a second.

    It survives outages of the broker: without an answer its latest view stays unchanged.
    """

    def __init__(self, broker: str, topics: Topics) -> None:
        self._broker = broker
        self._topics = topics
        self._watched = tuple(name for name, topic in topics.items() if topic.readers)
        self._logical = {topics[name].name: name for name in self._watched}
        self._ends: dict[Position, int] = {}
        self._committed: dict[Position, int] = {}
        self.events: list[bytes] = []
        self.recoveries: list[float] = []
        """Seconds from each mark until all that was on the topics by then had been worked through."""
        self._marks: list[OffsetView] = []
        self.published: set[int] = set()
        """Hashes of all messages on topics that agents write."""
        self.parted: set[tuple[str, str, float]] = set()
        """Scans that detect cut into parts: service, workload, end."""
        self.refused: set[bytes] = set()
        """Origins of the dead letters, each offset once."""
        self.view = OffsetView(time.monotonic(), topics)
        self._tasks = TaskSupervisor(first_pause_s=_LOOK_S)
        self._stop = threading.Event()

    @property
    def trouble(self) -> str:
        """Reason why it cannot look; empty if it can."""
        return self._tasks.problem()

    def __enter__(self) -> Self:
        self._thread = self._tasks.run_thread("watcher", lambda: asyncio.run(self._look_on()), self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(4 * _ANSWER_S)

    def mark(self) -> None:
        """Record the moment of a strike."""
        self._marks.append(replace(self.view, at=time.monotonic()))

    async def _look_on(self) -> None:
        async with (
            open_reader(self._broker, max_message_bytes=32 << 20) as reader,
            admin_client(self._broker, timeout_s=2 * _ANSWER_S) as admin,
        ):
            positions = [position for name in self._watched for position in partitions_of(self._topics, name)]
            reader.seek({p: self._ends.get((self._logical[p.topic], p.partition), 0) for p in positions})
            while not self._stop.is_set():
                await self._look(reader, admin)

    async def _look(self, reader: Reader, admin: Any) -> None:
        # Offsets before ends: in the other order, messages that came in between would look processed.
        for stage in self._topics.stages:
            partitions = [p for name in self._topics.inputs(stage) for p in partitions_of(self._topics, name)]
            done = await asyncio.wait_for(
                committed_offsets(admin, self._topics.group(stage), partitions), 2 * _ANSWER_S
            )
            for position, offset in done.items():
                self._committed[self._logical[position.topic], position.partition] = offset
        deadline = time.monotonic() + _LOOK_S
        while (left_s := deadline - time.monotonic()) > 0:
            for entry in await reader.poll(left_s + 0.001):
                logical = self._logical[entry.topic]
                self._ends[logical, entry.partition] = entry.offset + 1
                self._note(logical, entry.value or b"", entry.headers)
        self.view = OffsetView(time.monotonic(), self._topics, dict(self._ends), dict(self._committed))
        for mark in list(self._marks):
            if self.view.covers(mark):
                self.recoveries.append(self.view.at - mark.at)
                self._marks.remove(mark)

    def _note(self, topic: str, value: bytes, headers: tuple[tuple[str, bytes], ...]) -> None:
        if self._topics[topic].writers == (OUTSIDE,):
            self.published.add(content_hash(topic, value))
        elif topic == "regressions":
            self.events.append(value)
        elif topic == "change-points":
            scan = decode_scan(value)
            if scan.parts > 1:
                self.parted.add((scan.service, scan.workload, scan.end))
        elif topic == "dead-letters":
            origin = dict(headers)
            self.refused.add(b" ".join(origin.get(name, b"?") for name in ("topic", "partition", "offset")))
