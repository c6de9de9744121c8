"""Progress of aggregate as detect has heard it, against the offsets that aggregate has read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pipeline.analysis.detect.idleness import Partition, Readings
from pipeline.model import Record
from pipeline.model.clock import Clock


class UpstreamProgress:
    """The time at which each counted partition was last read to its end, by the progress on ``windows``.

    Args:
        readings: Readings of aggregate's offsets; None if it has read everything.
        clock: The clock of the readings.
    """

    def __init__(self, readings: Readings | None, clock: Clock) -> None:
        self._readings = readings
        self._clock = clock
        self._heard_to: dict[int, int] = {}  # by partition, the offset after the last message
        self._read_up_to: dict[int, Mapping[Partition, float]] = {}
        self._asked = 0.0  # time of that question

    def clear(self) -> None:
        """Forget the progress heard so far."""
        self._heard_to.clear()

    def hear(self, batch: Sequence[Record]) -> None:
        """Note the offsets of the progress in a batch, and read the times that apply until the next batch."""
        if self._readings is None:
            return
        for record in batch:
            before = self._heard_to.get(record.partition, 0)
            self._heard_to[record.partition] = max(before, record.offset + 1)
        self._asked = self._clock()
        self._read_up_to = {p: self._readings.read_up_to(p, to) for p, to in self._heard_to.items()}

    def unread_s(self, partition: int) -> Callable[[Partition], float]:
        """Return a function from a counted partition to the seconds since it was read to its end.

        ``partition`` is the partition of progress by which that is known.
        """
        if self._readings is None:
            return lambda _: 0.0
        read_up_to, asked_at = self._read_up_to.get(partition, {}), self._asked
        return lambda counted: asked_at - read_up_to.get(counted, -math.inf)
