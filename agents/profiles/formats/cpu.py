"""Clock of a profile's values, CPU or wall: one rule for all formats, by type, unit and period.

Types are those of Go's runtime, gperftools, perf_to_profile, Datadog, Pyroscope, Parca, async-profiler and
OpenTelemetry's eBPF profiler, whose ``samples`` are of CPUs by their period, and whose ``events`` are hits of
probes, or the time of threads that wait.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from agents.profiles.formats.base import TIME_UNITS, Measure

Clock = Literal["cpu", "wall", ""]
"""Clock that a value follows: of CPUs, of the wall (threads that wait count too), or none: events, memory."""

_CPU = frozenset(
    ("cpu", "process", "itimer", "ctimer", "cycles", "clock", "task", "ref", "core", "atom", "instructions")
)
_IBS = frozenset(("ibs", "op"))  # AMD's sampling by cycles
_INSTRUCTIONS = "instructions"
_WALL = frozenset(("wall", "wallclock", "real"))
_SAMPLES = frozenset(("sample", "samples", "weight", "time"))
_NEUTRAL = _SAMPLES | frozenset(("count", "counts", "event", "events", "total", "ns", "nanoseconds", "usage"))
_TYPES = re.compile(
    r"cpu|itimer|ctimer|wall|samples|(?:alloc|inuse|live|heap|mem|memory|malloc|locks?|mutex|block|goroutines?"
    r"|exceptions?|off[-_]?cpu|gpu|page[-_]?faults?|cache[-_]?miss(?:es)?)(?:_[a-z0-9_]+)?",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^a-z0-9]+")
_COUNTS = ("count", "counts", "samples", "sample", "")
_CPU_TIME = "cpu-time"
"""Datadog's: its counts hold threads that wait, too."""


def clock_of(measure: Measure) -> Clock:
    """Return the clock that a profile's values follow; a type that is not known follows none.

    What only says that it counts samples or time is of the clock that its period is of, without one of CPUs.
    """
    if measure.unit not in TIME_UNITS and measure.unit not in (*_COUNTS, measure.type):
        return ""
    own = _clock_of_words(measure.type)
    if own is not None:
        return own
    period = _clock_of_words(measure.period_type)
    if period is not None:
        return period
    return "cpu" if _words(measure.type) & _SAMPLES or not measure.type else ""


def names_type(text: str) -> bool:
    """Return whether a text is a type of profiles as clients spell it, not a service or thread."""
    return bool(_TYPES.fullmatch(text))


def counts_cpu(measure: Measure) -> bool:
    """Return whether a profile's values are CPU time, or samples taken by CPU time."""
    return clock_of(measure) == "cpu"


def samples_text(measure: Measure) -> str:
    """Return what counts of a measure are called in a message: samples alone are of CPU."""
    if measure.unit != "count":
        return measure.unit if measure.unit == measure.type else f"{measure.unit} ({measure.type})"
    names = {"cpu": "samples", "wall": "samples of wall time"}
    return names.get(clock_of(measure), f"count ({measure.type})")


def value_text(measure: Measure) -> str:
    """Return what a measure is called where nothing is counted: its type, and its unit if that differs."""
    return measure.type if measure.unit == measure.type else f"{measure.type} ({measure.unit})"


def usual_value(measures: Sequence[Measure], default: str = "") -> int:
    """Return the index of the value that counts where a profile has several.

    Of CPU the counts come first (Datadog's time before its counts), then time with a period, instructions
    last; then the same of the wall. Without either it is ``default``, the type that the file calls usual, or
    the first.
    """
    ranks = [_rank(measure) for measure in measures]
    if min(ranks) < _NO_CLOCK:
        return ranks.index(min(ranks))
    return next((index for index, measure in enumerate(measures) if measure.type == default), 0)


_NO_CLOCK = 8


def _rank(measure: Measure) -> int:
    clock = clock_of(measure)
    if not clock:
        return _NO_CLOCK
    if measure.type == _CPU_TIME:
        return 0
    if _INSTRUCTIONS in _words(measure.type):
        return 4
    detail = 1 if measure.unit not in TIME_UNITS else 2 if measure.period > 0 else 3
    return detail + (0 if clock == "cpu" else 4)


def _clock_of_words(text: str) -> Clock | None:
    """Return the clock that a type names; None if it has no word but those of any type."""
    words = _words(text) - _NEUTRAL
    if not words:
        return None
    if words & _WALL:
        return "wall" if words <= _WALL else ""
    return "cpu" if words <= _CPU or words == _IBS else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORDS.split(text.lower())) - {""}
