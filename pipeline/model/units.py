"""Spans of time in seconds; durations and sizes as people write them in configuration."""

from __future__ import annotations

import re

MINUTE_S = 60.0
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S

UNIT_S = {
    **{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0},
    **{"min": MINUTE_S, "h": HOUR_S, "d": DAY_S, "w": WEEK_S},
}
"""Units of time, in seconds."""

_SPELLINGS = {
    "ns": "nsec nsecs nano nanos nanosecond nanoseconds",
    "us": "µs μs usec usecs micro micros microsecond microseconds",
    "ms": "msec msecs milli millis millisecond milliseconds",
    "s": "sec secs second seconds",
    "min": "m mins minute minutes",
    "h": "hr hrs hour hours",
    "d": "day days",
    "w": "week weeks",
}
TIME_UNITS = {spelling: unit for unit in UNIT_S for spelling in (unit, *_SPELLINGS[unit].split())}
"""Units of UNIT_S by the ways in which programs and people write them."""

_DURATION_S = {"ms": 0.001, "s": 1.0, "m": MINUTE_S, "h": HOUR_S, "d": DAY_S}
_SIZE_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
MAX_QUANTITY = 2**62
"""Largest number of seconds or bytes: what is beyond is no quantity, and no longer fits into 64 bits."""

_QUANTITY = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$")


def parse_duration_s(value: object) -> float:
    """Read ``30m``, ``2h``, ``10d``, ``1.5s`` or a plain number of seconds, also as text: flags are text.

    Raises:
        ValueError: it is neither, or it is negative or not finite.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < 0:
            raise ValueError("a duration cannot be negative")
        if not value <= MAX_QUANTITY:  # nor NaN
            raise ValueError("a duration should be finite")
        return float(value)
    return _parse(value, _DURATION_S, "a duration such as 30m, 2h or 10d")


def parse_size_bytes(value: object) -> int:
    """Read ``16MiB``, ``512KiB`` or a plain number of bytes, also as text.

    Raises:
        ValueError: it is neither, or less than one byte.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_QUANTITY:
        return value
    size = int(_parse(value, _SIZE_BYTES, "a size such as 512KiB or 16MiB"))
    if size < 1:
        raise ValueError("a size should be at least one byte")
    return size


def format_duration(seconds: float) -> str:
    """Write seconds in the largest unit that keeps the number whole: 7200 as ``2h``, 90 as ``90s``."""
    for unit in ("d", "h", "m", "s"):
        count = seconds / _DURATION_S[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    return f"{seconds:g}s"


def counted(count: int, thing: str) -> str:
    """Write a count of things whose plural ends in s: ``1 event``, ``2,000 events``."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def _parse(value: object, units: dict[str, float] | dict[str, int], wanted: str) -> float:
    match = _QUANTITY.match(value) if isinstance(value, str) else None
    if not match or match[2] not in ("", *units):
        shown = value[:100] if isinstance(value, str) else value
        raise ValueError(
            f"should be {wanted}, not {shown!r}" if not _is_vast(value) else f"should be {wanted}"
        )
    found = float(match[1]) * (units[match[2]] if match[2] else 1)
    if found > MAX_QUANTITY:
        raise ValueError(f"should be {wanted}, of fewer digits")
    return found


def _is_vast(value: object) -> bool:
    """Describe an integer that Python refuses to write out."""
    return isinstance(value, int) and abs(value) > MAX_QUANTITY
