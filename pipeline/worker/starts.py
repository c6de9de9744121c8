"""Start offsets of the partitions of an assignment: the store's, where Kafka's commit is ahead of it.

Kafka's commit is ahead of the store if the store was restored from a backup or lost its last seconds in a
power failure: the messages in between are read again. A commit that is behind stays as it is; the store
knows what is counted already.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

from aiokafka import TopicPartition

from pipeline.kafka import Broker, Reader, is_set_within, open_reader, quiet_client, topic_ids
from pipeline.model.errors import ConfigError, SmidgenError
from pipeline.settings.topics import Topics
from pipeline.stages.base import Stage
from pipeline.worker.stage_calls import StageCalls

logger = logging.getLogger(__name__)

Position = tuple[str, int]
"""Topic (the broker's name) and partition."""

PAUSE_S = 2.0
WATCH_S = 15.0
REPORT_S = 60.0
_FETCHES = 5
_FETCH_S = 1.0


class LogWatch:
    """Watch for a topic that is created anew while a worker reads it: its offsets begin again in a new log.

    ``ids`` are the ids of the topics (broker's names) at the time when the stages were built.
    """

    def __init__(self, broker: Broker, ids: Mapping[str, str]) -> None:
        self._broker = broker
        self._ids = ids

    async def check(self) -> None:
        """Compare the topics' ids with those at the start.

        Raises:
            BrokerUnavailable: the broker does not answer.
            ConfigError: a topic was created anew.
        """
        present = await topic_ids(self._broker, self._ids) if self._ids else {}
        changed = [name for name, former in self._ids.items() if present.get(name, former) != former]
        if changed:
            raise ConfigError(f"topic {changed[0]} was made anew: start the worker again")

    async def watch(self, on_change: Callable[[BaseException], None]) -> None:
        """Check at intervals until cancelled, or until a topic was created anew."""
        while self._ids:
            await asyncio.sleep(WATCH_S)
            try:
                await self.check()
            except ConfigError as error:
                return on_change(error)
            except SmidgenError:  # whoever cannot continue reports an outage
                continue
        return None


class Starts:
    """Start offsets of the partitions that are assigned to a stage."""

    def __init__(
        self,
        stage: Stage,
        topics: Topics,
        broker: Broker,
        logs: LogWatch,
        stopping: asyncio.Event,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stage = stage
        self._calls = StageCalls(stage)
        self._logical = {topics[name].name: name for name in stage.inputs}
        self._broker = broker
        self._logs = logs
        self._monotonic = monotonic
        self._stopping = stopping
        self.waits_for = ""
        """The reason why an assignment waits for its offsets; empty if none waits."""

    async def of(self, assigned: Collection[Position]) -> dict[Position, int]:
        """Return the offset up to which each partition is in the store; partitions without one are absent.

        It waits for the store and the broker until they answer or the stage stops, and logs that once a
        minute.

        Raises:
            ConfigError: a topic was created anew, or a log ends before the store's offset.
        """
        logged_at = -math.inf
        try:
            while True:
                try:
                    return await self._known(assigned)
                except ConfigError:
                    raise
                except SmidgenError as error:
                    self.waits_for = f"not known yet where to go on, trying again: {error}"
                if (now := self._monotonic()) >= logged_at + REPORT_S:
                    logger.warning("%s: %s", self._stage.name, self.waits_for)
                    logged_at = now
                if await is_set_within(self._stopping, PAUSE_S):
                    return {}
        finally:
            self.waits_for = ""

    async def _known(self, assigned: Collection[Position]) -> dict[Position, int]:
        await self._logs.check()
        stored = await asyncio.to_thread(self._asked, assigned)
        if stored:
            await self._check_ends(stored)
        return stored

    def _asked(self, assigned: Collection[Position]) -> dict[Position, int]:
        by_topic: dict[str, list[int]] = defaultdict(list)
        for topic, partition in assigned:
            if topic in self._logical:
                by_topic[topic].append(partition)
        return {
            (topic, partition): start
            for topic, partitions in by_topic.items()
            for partition, start in self._calls.stored_up_to(self._logical[topic], partitions).items()
        }

    async def _check_ends(self, starts: Mapping[Position, int]) -> None:
        """Check that no log ends before its stored offset: its next messages would seem to be counted."""
        expected = {TopicPartition(*position): start for position, start in starts.items() if start > 0}
        if not expected:
            return
        with quiet_client():
            async with open_reader(self._broker) as reader:
                ends = await reader.end_offsets(expected)
                for position, start in expected.items():
                    if ends[position] < start and (end := await _fetched_end(reader, position)) < start:
                        raise ConfigError(
                            f"{position.topic} partition {position.partition} ends at offset {end}, and the "
                            f"store has counted up to {start}: the broker has lost messages, and the next "
                            "ones would be left out as counted; see docs/runbook.md, 'A log that ends early'"
                        )


async def _fetched_end(reader: Reader, position: TopicPartition) -> int:
    """Return the end of a partition by a fetch: the embedded broker's direct answer may be outdated."""
    first = (await reader.first_offsets([position]))[position]
    reader.seek({position: first})
    for _ in range(_FETCHES):
        await reader.poll(_FETCH_S)
        if (end := reader.fetched_end(position)) is not None:
            return end
    return first
