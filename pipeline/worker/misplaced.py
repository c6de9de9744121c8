"""Messages of stages in a partition that is not their key's: who wrote them went by another topics.yaml."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence

from pipeline.kafka import partition_of_key
from pipeline.settings.topics import Topics
from pipeline.worker.dlq import source_of
from pipeline.worker.intake import PendingEvent

logger = logging.getLogger(__name__)

REPORT_S = 60.0


class Misplaced:
    """Says once in a while that a service's messages are in another partition than topics.yaml says.

    What is in two partitions has no order. ``smidgen topics apply`` sees to that where partitions are raised;
    where shards change and nothing is raised, nobody does.
    """

    def __init__(self, topics: Topics, monotonic: Callable[[], float]) -> None:
        self._topics = topics
        self._monotonic = monotonic
        self._report_from = -math.inf

    def look(self, stage: str, topic: str, events: Sequence[PendingEvent]) -> None:
        """Look at a batch of a topic (logical name); only those that share a key matter."""
        if topic not in self._topics.shared_key or self._monotonic() < self._report_from:
            return
        partitions, reserved = self._topics[topic].partitions, self._topics.reserved(topic)
        for key, partition in {(event.message.key, event.message.partition) for event in events}:
            if key is not None and (own := partition_of_key(key, partitions, reserved)) != partition:
                self._report_from = self._monotonic() + REPORT_S
                text = (
                    "%s: %s partition %d has messages of %s, which topics.yaml puts into partition %d: other "
                    "workers have another topics.yaml, or its shards changed before all was read; until all "
                    "is, scans of this service may come in another order"
                )
                logger.warning(text, stage, topic, partition, source_of(key), own)
                return
