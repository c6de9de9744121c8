"""Reading: one number of one series at one time, whatever protocol it came by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agents.metrics.exponential import Exponential

Part = Literal["counter", "gauge", "count", "bucket", "exponential", "quantile"]
"""Kind of a reading.

``count`` is how many observations a histogram or summary has, ``bucket`` how many of them are at most ``at``,
``exponential`` all of them by size, and ``quantile`` the quantile at rank ``at``, as its sender computes it.
"""

LEVELS: frozenset[Part] = frozenset({"gauge", "quantile"})
"""Kinds of readings that are levels; all the others count."""

Labels = tuple[tuple[str, str], ...]
"""Names and values of a series' labels, sorted."""


@dataclass(frozen=True, slots=True)
class SeriesReading:
    """Value of a series at a time.

    Counters, counts, buckets and exponential histograms count from ``start`` on; 0 is not known. With
    ``is_delta`` they count only what came between ``start`` and ``time``. A gauge has a start if it is a sum
    that may fall: each process has one of its own.
    """

    name: str  # of the family: without _bucket, _count
    labels: Labels  # without le and quantile
    time: float
    value: float | Exponential
    part: Part
    at: float = 0.0
    start: float = 0.0
    is_delta: bool = False
    unit: str = ""  # as the sender says


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of a request or a page, and the number of records that could not be read."""

    readings: tuple[SeriesReading, ...]
    invalid: int = 0
    first_invalid: str = ""
    samples: int = 0  # samples of remote write that could be read
    histograms: int = 0  # native histograms of remote write that could be read


@dataclass(slots=True)
class InvalidCount:
    """Number of unreadable records, and the first of them."""

    count: int = 0
    first: str = ""

    def add(self, what: str) -> None:
        """Count one record."""
        self.count += 1
        self.first = self.first or what[:200]


@dataclass(frozen=True, slots=True)
class Family:
    """Metadata of a metric from its sender: its type in Prometheus' words, and its unit."""

    type: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Families:
    """Metadata of metrics from their sender, by name."""

    known: Mapping[str, Family] = field(default_factory=dict)

    def of(self, *names: str) -> Family:
        """Return the metadata of the first of these names that has any."""
        return next((self.known[name] for name in names if name in self.known), _UNKNOWN)


_UNKNOWN = Family()
