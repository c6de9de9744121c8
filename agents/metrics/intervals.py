"""Intervals of one service: cells that are open, and when they are complete."""

from __future__ import annotations

import math
from collections.abc import Iterator

from agents.metrics.cell import Cell, CellValue
from agents.metrics.exponential import Exponential
from agents.metrics.mapping import Target
from agents.metrics.reading import Reading

SILENT_S = 60.0
"""A service of which nothing came for so long, and for as long as is waited, sends no more for now."""

FORGOTTEN_S = 3600.0
"""A name that had no reading for so long makes room for another one."""

_LEVELS = frozenset({"gauge", "quantile"})

Group = tuple[str, str]
"""A metric's name, and the values of its labels."""


class ServiceIntervals:
    """Collects what readings say, by interval and metric; at most ``most`` metrics.

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
        self._cells: dict[int, dict[Group, tuple[Target, Cell]]] = {}
        self._groups: dict[Group, float] = {}  # when each had its last reading
        self.watermark = first
        self.arrived = -math.inf  # by the clock, when the last reading came

    def admits(self, target: Target, time: float) -> bool:
        """Return whether a metric is one of those that there is room for."""
        group = (target.name, target.values)
        if group not in self._groups and len(self._groups) >= self._most:
            for old, last in list(self._groups.items()):
                if last < self.watermark - FORGOTTEN_S:
                    del self._groups[old]
            if len(self._groups) >= self._most:
                return False
        self._groups[group] = time
        return True

    def add(
        self, target: Target, reading: Reading, value: float | Exponential, since: float, unit: str
    ) -> bool:
        """Add what was so from ``since`` to the reading's time; return whether any is of an open interval.

        What a counter counted is spread evenly over that time.
        """
        lasted = reading.time - since
        first, last = math.floor(since / self._interval_s), math.ceil(reading.time / self._interval_s) - 1
        first = max(first, self._open)
        for number in range(first, last + 1):
            start = number * self._interval_s
            seconds = min(reading.time, start + self._interval_s) - max(since, start)
            if seconds > 0:
                part = value if reading.part in _LEVELS else _share(value, seconds / lasted)
                self._cell(number, target, unit).add(reading, part, seconds, target.is_error)
        return first <= last

    def close(self, now: float) -> Iterator[tuple[float, Target, CellValue]]:
        """Yield start, target and value of what is complete; of a service that is silent, all of it."""
        silent = now - self.arrived >= max(self._wait_s, SILENT_S)
        limit = self.watermark - (0.0 if silent else self._wait_s)
        done = math.floor(limit / self._interval_s + 1e-9)
        for number in sorted(n for n in self._cells if n < done):
            for target, cell in self._cells.pop(number).values():
                for value in cell.values(target.rule, self._interval_s):
                    yield number * self._interval_s, target, value
        self._open = max(self._open, done)
        if silent:  # what goes on in the interval that is under way would be a part of it
            self._cells.clear()
            self._open = max(self._open, math.ceil(self.watermark / self._interval_s))

    def _cell(self, number: int, target: Target, unit: str) -> Cell:
        cells = self._cells.setdefault(number, {})
        key = (target.name, target.values)
        if key not in cells:
            cells[key] = (target, Cell(unit))
        return cells[key][1]


def _share(value: float | Exponential, share: float) -> float | Exponential:
    return value.times(share) if isinstance(value, Exponential) else value * share
