"""Durations that a service reports in the header ``Server-Timing`` (W3C)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MAX_MS = 1e9


def server_timings(values: Iterable[str], names: Sequence[str]) -> tuple[float | None, ...]:
    """Return the durations of metrics in milliseconds, None where there is none.

    >>> server_timings(["cpu;dur=12.5, db;dur=3"], ["db", "cpu", "disk"])
    (3.0, 12.5, None)
    """
    durations: dict[str, float] = {}
    for value in values:
        for metric in value.split(","):
            name, *parameters = (part.strip() for part in metric.split(";"))
            for parameter in parameters:
                key, _, number = parameter.partition("=")
                if key.strip().lower() == "dur":
                    duration = _number(number.strip().strip('"'))
                    if duration is not None:
                        durations[name] = durations.get(name, 0.0) + duration
    return tuple(durations.get(name) for name in names)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= MAX_MS else None
