"""Cell: the readings of one metric from all hosts of a service in one interval, and their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agents.metrics.conventions import kind_of, rate_unit
from agents.metrics.exponential import Exponential
from agents.metrics.mapping import MetricRule, OverHosts
from agents.metrics.quantiles import bucket_quantile
from agents.metrics.reading import Part, SeriesReading
from pipeline.model import MetricMetadata

_COUNTING: tuple[Part, ...] = ("bucket", "exponential", "count", "counter")
"""Kinds of readings that count, the best first: a histogram has two with the same count."""

_OVER_HOSTS: Mapping[OverHosts, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "max": max,
    "mean": lambda levels: sum(levels) / len(levels),
}
"""Functions over hosts. Not ``fsum``, which raises an error on overflow: senders choose the numbers."""


@dataclass(frozen=True, slots=True)
class CellValue:
    """A value of an interval: the suffix of the metric's name, and the value."""

    ending: str
    value: float
    metadata: MetricMetadata


@dataclass(slots=True)
class Cell:
    """Sums over the series of one metric. ``counts`` and ``errors`` are by the kind of reading."""

    unit: str = ""
    counts: dict[Part, float] = field(default_factory=dict)
    errors: dict[Part, float] = field(default_factory=dict)
    buckets: dict[float, list[float]] = field(default_factory=dict)  # bound → observations, series
    exponential: Exponential | None = None
    levels: dict[int, list[float]] = field(default_factory=dict)  # series → value times seconds, seconds
    ranks: dict[float, list[float]] = field(default_factory=dict)  # rank → value times seconds, seconds

    def add(
        self, reading: SeriesReading, value: float | Exponential, seconds: float, is_error: bool | None
    ) -> None:
        """Add the increase of a counter, or a level with the seconds for which it held."""
        part = reading.part
        if isinstance(value, Exponential):
            self.exponential = self.exponential.plus(value) if self.exponential else value
            self._count(part, value.count, is_error)
        elif part == "bucket":
            sums = self.buckets.setdefault(reading.at, [0.0, 0.0])
            sums[0] += value
            sums[1] += 1 if value >= 0 else -1  # what is taken back was a series
            if reading.at == math.inf:
                self._count(part, value, is_error)
        elif part == "quantile":
            sums = self.ranks.setdefault(reading.at, [0.0, 0.0])
            sums[0] += value * seconds
            sums[1] += seconds
        elif part == "gauge":
            sums = self.levels.setdefault(hash((reading.labels, reading.start)), [0.0, 0.0])
            sums[0] += value * seconds
            sums[1] += seconds
        else:
            self._count(part, value, is_error)

    def values(self, rule: MetricRule, interval_s: float) -> Iterator[CellValue]:
        """Yield the values of the interval."""
        unit = rule.unit or self.unit
        yield from self._levels(rule, unit)
        yield from self._quantiles(rule, unit)
        part = next((part for part in _COUNTING if part in self.counts), None)
        if part is None:
            return
        rate = max(self.counts[part], 0.0) / interval_s  # what is taken back may round to less than 0
        if part == "counter":
            yield CellValue(".rate", rate, MetricMetadata(rate_unit(unit), rule.kind, rule.direction))
        else:
            yield CellValue(".rate", rate, MetricMetadata("{request}/s", "throughput", ""))
        if part in self.errors and self.counts[part] > 0:
            ratio = min(max(self.errors[part], 0.0) / self.counts[part], 1.0)
            yield CellValue(".errors", ratio, MetricMetadata("1", "errors", ""))

    def _levels(self, rule: MetricRule, unit: str) -> Iterator[CellValue]:
        """Yield the level of gauges: the mean over hosts of each host's mean over the interval."""
        levels = [total / seconds for total, seconds in self.levels.values() if seconds > 0]
        if not levels:
            return
        metadata = MetricMetadata(unit, rule.kind or kind_of(unit, is_distribution=False), rule.direction)
        yield CellValue("", _OVER_HOSTS[rule.over_hosts](levels), metadata)

    def _quantiles(self, rule: MetricRule, unit: str) -> Iterator[CellValue]:
        """Yield quantiles: of the merged buckets of all hosts, or the mean of those that hosts send."""
        metadata = MetricMetadata(unit, rule.kind or kind_of(unit, is_distribution=True), rule.direction)
        if self.buckets:
            # Only bounds that all hosts have are used: others would count a part of the hosts.
            series = max(count for _, count in self.buckets.values())
            at_most = {bound: total for bound, (total, count) in self.buckets.items() if count == series}
            quantiles = [(rank, bucket_quantile(rank, at_most)) for rank in rule.quantiles]
        elif self.exponential is not None:
            quantiles = [(rank, self.exponential.quantile(rank)) for rank in rule.quantiles]
        else:
            quantiles = [
                (rank, total / seconds) for rank, (total, seconds) in self.ranks.items() if seconds > 0
            ]
        for rank, value in quantiles:
            if math.isfinite(value):
                yield CellValue(f".p{rank * 100:g}", value, metadata)

    def _count(self, part: Part, value: float, is_error: bool | None) -> None:
        self.counts[part] = self.counts.get(part, 0.0) + value
        if is_error is not None:
            self.errors[part] = self.errors.get(part, 0.0) + (value if is_error else 0.0)
