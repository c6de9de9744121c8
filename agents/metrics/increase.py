"""Increases of a counter between its readings, with resets, and with several writers of one series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agents.metrics.exponential import Exponential
from agents.metrics.reading import LEVELS, SeriesReading

LONGEST_GAP_S = 300.0
"""Most seconds between two readings: beyond, the increase is unknown; Prometheus looks back as far."""

UNSTEADY_S = 150.0
"""Seconds after which a start that has not come again is unsteady: two export intervals of OTLP and more."""

MOST_WRITERS = 1000
"""Most starts of one series within the longest gap: a sender that invents starts would fill the memory."""

GRANULES_S = {1.0: 2.0, 1e-3: 0.02}
"""Resolution of a start → seconds by which it differs if it is computed anew from clock and uptime."""

MOMENT_S = 1e-3
"""Seconds for which a level counts that has no recent reading before it."""

PLAUSIBLE_PACE = 10.0
"""Times the fastest pace before: a process that has just begun counts no faster."""

SUDDEN_COUNT = 100.0
"""Fewest counts of a sudden rise; of rare events a few come at once."""

PLAUSIBLE_SHARE = 0.1
"""Most that a process which has just begun may have of the count before, where no pace is known."""


@dataclass(frozen=True, slots=True)
class Last:
    """The previous reading of a writer."""

    time: float
    value: float | Exponential
    start: float


@dataclass(frozen=True, slots=True)
class Increase:
    """The count after ``since``, up to ``until``; or the level that held in that time."""

    value: float | Exponential
    since: float
    until: float
    is_reset: bool = False


class Taken(NamedTuple):
    """What a reading adds, and an outcome to be counted: why it adds nothing, or that this may be wrong."""

    increases: Sequence[Increase] = ()
    outcome: str = ""


class _Rise(NamedTuple):
    """An increase that was added, and the value before it."""

    increase: Increase
    before: float | Exponential


@dataclass(slots=True)
class _Writer:
    """State of one writer: its readings have one start, or none."""

    last: Last
    is_steady: bool = False  # its start has come again
    held: Increase | None = None  # what its first reading adds if the start comes again
    peak: float | Exponential | None = None  # value before a fall that is not explained yet
    fall: Increase | None = None  # what that fall adds if it was a reset
    rise: _Rise | None = None  # the fastest of the last minutes
    returned: float = float("-inf")  # time of the last reading that showed several writers


@dataclass(slots=True)
class Writers:
    """The writers of one series, by their start; those of deltas by the end of the delta before.

    Workers of a forking server, and replicas, may send one series; by OTLP's data model, overlapping starts
    are several streams. Writers of one start, or of none, cannot be distinguished. Their values go back and
    forth: a fall whose value returns was no reset, and nothing is added while that goes on.

    A start that never comes again distinguishes nothing either: some senders compute it anew for each
    reading. What the first reading of a start adds waits for the second one if another start has come only
    once so far, and its value was not larger.
    """

    _writers: dict[float, _Writer] = field(default_factory=dict)
    _is_delta: bool = False
    _heard: float = float("-inf")  # time of the last reading that was taken

    def take(self, reading: SeriesReading) -> Taken:
        """Return what a reading adds: increases of a counter, or the level that held since the one before.

        A fall is added by the reading after it. Where a value returns, the rise before the fall was a step
        between two writers: it is taken back.
        """
        if reading.is_delta != self._is_delta:
            if reading.time - self._heard <= LONGEST_GAP_S:
                return Taken(outcome="mixed_temporality")
            self._writers.clear()
            self._is_delta = reading.is_delta
        self._heard = max(self._heard, reading.time)
        if reading.is_delta and 0 < reading.start < reading.time:
            return self._take_delta(reading)
        start = 0.0 if reading.is_delta else self._stated(reading.start)
        writer = self._writers.get(start)
        if writer is None:
            return self._take_first(start, reading)
        return _take_next(writer, reading)

    def _take_delta(self, reading: SeriesReading) -> Taken:
        """Return a delta, which begins where its writer's delta before it ended."""
        same_end = self._writers.get(reading.time)
        if same_end and same_end.last.start == reading.start:
            is_again = same_end.last.value == reading.value
            return Taken(outcome="out_of_order" if is_again else "several_writers")
        before = self._writers.get(reading.start)
        if not self._make_room(reading.time):  # the oldest one could only be sent again
            del self._writers[next(iter(self._writers))]
        self._writers[reading.time] = _Writer(_last_of(reading))
        increase = increase_of(before.last if before else None, reading)
        return Taken((increase,) if increase else ())

    def _take_first(self, start: float, reading: SeriesReading) -> Taken:
        """Return what the first reading of a start adds, or nothing as long as the start is in doubt."""
        if not self._make_room(reading.time):
            return Taken(outcome="full")
        doubtful = [writer.last for writer in self._doubtful(reading)]
        is_restart = bool(self._writers) and all(
            writer.last.time < reading.start for writer in self._writers.values()
        )
        writer = self._writers[start] = _Writer(_last_of(reading))
        increase = increase_of(None, reading)
        if increase and reading.part not in LEVELS:
            increase = replace(increase, is_reset=is_restart)
        if not doubtful:
            return Taken((increase,) if increase else ())
        writer.held = increase
        is_unsteady = any(reading.time - last.time > UNSTEADY_S for last in doubtful)
        return Taken(outcome="unsteady_start" if is_unsteady else "")

    def _stated(self, start: float) -> float:
        """Return the start of the writer that states a start, or one that is the same but for rounding."""
        if start in self._writers:
            return start
        near = [
            before
            for granule, seconds in GRANULES_S.items()
            for before in self._writers
            if before
            and abs(before - start) <= seconds
            and _is_multiple(before, granule)
            and _is_multiple(start, granule)
        ]
        return near[0] if near else start

    def _doubtful(self, reading: SeriesReading) -> Iterator[_Writer]:
        """Yield writers whose start has not come again, and which a reading of another start may continue.

        If another writer repeats its start, the sender's starts are steady.
        """
        if any(writer.is_steady for start, writer in self._writers.items() if start):
            return
        for start, writer in self._writers.items():
            continues = reading.part in LEVELS or _difference(reading.value, writer.last.value) is not None
            if start and not writer.is_steady and continues:
                yield writer

    def _make_room(self, now: float) -> bool:
        for key, writer in list(self._writers.items()):
            if writer.last.time < now - LONGEST_GAP_S:
                del self._writers[key]
        return len(self._writers) < MOST_WRITERS


