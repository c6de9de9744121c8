"""What detect has heard of aggregate's progress, against how far aggregate has read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pipeline.analysis.detect.idleness import Partition, Readings
from pipeline.model import Record
from pipeline.model.clock import Clock


class UpstreamProgress:
    """Knows of every counted partition how long ago all of it was read, by what was heard on ``windows``.

    Args:
        readings: Of aggregate; None where it is done with all that there is.
        clock: That by which they are made.
    """

    def __init__(self, readings: Readings | None, clock: Clock) -> None:
        self._readings = readings
        self._clock = clock
        self._heard_to: dict[int, int] = {}  # by partition, the offset after the last message
        self._read_up_to: dict[int, Mapping[Partition, float]] = {}
        self._asked = 0.0  # when that was

    def clear(self) -> None:
        """Forget what was heard."""
        self._heard_to.clear()

    def hear(self, batch: Sequence[Record]) -> None:
        """Note up to where progress was heard; what is known then holds until the next batch."""
        if self._readings is None:
            return
        for record in batch:
            before = self._heard_to.get(record.partition, 0)
            self._heard_to[record.partition] = max(before, record.offset + 1)
        self._asked = self._clock()
        self._read_up_to = {p: self._readings.read_up_to(p, to) for p, to in self._heard_to.items()}

    def unread_s(self, partition: int) -> Callable[[Partition], float]:
        """Return what says how long ago all of a counted partition was read, by one partition of progress."""
        if self._readings is None:
            return lambda _: 0.0
        known, asked = self._read_up_to.get(partition, {}), self._asked
        return lambda counted: asked - known.get(counted, -math.inf)
