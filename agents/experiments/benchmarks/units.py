"""Units of results: seconds, bytes and rates on one scale, and whether more of a unit is better."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from pipeline.model.units import TIME_UNITS, UNIT_S

_SECONDS = {
    spelling: UNIT_S[unit] for spelling, unit in TIME_UNITS.items() if len(spelling) > 1 or spelling == "s"
}
"""Units of time in seconds; a single character other than s may mean something else, such as metres."""

_BYTES = {
    "B": 1.0,
    "byte": 1.0,
    "bytes": 1.0,
    **{f"{prefix}B": 1000.0**power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGT", 1)},
    "kB": 1000.0,
}

_RATES = {"qps", "rps", "tps", "iops", "fps", "flops", "mflops", "gflops", "tflops", "kbps", "mbps", "gbps"}
"""Rates that are written without a slash, in lower case."""

_COSTS = {
    *("alloc", "allocs", "allocations", "instructions", "cycles", "branches", "misses", "faults", "syscalls"),
    *("errors", "failures", "timeouts", "retries", "drops", "conflicts", "gcs"),
}
"""Last words of what is counted and should be few; more of them a second may be due to more work."""

_MEMORY = {"rss", "heap", "stack", "alloc", "allocs", "allocated", "mem", "memory"}
"""Words that say that bytes are of memory, and not of data that are processed."""

_SPELT = "|".join(
    sorted(
        (text for text in _SECONDS if UNIT_S[TIME_UNITS[text]] <= 1 and text != "s"), key=len, reverse=True
    )
)
_SUFFIX = re.compile(
    rf"(.+[-_ ])({_SPELT})|(.+?) ?[(\[]({_SPELT}|s)[)\]]|(.*(?:time|latency|duration|elapsed)[-_ ])(s)",
    re.IGNORECASE,
)
"""A metric with the unit of its time: p99-ns, latency_seconds, Time (ms), wall_time_s; min is a minimum."""

_PER = re.compile(r"(.+?)[-_ ]per[-_ ](.+)", re.IGNORECASE)
_WORD = re.compile(r"[-_ .:]+")


class Better(StrEnum):
    """Direction in which results improve."""

    HIGHER = "higher"
    LOWER = "lower"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ResultUnit:
    """What a unit measures, ``scale`` of which are one of the unit.

    Args:
        dimension: The unit on the common scale, such as ``s/op`` or ``ops/s``.
        scale: Factor from the unit to ``dimension``.
        better: Higher for rates, lower for times, memory and other costs, unknown for anything else.
    """

    dimension: str
    scale: float
    better: Better


@lru_cache(1024)
def unit_of(text: str) -> ResultUnit:
    """Return what a unit such as ``us/op``, ``ops/ms``, ``MB/s``, ``p99-ns`` or ``allocations`` measures.

    >>> unit_of("ops/ms")
    ResultUnit(dimension='ops/s', scale=1000.0, better=<Better.HIGHER: 'higher'>)
    """
    above, slash, under = _fraction(text)
    dimension, scale = _on_scale(above)
    is_cost = (
        _seconds(above) > 0 or above in _BYTES or _SUFFIX.fullmatch(above) is not None or _is_cost(above)
    )
    if seconds := _seconds(under):
        better = Better.UNKNOWN if is_cost and above not in _BYTES else Better.HIGHER
        return ResultUnit(f"{dimension}/s", scale / seconds, better)
    if text.lower() in _RATES:
        return ResultUnit(text, 1.0, Better.HIGHER)
    return ResultUnit(f"{dimension}{slash}{under}", scale, Better.LOWER if is_cost else Better.UNKNOWN)


def _fraction(text: str) -> tuple[str, str, str]:
    """Return what stands above and under the slash of a unit, or around ``per`` beside a unit of time."""
    above, slash, under = text.partition("/")
    if not slash and (match := _PER.fullmatch(text)) and (_seconds(match[1]) or _seconds(match[2])):
        return match[1], "/", match[2]
    return above, slash, under


def _seconds(text: str) -> float:
    """Return the seconds of a unit of time; 0 for anything else. Only long spellings have capitals."""
    is_word = len(text) > 3 or text.lower() == "sec"
    return _SECONDS.get(text.lower() if is_word else text, 0.0)


def _on_scale(text: str) -> tuple[str, float]:
    if seconds := _seconds(text):
        return "s", seconds
    if text in _BYTES:
        return "B", _BYTES[text]
    if match := _SUFFIX.fullmatch(text):
        return f"{match[1] or match[5] or f'{match[3]}-'}s", _SECONDS[(match[2] or match[4] or "s").lower()]
    return text, 1.0


def _is_cost(text: str) -> bool:
    words = _WORD.split(text.lower())
    return words[-1] in _COSTS or (words[-1] in ("b", "bytes", "mb", "kb") and not _MEMORY.isdisjoint(words))
