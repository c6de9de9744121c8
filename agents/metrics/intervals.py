"""Intervals of one service: the open cells, and when they are complete."""

from __future__ import annotations

import math
from collections.abc import Iterator

from agents.metrics.cell import Cell, CellValue
from agents.metrics.exponential import Exponential
from agents.metrics.increase import Increase
from agents.metrics.mapping import MetricTarget
from agents.metrics.reading import LEVELS, SeriesReading

SILENT_S = 60.0
"""Seconds without readings, besides the wait for late ones, after which a service counts as silent."""

FORGOTTEN_S = 3600.0
"""Seconds without a reading after which a name makes room for another one."""

Group = tuple[str, str]
"""A metric's name, and the values of its labels."""


class ServiceIntervals:
    """Collects readings by interval and metric; at most ``most`` metrics.

    An interval is complete when a reading is later than its end by ``wait_s``: until then the readings of all
    hosts that cover it have come. The first one that counts begins ``wait_s`` after the first reading:
    before, not every host may have been read.
    """

    def __init__(self, first: float, interval_s: float, wait_s: float, most: int) -> None:
        self._interval_s = interval_s
        self._wait_s = wait_s
        self._most = most
        self._open = math.ceil(
            (first + wait_s) / interval_s
        )  # number of the first interval that is not closed
        self._cells: dict[int, dict[Group, tuple[MetricTarget, Cell]]] = {}
        self._groups: dict[Group, float] = {}  # metric → time of its last reading
        self.watermark = first
        self.arrived = -math.inf  # time by the clock of the last reading

    def admits(self, target: MetricTarget, time: float) -> bool:
        """Return whether there is room for a metric."""
        group = (target.name, target.values)
        if group not in self._groups and len(self._groups) >= self._most:
            for old, last in list(self._groups.items()):
                if last < self.watermark - FORGOTTEN_S:
                    del self._groups[old]
            if len(self._groups) >= self._most:
                return False
        self._groups[group] = time
        return True

    def add(self, target: MetricTarget, reading: SeriesReading, increase: Increase, unit: str) -> bool:
        """Add an increase or a level of a reading's series; return whether an open interval has a part.

        The increase of a counter is spread evenly over its time.
        """
        since, until, value = increase.since, increase.until, increase.value
        first, last = math.floor(since / self._interval_s), math.ceil(until / self._interval_s) - 1
        first = max(first, self._open)
        for number in range(first, last + 1):
            start = number * self._interval_s
            seconds = min(until, start + self._interval_s) - max(since, start)
            if seconds > 0:
                part = value if reading.part in LEVELS else _share(value, seconds / (until - since))
                self._cell(number, target, unit).add(reading, part, seconds, target.is_error)
        return first <= last

    def close(self, now: float) -> Iterator[tuple[float, MetricTarget, CellValue]]:
        """Yield start, target and value of complete intervals; of all intervals if the service is silent."""
        silent = now - self.arrived >= max(self._wait_s, SILENT_S)
        limit = self.watermark - (0.0 if silent else self._wait_s)
        done = math.floor(limit / self._interval_s + 1e-9)
        for number in sorted(n for n in self._cells if n < done):
            for target, cell in self._cells.pop(number).values():
                for value in cell.values(target.rule, self._interval_s):
                    yield number * self._interval_s, target, value
        self._open = max(self._open, done)
        if silent:  # the present interval would be incomplete
            self._cells.clear()
            self._open = max(self._open, math.ceil(self.watermark / self._interval_s))

    def _cell(self, number: int, target: MetricTarget, unit: str) -> Cell:
        cells = self._cells.setdefault(number, {})
        key = (target.name, target.values)
        if key not in cells:
            cells[key] = (target, Cell(unit))
        return cells[key][1]


def _share(value: float | Exponential, share: float) -> float | Exponential:
    return value.times(share) if isinstance(value, Exponential) else value * share