def _take_next(writer: _Writer, reading: SeriesReading) -> Taken:
    """Return what a reading adds that is not the first of its start."""
    last, held = writer.last, writer.held
    if reading.time <= last.time:
        is_conflict = reading.time == last.time and reading.value != last.value
        is_several = is_conflict and reading.part not in LEVELS
        return Taken(outcome="several_writers" if is_several else "out_of_order")
    writer.last, writer.held, writer.is_steady = _last_of(reading), None, True
    increase = increase_of(last, reading)
    if reading.is_delta or reading.part in LEVELS:
        return Taken((increase,) if increase else ())
    taken = _explained(writer, last, reading, increase)
    return Taken((held, *taken.increases), taken.outcome) if held else taken


def increase_of(last: Last | None, reading: SeriesReading) -> Increase | None:
    """Return the increase of a writer since its previous reading, None if it is unknown.

    A writer that is read for the first time rose from 0 if its start is recent. One that is smaller than
    before was reset to 0 in between. A level held since the previous reading, or for a moment.
    """
    until = reading.time
    recent = last if last and until - last.time <= LONGEST_GAP_S else None
    begun_s = until - reading.start if reading.start else LONGEST_GAP_S + 1
    if reading.part in LEVELS:
        return Increase(reading.value, recent.time if recent else until - MOMENT_S, until)
    if reading.is_delta:
        if 0 < begun_s <= LONGEST_GAP_S:
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

    Several writers are shown by a second fall, by a value that is back where it was before a fall or before
    the fastest rise of the last minutes, and by a count that nobody reaches in the time since a reset.
    """
    peak, fall, rise = writer.peak, writer.fall, writer.rise
    writer.peak = writer.fall = writer.rise = None
    if increase is None:  # after a gap nothing is known
        return Taken()
    if rise and reading.time - rise.increase.until > LONGEST_GAP_S:
        rise = None
    was_several = reading.time - writer.returned <= LONGEST_GAP_S
    if increase.is_reset:
        writer.peak = peak if peak is not None else last.value
        is_back = rise and _size(rise.before) > 0 and _difference(reading.value, rise.before) is not None
        if was_several or is_back or not _is_plausible(increase, last, rise):
            return _several(writer, reading, rise if is_back else None)
        writer.rise = rise
        if peak is not None:
            return Taken(outcome="several_writers")
        writer.fall = increase
        return Taken()
    if peak is not None and _difference(reading.value, peak) is not None:
        return _several(writer, reading, rise)
    if was_several:
        return Taken(outcome="several_writers")
    is_fastest = rise is None or _pace(increase) >= _pace(rise.increase)
    writer.rise = _Rise(increase, last.value) if is_fastest else rise
    is_sudden = not reading.start and rise is not None and _is_sudden(increase, last, rise.increase)
    return Taken((fall, increase) if fall else (increase,), "sudden_rise" if is_sudden else "")


def _several(writer: _Writer, reading: SeriesReading, rise: _Rise | None) -> Taken:
    """Return the rise that was a step between two writers, to be taken back; nothing is added for a while."""
    writer.returned = reading.time
    if rise is None:
        return Taken(outcome="several_writers")
    value = rise.increase.value
    negative = value.times(-1.0) if isinstance(value, Exponential) else -value
    return Taken((replace(rise.increase, value=negative),), "several_writers")


def _is_plausible(fall: Increase, last: Last, rise: _Rise | None) -> bool:
    """Return whether a process that began after the previous reading may have counted this much."""
    pace = _pace(rise.increase) if rise else 0.0
    if pace > 0:
        return _size(fall.value) <= PLAUSIBLE_PACE * pace * (fall.until - fall.since)
    return _size(fall.value) <= PLAUSIBLE_SHARE * _size(last.value)


def _is_sudden(increase: Increase, last: Last, fastest: Increase) -> bool:
    """Return whether a rise is so fast that another process may have taken over, which counted more.

    A counter that did not rise in the last minutes has no pace: then a rise by more than all of its count is.
    """
    pace, count = _pace(fastest), _size(increase.value)
    is_fast = _pace(increase) > PLAUSIBLE_PACE * pace if pace else count > _size(last.value)
    return is_fast and count >= SUDDEN_COUNT


def _is_multiple(start: float, granule: float) -> bool:
    return abs(start - round(start / granule) * granule) < 1e-6


def _last_of(reading: SeriesReading) -> Last:
    return Last(reading.time, reading.value, reading.start)


def _pace(increase: Increase) -> float:
    return _size(increase.value) / (increase.until - increase.since)


def _size(value: float | Exponential) -> float:
    return value.count if isinstance(value, Exponential) else value


def _difference(value: float | Exponential, before: float | Exponential) -> float | Exponential | None:
    if isinstance(value, Exponential):
        return value.minus(before) if isinstance(before, Exponential) else None
    if isinstance(before, Exponential) or value < before:
        return None
    return value - before
