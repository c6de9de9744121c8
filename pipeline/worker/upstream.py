"""Progress of aggregate in the topics that it counts, needed before a partition counts as idle."""

from __future__ import annotations

import asyncio
import logging
import math
import time

from pipeline.analysis.detect.idleness import Readings
from pipeline.kafka import Broker, group_reading
from pipeline.model.clock import Clock
from pipeline.model.errors import SmidgenError
from pipeline.settings.topics import Topics
from pipeline.stages.gather.streams import COUNTED_TOPICS

logger = logging.getLogger(__name__)

INTERVAL_S = 15.0
SHARE_OF_IDLE = 0.25
"""Longest interval between measurements, as a share of the silence after which a partition is idle: silence
is counted up to a measurement."""

REPORT_S = 60.0


class UpstreamWatch:
    """Measures the progress of aggregate at intervals.

    Args:
        broker: The broker of the topics.
        topics: The topics of the pipeline.
        readings: Receives the measurements.
        clock: Returns epoch seconds.
        idle_s: Seconds of silence after which a partition is idle.
    """

    def __init__(
        self, broker: Broker, topics: Topics, readings: Readings, clock: Clock, idle_s: float
    ) -> None:
        self._broker = broker
        self._inputs = {topics[name].name: name for name in COUNTED_TOPICS}
        self._topics = topics
        self._readings = readings
        self._clock = clock
        self._interval_s = min(INTERVAL_S, SHARE_OF_IDLE * idle_s)
        self._reported = -math.inf

    async def watch(self) -> None:
        """Measure until cancelled; failures are logged."""
        while True:
            try:
                await self.measure()
            except SmidgenError as error:
                self._report(error)
            await asyncio.sleep(self._interval_s)

    async def measure(self) -> None:
        """Measure once.

        Raises:
            BrokerUnavailable: the broker does not answer.
            ConfigError: it refuses us, or a topic does not exist.
        """
        now = self._clock()
        inputs = [self._topics[name] for name in COUNTED_TOPICS]
        reading = await group_reading(
            self._broker, self._topics.group("aggregate"), inputs, self._topics["windows"]
        )
        ends, committed = (
            {
                (self._inputs[partition.topic], partition.partition): offset
                for partition, offset in offsets.items()
            }
            for offsets in (reading.ends, reading.committed)
        )
        self._readings.add(now, ends, committed, reading.published)

    def _report(self, error: SmidgenError) -> None:
        if time.monotonic() >= self._reported + REPORT_S:
            self._reported = time.monotonic()
            text = "how far aggregate has read is not known, silent partitions hold scans back: %s"
            logger.warning(text, error)
