"""The worker of alerts: one process of a consumer group over the topics of events."""

from __future__ import annotations

import asyncio
import logging
import time

from pipeline.delivery.alerts.delivery import Part
from pipeline.delivery.alerts.desk import Desk
from pipeline.kafka import Broker, ConsumerMember, TopicPartition, offsets_after, open_member
from pipeline.model.errors import BrokerUnavailable
from pipeline.settings.topics import Topics
from pipeline.telemetry.metrics import Sample

log = logging.getLogger(__name__)

GROUP = "alerts"
POLL_S = 0.5
AGAIN_S = 5.0


class AlertWorker:
    """Takes events in and has the desk send due alerts; a health endpoint can watch it like a stage."""

    name = GROUP

    def __init__(self, desk: Desk, broker: Broker, topics: Topics, *, from_start: bool = False) -> None:
        self._desk = desk
        self._broker = broker
        self._topics = topics
        self._from_start = from_start
        self._joined = False
        self._turned = time.monotonic()

    def call_s(self) -> float:
        """Return the seconds that its present turn has taken."""
        return time.monotonic() - self._turned

    def assignment(self) -> str:
        """Return what the worker waits for; ``ok`` once its group has assigned partitions, perhaps none."""
        return "ok" if self._joined else "waits for partitions"

    def samples(self) -> list[Sample]:
        """Return the worker's metrics, named as in METRICS."""
        return self._desk.samples()

    async def run(self, stop: asyncio.Event) -> None:
        """Send alerts until ``stop``, whatever broker, store and targets do meanwhile.

        A group without commits begins with new events, or ``from_start``.

        Raises:
            ConfigError: there is no topic, or the broker refuses us.
        """
        try:
            while not stop.is_set():
                try:
                    await self._read(stop)
                except BrokerUnavailable as error:
                    self._joined = False
                    log.warning("%s; once more in %.0f s", error, AGAIN_S)
                    await _wait(stop, AGAIN_S)
        finally:
            await self._desk.finish()

    async def _read(self, stop: asyncio.Event) -> None:
        """Read as a member of the group; offsets are committed once the deliveries of events are stored."""
        arrived = asyncio.Event()
        topics = [self._topics[source] for source in self._desk.sources]
        sources = dict(zip((topic.name for topic in topics), self._desk.sources, strict=True))

        def parts_of(partitions: frozenset[TopicPartition]) -> frozenset[Part]:
            return frozenset((sources[partition.topic], partition.partition) for partition in partitions)

        async def leave(partitions: frozenset[TopicPartition]) -> None:
            await self._desk.left(parts_of(partitions))

        async def take_over(partitions: frozenset[TopicPartition]) -> None:
            await self._desk.arrived(parts_of(partitions))
            arrived.set()

        async with open_member(
            self._broker,
            topics,
            self._topics.group(GROUP),
            from_start=self._from_start,
            leaving=leave,
            arrived=take_over,
        ) as member:
            while not stop.is_set():
                if arrived.is_set():
                    arrived.clear()
                    await member.begin()
                    self._joined = True
                    log.info("alerts of %d partitions, %d wait", len(member.partitions), self._desk.waiting)
                await self._turn(member)
            await self._desk.finish()

    async def _turn(self, member: ConsumerMember) -> None:
        self._turned = time.monotonic()
        entries = await member.poll(POLL_S)
        if entries:
            await self._desk.take(entries)
            await member.commit(offsets_after(entries))
        await self._desk.tick()


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
