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

_SUFFIX = re.compile(r"(.+[-_])(ns|us|ms|sec)")
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
    above, slash, under = text.partition("/")
    dimension, scale = _on_scale(above)
    is_cost = above in _SECONDS or above in _BYTES or dimension != above or _is_cost(above)
    if under in _SECONDS:
        better = Better.UNKNOWN if is_cost and above not in _BYTES else Better.HIGHER
        return ResultUnit(f"{dimension}/s", scale / _SECONDS[under], better)
    if text.lower() in _RATES:
        return ResultUnit(text, 1.0, Better.HIGHER)
    return ResultUnit(f"{dimension}{slash}{under}", scale, Better.LOWER if is_cost else Better.UNKNOWN)


def _on_scale(text: str) -> tuple[str, float]:
    if text in _SECONDS:
        return "s", _SECONDS[text]
    if text in _BYTES:
        return "B", _BYTES[text]
    if match := _SUFFIX.fullmatch(text):
        return f"{match[1]}s", _SECONDS[match[2]]
    return text, 1.0


def _is_cost(text: str) -> bool:
    words = _WORD.split(text.lower())
    return words[-1] in _COSTS or (words[-1] in ("b", "bytes", "mb", "kb") and not _MEMORY.isdisjoint(words))
