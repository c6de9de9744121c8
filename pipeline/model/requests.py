"""Requests of a service counted by type and period: as a host sends them, and as the store adds them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from pipeline.model.arrays import FloatArray

RESPONSE_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
"""Classes of responses, by the first digit of their status."""

BUCKETS_AN_OCTAVE = 32
"""Of sketches of response times."""

_TIMES = "response_time"


@dataclass(frozen=True, slots=True)
class TypeCounts:
    """The requests of one type that one host got in one period.

    ``times`` is a sketch of response times: by bucket, how many requests took so long. Bucket i is for times
    in (2 ** (i / 32), 2 ** ((i + 1) / 32)] seconds; sketches are merged by adding them up.
    """

    type: str
    requests: int
    responses: tuple[int, ...] = (0, 0, 0, 0, 0)  # by RESPONSE_CLASSES
    times: tuple[tuple[int, int], ...] = ()  # bucket, requests


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """What one host got in one period. Messages of a service with the same ``id`` are copies of one."""

    service: str
    host: str
    start: float
    period_s: float
    types: tuple[TypeCounts, ...]
    release: str = ""
    id: str = ""

    @property
    def end(self) -> float:
        """When the period ends."""
        return self.start + self.period_s


@final
@dataclass(frozen=True, slots=True)
class RequestPeriods:
    """Requests of a service in a span of time, of all hosts together: series × periods.

    A series is of a release and a type, or of all types of a release, whose type is empty then. Series are
    sorted by these. Where hosts count by periods of different lengths, those are added up by the longest.
    Periods without any request are left out.
    """

    releases: tuple[str, ...]  # (series,)
    types: tuple[str, ...]  # (series,)
    starts: FloatArray  # (periods,) epoch seconds, ascending, multiples of width_s
    width_s: float  # 0 without requests
    requests: FloatArray  # (series, periods)
    timed: FloatArray  # (series, periods) those of them with a response time; 0 of all types together
    log_times: FloatArray  # (series, periods) sum of the logarithms of these times, of seconds


def time_column(type_: str) -> str:
    """Return the name of a table's column of response times of a type."""
    return f"{_TIMES}{{{type_}}}"


def time_type(column: str) -> str:
    """Return the type whose response times a table's column holds."""
    return column.removeprefix(f"{_TIMES}{{").removesuffix("}")


def is_time_column(name: str) -> bool:
    """Return whether a table's column holds response times."""
    return name.startswith(f"{_TIMES}{{")
