"""Lag of the consumers of a process behind the ends of their partitions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from faust.transport.consumer import Consumer

from pipeline.kafka import Broker, Reader, TopicPartition, open_reader, quiet_client
from pipeline.model.errors import SmidgenError

if TYPE_CHECKING:
    from pipeline.worker.app import StageApp

Position = tuple[str, int]
"""Topic (the broker's name) and partition."""

INTERVAL_S = 15.0
TIMEOUT_S = 10.0


class LogEnds:
    """Where partitions end, asked of the broker again and again.

    A fetch says it too, but while a stream is full nothing is fetched: just when the lag matters. It asks by
    a client of its own, so that a broker that does not answer holds no consumer up.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._ends: dict[Position, int] = {}

    def end(self, position: Position) -> int | None:
        """Return the offset after the last message, as last heard; None if not heard yet."""
        return self._ends.get(position)

    async def watch(self, apps: Sequence[StageApp]) -> None:
        """Ask for the partitions that are assigned to some apps until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            with contextlib.suppress(SmidgenError):  # an outage is reported by whoever cannot go on
                async with open_reader(self._broker) as reader:
                    while True:
                        await self._ask(reader, apps)
                        await asyncio.sleep(INTERVAL_S)

    async def _ask(self, reader: Reader, apps: Sequence[StageApp]) -> None:
        started = [cast(Consumer, app.consumer) for app in apps if app.started]
        positions = {TopicPartition(*tp) for consumer in started for tp in consumer.assignment()}
        if positions:
            with quiet_client():
                found = await asyncio.wait_for(reader.end_offsets(positions), TIMEOUT_S)
            self._ends = {(position.topic, position.partition): end for position, end in found.items()}


def lags(app: StageApp, ends: LogEnds) -> dict[Position, int | None]:
    """Return how many messages of each assigned partition are not committed; None where it is not known.

    It is known from the first fetch of a partition on. What was fetched and waits in memory is not done.
    """
    if not app.started:
        return {}
    consumer = cast(Consumer, app.consumer)
    found: dict[Position, int | None] = {}
    for tp in consumer.assignment():
        position = (tp.topic, tp.partition)
        known_ends = [end for end in (consumer.highwater(tp), ends.end(position)) if end is not None]
        found[position] = (
            max(0, max(known_ends) - (consumer._committed_offset[tp] or 0)) if known_ends else None
        )
    return dict(sorted(found.items()))
