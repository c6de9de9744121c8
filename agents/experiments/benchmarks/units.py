"""Units of results on one scale: seconds, bytes, and rates a second."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pipeline.model.units import TIME_UNITS, UNIT_S

_SECONDS = {
    spelling: UNIT_S[unit] for spelling, unit in TIME_UNITS.items() if len(spelling) > 1 or spelling == "s"
}
"""Units of time in seconds; a single character other than s may mean something else, such as metres."""

_BYTES = {
    "B": 1.0,
    **{f"{prefix}B": 1000.0**power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGT", 1)},
    "kB": 1000.0,
}

_RATES = {"qps", "rps", "tps", "iops", "fps", "flops", "mflops", "gflops", "tflops", "kbps", "mbps", "gbps"}
"""Rates that are written without a slash, in lower case."""


@dataclass(frozen=True, slots=True)
class ResultUnit:
    """What a unit measures, ``scale`` of which are one of the unit.

    Args:
        dimension: The unit on the common scale, such as ``s/op`` or ``ops/s``.
        scale: Factor from the unit to ``dimension``.
        is_rate: Whether it counts per time: more is better.
    """

    dimension: str
    scale: float
    is_rate: bool


@lru_cache(1024)
def unit_of(text: str) -> ResultUnit:
    """Return what a unit such as ``us/op``, ``ops/ms``, ``MB/s`` or ``allocations`` measures.

    >>> unit_of("ops/ms")
    ResultUnit(dimension='ops/s', scale=1000.0, is_rate=True)
    """
    above, slash, under = text.partition("/")
    dimension, scale = _on_scale(above)
    if under in _SECONDS:
        return ResultUnit(f"{dimension}/s", scale / _SECONDS[under], above not in _SECONDS)
    return ResultUnit(f"{dimension}{slash}{under}", scale, is_rate=text.lower() in _RATES)


def _on_scale(text: str) -> tuple[str, float]:
    if text in _SECONDS:
        return "s", _SECONDS[text]
    return ("B", _BYTES[text]) if text in _BYTES else (text, 1.0)
