"""Idleness of partitions: a silent partition either has no messages, or has not been read yet.

What a partition holds is known to the group that reads it and says how far it came on another topic. So
silence counts up to the moment up to which that group has read the partition, as far as what it said was
heard.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Partition = tuple[str, int]
"""Topic and partition."""

MOST_READINGS = 40
"""Readings that are kept. Who is further behind than the oldest of them knows of nothing that it was read."""

NOTHING: Mapping[Partition, float] = MappingProxyType({})


def is_idle(silent_s: float, unread_s: float, idle_s: float) -> bool:
    """Return whether a partition, as far as it was read, has been silent for longer than ``idle_s``.

    Args:
        silent_s: Since it was heard last.
        unread_s: Since the moment up to which all of it was read and heard; infinite if that is not known.
        idle_s: Longest silence of a partition that is not idle.
    """
    return silent_s - max(unread_s, 0.0) > idle_s


@dataclass(frozen=True, slots=True)
class _Reading:
    read_up_to: Mapping[Partition, float]
    published: Mapping[int, int]


class Readings:
    """Positions of a consumer group in its topics, read from time to time; for two threads."""

    def __init__(self) -> None:
        self._ends: dict[Partition, deque[tuple[float, int]]] = {}
        self._read_up_to: Mapping[Partition, float] = NOTHING
        self._readings: tuple[_Reading, ...] = ()

    def add(
        self,
        now: float,
        ends: Mapping[Partition, int],
        committed: Mapping[Partition, int],
        published: Mapping[int, int],
    ) -> None:
        """Take one measurement in, whose parts were asked in this order.

        Args:
            now: Epoch seconds, before anything was asked.
            ends: Offset after the last message of each partition.
            committed: Offset up to which the group is done with each.
            published: By partition of the topic that the group writes, the offset after its last message.
        """
        read_up_to = dict(self._read_up_to)
        for partition, end in ends.items():
            unread = self._ends.setdefault(partition, deque(maxlen=MOST_READINGS))
            unread.append((now, end))
            while unread and unread[0][1] <= committed.get(partition, -1):
                read_up_to[partition] = unread.popleft()[0]
        self._read_up_to = read_up_to
        recent = self._readings[1 - MOST_READINGS :]
        self._readings = (*recent, _Reading(read_up_to, dict(published)))

    def read_up_to(self, partition: int, offset: int) -> Mapping[Partition, float]:
        """Return the time up to which each partition was read, from the measurements.

        Args:
            partition: Of the topic that the group writes.
            offset: Up to which that was heard, the offset after the last message.
        """
        for reading in reversed(self._readings):
            if reading.published.get(partition, offset + 1) <= offset:
                return reading.read_up_to
        return NOTHING
