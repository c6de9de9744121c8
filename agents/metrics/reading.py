"""Reading: one number of one series at one time, whatever protocol it came by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agents.metrics.exponential import Exponential

Part = Literal["counter", "gauge", "count", "bucket", "exponential", "quantile"]
"""What of a metric a reading is.

``count`` is how many observations a histogram or summary has, ``bucket`` how many of them are at most ``at``,
``exponential`` all of them by size, and ``quantile`` the one of the rank ``at``, as its sender says.
"""

Labels = tuple[tuple[str, str], ...]
"""Names and values of a series' labels, sorted."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a series reads at a time.

    Counters, counts, buckets and exponential histograms count from ``start`` on; 0 is not known. With
    ``is_delta`` they count what came between ``start`` and ``time`` alone.
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
    """What a request or a page holds, and how much of it could not be read."""

    readings: tuple[Reading, ...]
    invalid: int = 0
    first_invalid: str = ""
    samples: int = 0  # of remote write, that could be read
    histograms: int = 0  # likewise, native ones


@dataclass(slots=True)
class InvalidCount:
    """How many records could not be read, and what the first of them is."""

    count: int = 0
    first: str = ""

    def add(self, what: str) -> None:
        """Count one."""
        self.count += 1
        self.first = self.first or what[:200]


@dataclass(frozen=True, slots=True)
class Family:
    """What a sender says of a metric: its type in Prometheus' words, and its unit."""

    type: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Families:
    """What a sender says of its metrics, by name."""

    known: Mapping[str, Family] = field(default_factory=dict)

    def of(self, *names: str) -> Family:
        """Return what is said of the first of these names of which anything is said."""
        return next((self.known[name] for name in names if name in self.known), _UNKNOWN)


_UNKNOWN = Family()
