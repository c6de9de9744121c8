"""Increases of a counter between its readings, with resets, and with several writers of one series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agents.metrics.exponential import Exponential
from agents.metrics.reading import SeriesReading

LONGEST_GAP_S = 300.0
"""Most seconds between two readings: beyond, the increase is unknown; Prometheus looks back as far."""

MOST_WRITERS = 1000
"""Most starts of one series within the longest gap: a sender that invents starts would fill the memory."""


@dataclass(frozen=True, slots=True)
class Last:
    """The previous reading of a writer."""

    time: float
    value: float | Exponential
    start: float


@dataclass(frozen=True, slots=True)
class Increase:
    """The count after ``since``, up to ``until``."""

    value: float | Exponential
    since: float
    until: float
    is_reset: bool = False


class Taken(NamedTuple):
    """What a reading adds, and why it adds nothing where that is not usual, as an outcome to be counted."""

    increases: Sequence[Increase] = ()
    outcome: str = ""


@dataclass(slots=True)
class _Writer:
    """State of one writer: its readings have one start, or none."""

    last: Last | None = None
    peak: float | Exponential | None = None  # value before a fall that is not explained yet
    fall: Increase | None = None  # what that fall adds if it was a reset
    rise: Increase | None = None  # the last one that was added
    returned: float = float("-inf")  # time of the last reading that was back at the value before a fall


@dataclass(slots=True)
class Writers:
    """The writers of one series, by their start; those of deltas by the end of the delta before.

    Workers of a forking server, and replicas, may send one series; by OTLP's data model, overlapping starts
    are several streams. Writers of one start, or of none, cannot be distinguished. Their values go back and
    forth: a fall whose value returns was no reset, and nothing is added while that goes on.
    """

    _writers: dict[float, _Writer] = field(default_factory=dict)

    def take(self, reading: SeriesReading) -> Taken:
        """Return the increases that a reading adds; a fall is added by the reading after it.

        Where a value returns, the rise before the fall was a step between two writers: it is taken back.
        """
        before = self._writers.get(reading.start)
        last = before.last if before else None
        is_chain = reading.is_delta and bool(reading.start)
        if is_chain:  # a delta begins where the one before it ended
            same_end = self._writers.get(reading.time)
            if same_end and same_end.last and same_end.last.start == reading.start:
                return Taken(outcome="out_of_order")
        elif last and reading.time <= last.time:
            return Taken(outcome="out_of_order")
        is_restart = bool(self._writers) and all(
            writer.last is None or writer.last.time < reading.start for writer in self._writers.values()
        )
        key = reading.time if is_chain else reading.start
        if key not in self._writers and not self._make_room(reading.time):
            return Taken(outcome="full")
        writer = self._writers.setdefault(key, _Writer())
        increase = increase_of(last, reading)
        writer.last = Last(reading.time, reading.value, reading.start)
        if reading.is_delta:
            return Taken((increase,) if increase else ())
        if last is None:
            return Taken((replace(increase, is_reset=is_restart),) if increase else ())
        return _explained(writer, last, reading, increase)

    def _make_room(self, now: float) -> bool:
        for key, writer in list(self._writers.items()):
            if writer.last and writer.last.time < now - LONGEST_GAP_S:
                del self._writers[key]
        return len(self._writers) < MOST_WRITERS


def increase_of(last: Last | None, reading: SeriesReading) -> Increase | None:
    """Return the increase of a writer since its previous reading, None if it is unknown.

    A writer that is read for the first time rose from 0 if its start is recent. One that is smaller than
    before was reset to 0 in between.
    """
    until = reading.time
    recent = last if last and until - last.time <= LONGEST_GAP_S else None
    begun_s = until - reading.start if reading.start else LONGEST_GAP_S + 1
    if reading.is_delta:
        if 0 <= begun_s <= LONGEST_GAP_S:
            return Increase(reading.value, reading.start, until)
        return Increase(reading.value, recent.time, until) if recent else None
    if recent is None:
        is_new = last is None and 0 < begun_s <= LONGEST_GAP_S
        return Increase(reading.value, reading.start, until) if is_new else None
    difference = _difference(reading.value, recent.value)
    if difference is None:
        return Increase(reading.value, recent.time, until, is_reset=True)
    return Increase(difference, recent.time, until)


def _explained(writer: _Writer, last: Last, reading: SeriesReading, increase: Increase | None) -> Taken:
    """Return what a reading adds that is not its writer's first, with the fall before it if that was a reset.

    A second fall, or a value that is back where it was before a fall, shows several writers.
    """
    peak, fall, rise = writer.peak, writer.fall, writer.rise
    writer.peak = writer.fall = writer.rise = None
    if increase is None:  # after a gap nothing is known
        return Taken()
    if increase.is_reset:
        is_first = peak is None and reading.time - writer.returned > LONGEST_GAP_S
        writer.peak, writer.rise = peak if peak is not None else last.value, rise
        writer.fall = increase if is_first else None
        return Taken(outcome="" if is_first else "several_writers")
    if peak is not None and _difference(reading.value, peak) is not None:
        writer.returned = reading.time
        return Taken((_taken_back(rise),) if rise else (), "several_writers")
    if reading.time - writer.returned <= LONGEST_GAP_S:
        return Taken(outcome="several_writers")
    writer.rise = increase
    return Taken((fall, increase) if fall else (increase,))


def _taken_back(rise: Increase) -> Increase:
    value = rise.value
    return replace(rise, value=value.times(-1.0) if isinstance(value, Exponential) else -value)


def _difference(value: float | Exponential, before: float | Exponential) -> float | Exponential | None:
    if isinstance(value, Exponential):
        return value.minus(before) if isinstance(before, Exponential) else None
    if isinstance(before, Exponential) or value < before:
        return None
    return value - before
