"""Increase of a counter between two readings, with resets as Prometheus takes them."""

from __future__ import annotations

from dataclasses import dataclass

from agents.metrics.exponential import Exponential
from agents.metrics.reading import SeriesReading

LONGEST_GAP_S = 300.0
"""Most seconds between two readings: beyond, the increase is unknown; Prometheus looks back as far."""


@dataclass(frozen=True, slots=True)
class Last:
    """The previous reading of a series."""

    time: float
    value: float | Exponential
    start: float


@dataclass(frozen=True, slots=True)
class Increase:
    """The count after ``since``, up to the time of the reading."""

    value: float | Exponential
    since: float
    is_reset: bool = False


def increase_of(last: Last | None, reading: SeriesReading) -> Increase | None:
    """Return the increase of a series since its previous reading, None if it is unknown.

    A series that is read for the first time rose from 0 if its start is known and recent. A series that is
    smaller than before, or that started after the previous reading, was reset to 0 in between.
    """
    recent = last if last and reading.time - last.time <= LONGEST_GAP_S else None
    begun_s = reading.time - reading.start if reading.start else LONGEST_GAP_S + 1
    if reading.is_delta:
        if 0 <= begun_s <= LONGEST_GAP_S:
            return Increase(reading.value, max(reading.start, last.time if last else 0.0))
        return Increase(reading.value, recent.time) if recent else None
    if recent is None:
        is_new = 0 < begun_s <= LONGEST_GAP_S and (last is None or reading.start >= last.time)
        return Increase(reading.value, reading.start) if is_new else None
    if reading.start > recent.time:
        return Increase(reading.value, min(reading.start, reading.time), is_reset=True)
    difference = _difference(reading.value, recent.value)
    if difference is None:
        return Increase(reading.value, recent.time, is_reset=True)
    return Increase(difference, recent.time)


def _difference(value: float | Exponential, before: float | Exponential) -> float | Exponential | None:
    if isinstance(value, Exponential):
        return value.minus(before) if isinstance(before, Exponential) else None
    if isinstance(before, Exponential) or value < before:
        return None
    return value - before
