"""Series of Prometheus: the meaning of a number, by the series' name and labels."""

from __future__ import annotations

import math

from agents.metrics.reading import LEVELS, Families, Labels, Part, SeriesReading

_UNREAD = ("_sum", "_gsum", "_gcount")
"""Series of histograms and summaries that are not used."""

_SETS = frozenset({"gaugehistogram", "info", "stateset"})


def reading_of(
    name: str, labels: Labels, time: float, value: float, families: Families, *, start: float = 0.0
) -> SeriesReading | None:
    """Return a number of a series as a reading; None for NaN, sums, and sets of states.

    If the sender does not state a type, the name decides: ``_total`` is a counter, ``_bucket`` with ``le``
    and ``_count`` are of a histogram, and all else is a gauge.

    Raises:
        ValueError: a bound or a rank is no number.
    """
    # NaN: a stale series, or an empty summary. ``_created``: the start of a series.
    if not math.isfinite(value) or name.endswith("_created"):
        return None
    own = dict(labels)
    if name.endswith("_bucket") and "le" in own:
        base = name.removesuffix("_bucket")
        at = _number(own.pop("le"))
        family = families.of(base)
        return (
            None if family.type in _SETS else _made(base, own, time, value, "bucket", at, start, family.unit)
        )
    if "quantile" in own and families.of(name).type in ("", "summary"):
        rank = _number(own.pop("quantile"))
        return _made(name, own, time, value, "quantile", rank, start, families.of(name).unit)
    family = families.of(name, name.removesuffix("_total"))
    if family.type in _SETS:
        return None
    if not family.type:
        if name.endswith(_UNREAD):
            return None
        if name.endswith("_count"):
            base = name.removesuffix("_count")
            return _made(base, own, time, value, "count", 0.0, start, families.of(base).unit)
    part: Part = "counter" if family.type == "counter" or name.endswith("_total") else "gauge"
    return _made(name, own, time, value, part, 0.0, start, family.unit)


def _made(
    name: str,
    labels: dict[str, str],
    time: float,
    value: float,
    part: Part,
    at: float,
    start: float,
    unit: str,
) -> SeriesReading:
    own_start = 0.0 if part in LEVELS else start
    return SeriesReading(name, tuple(sorted(labels.items())), time, value, part, at, own_start, unit=unit)


def _number(text: str) -> float:
    """Read a bound or rank; infinity is one."""
    number = float(text)
    if math.isnan(number):
        raise ValueError(f"{text} is no bound")
    return number
