"""Conversion of readings into points of service-level metrics, shared by all protocols.

It keeps the last value of every series and the intervals that are open, all within bounds, and nothing on
disk: after a restart the first reading of a counter gives no rate.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agents.metrics.conventions import unit_of
from agents.metrics.increase import Writers
from agents.metrics.intervals import ServiceIntervals
from agents.metrics.mapping import MetricMap, MetricTarget, Targets
from agents.metrics.reading import Labels, Part, SeriesReading
from pipeline.messages.fields import EARLIEST_S
from pipeline.messages.schema.inputs import MAX_METRIC
from pipeline.model import MetricMetadata, MetricPoints
from pipeline.model.frames import cut_name

AHEAD_S = 60.0
"""Seconds that a reading may be ahead of the clock; one further ahead would end intervals early."""

IDLE_S = 900.0
"""Seconds after which a series without a reading is forgotten."""

MAX_METRIC_NAME = 400

WITHOUT_RATE: Mapping[str, str] = {
    "several_writers": "several processes send it, or it begins anew at every second reading, and no start"
    " time distinguishes them: it has no rate; give each a label of its own, such as service.instance.id",
    "unsteady_start": "its start time is another one in every reading: it has no rate; the sender should"
    " repeat the start of its process, or send deltas",
    "mixed_temporality": "deltas and cumulative values come under the same labels: the first of the two is"
    " taken; send only one of them",
}
"""Outcomes of readings that have no rate, and what to do about them."""

_NOTES: Mapping[str, str] = {
    **WITHOUT_RATE,
    "full": "more names with their labels than series_per_service allows: the last ones are left out",
}

MOST_NOTES = 1000
"""Most metrics of which the log says that they have no rate."""

_SeriesKey = tuple[str, Labels, Part, float]


@dataclass(slots=True)
class _Series:
    """State of a series: its target, and the previous readings of its writers."""

    target: MetricTarget
    unit: str
    writers: Writers = field(default_factory=Writers)
    seen: float = 0.0  # by the clock


class Conversion:
    """Takes readings as they come, and returns points of the intervals that are complete.

    ``counts`` has readings by outcome: ``taken``, ``unwanted`` (no rule takes them), ``no_service``,
    ``out_of_order``, ``late`` (their intervals are closed), ``ahead`` (of the clock), ``resets``,
    ``sudden_rise`` (taken, though another process may have taken over), ``full`` (one series, service, metric
    or writer too many), and the keys of `WITHOUT_RATE`.
    """

    def __init__(self, metric_map: MetricMap) -> None:
        self._map = metric_map
        self._targets = Targets(metric_map)
        self._series: OrderedDict[_SeriesKey, _Series] = OrderedDict()  # by last reading, the latest last
        self._services: dict[str, ServiceIntervals] = {}
        self.counts: Counter[str] = Counter()
        self._noted: set[tuple[str, str, str]] = set()
        self._notes: list[str] = []

    def take(self, readings: Sequence[SeriesReading], now: float) -> None:
        """Take the readings of a request; ``now`` is the clock's time."""
        for reading in readings:
            if not self._targets.is_taken(reading.name):
                self.counts["unwanted"] += 1
            elif reading.time > now + AHEAD_S:
                self.counts["ahead"] += 1
            elif not reading.time >= EARLIEST_S:  # nor NaN
                self.counts["late"] += 1
            elif (series := self._find(reading)) is not None:
                series.seen = now
                self._add(series, reading, now)

    def close(self, now: float) -> list[MetricPoints]:
        """Return the points of intervals that are complete at a time of the clock, and forget idle series."""
        complete: dict[tuple[str, str], tuple[MetricTarget, MetricMetadata, list[tuple[float, float]]]] = {}
        for service, intervals in list(self._services.items()):
            for start, target, cell in intervals.close(now):
                if not abs(cell.value) <= MAX_METRIC:  # nor NaN: no message holds it
                    continue
                name = cut_name(f"{target.name}{cell.ending}{target.values}", MAX_METRIC_NAME)
                points = complete.setdefault((service, name), (target, cell.metadata, []))
                points[2].append((start, cell.value))
            if now - intervals.arrived > max(IDLE_S, 2 * self._map.wait):
                del self._services[service]
        while self._series and next(iter(self._series.values())).seen < now - IDLE_S:
            self._series.popitem(last=False)
        return list(_points(complete))

    def notes(self) -> list[str]:
        """Return lines on metrics whose readings were left out for the first time since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def _note(self, outcome: str, service: str, metric: str) -> None:
        key = (outcome, service, metric)
        if key not in self._noted and len(self._noted) < MOST_NOTES:
            self._noted.add(key)
            self._notes.append(f"{service}: {metric[:100]}: {_NOTES[outcome]}")

    def _find(self, reading: SeriesReading) -> _Series | None:
        """Return the state of a reading's series, None if it is not wanted or there is no room."""
        key = (reading.name, reading.labels, reading.part, reading.at)
        if (series_of_key := self._series.get(key)) is not None:
            self._series.move_to_end(key)
            return series_of_key
        target = self._targets.find(reading.name, reading.labels)
        if target is None or not target.service:
            self.counts["unwanted" if target is None else "no_service"] += 1
            return None
        if target.service not in self._services and len(self._services) >= self._map.services:
            self.counts["full"] += 1
            return None
        if len(self._series) >= self._map.readings:
            self.counts["full"] += 1
            return None
        series = _Series(target, unit_of(reading.name, reading.unit))
        self._series[key] = series
        return series

    def _add(self, series: _Series, reading: SeriesReading, now: float) -> None:
        service = series.target.service
        intervals = self._services.get(service)
        if intervals is None:
            intervals = self._services[service] = ServiceIntervals(
                reading.time, self._map.interval, self._map.wait, self._map.series_per_service
            )
        intervals.arrived = now
        intervals.watermark = max(intervals.watermark, reading.time)
        if not intervals.admits(series.target, reading.time):
            self.counts["full"] += 1
            self._note("full", service, reading.name)
            return
        taken = series.writers.take(reading)
        self.counts[taken.outcome or "taken"] += 1
        if taken.outcome in WITHOUT_RATE:
            self._note(taken.outcome, service, reading.name)
        in_time = True
        for increase in taken.increases:
            if increase.is_reset:
                self.counts["resets"] += 1
            in_time = intervals.add(series.target, reading, increase, series.unit)
        if not in_time and reading.time < intervals.watermark - self._map.wait:
            self.counts["late"] += 1


def _points(
    complete: dict[tuple[str, str], tuple[MetricTarget, MetricMetadata, list[tuple[float, float]]]],
) -> Iterator[MetricPoints]:
    for (service, name), (target, metadata, points) in complete.items():
        times, values = np.array(sorted(points)).T
        yield MetricPoints(
            service, name, times, values, target.rule.setup, metadata.unit, metadata.kind, metadata.direction
        )
