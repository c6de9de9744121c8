"""How far aggregate has read what it counts: to be known before a partition is called idle."""

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
"""How often it is measured, of the silence that makes a partition idle where that is short: silence counts up
to a measurement."""

REPORT_S = 60.0


class UpstreamWatch:
    """Measures it again and again.

    Args:
        broker: Where both groups are.
        topics: Of the flow.
        readings: Takes what was measured.
        clock: Epoch seconds.
        idle_s: Silence after which a partition is idle.
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
        """Measure until cancelled; while that fails, the log says so."""
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
        found = await group_reading(
            self._broker, self._topics.group("aggregate"), inputs, self._topics["windows"]
        )
        ends, committed = (
            {(self._inputs[each.topic], each.partition): offset for each, offset in offsets.items()}
            for offsets in (found.ends, found.committed)
        )
        self._readings.add(now, ends, committed, found.published)

    def _report(self, error: SmidgenError) -> None:
        if time.monotonic() >= self._reported + REPORT_S:
            self._reported = time.monotonic()
            text = "how far aggregate has read is not known, silent partitions hold scans back: %s"
            logger.warning(text, error)
