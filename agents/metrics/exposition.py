"""Prometheus' text exposition format and OpenMetrics: what ``/metrics`` of a process shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from agents.metrics.prometheus import reading_of
from agents.metrics.reading import Families, Family, InvalidCount, Labels, Readings, SeriesReading

_NAME = r"[a-zA-Z_:][\w:]*"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_LABEL = re.compile(rf"\s*(?P<name>{_NAME}|{_QUOTED})\s*(?:=\s*(?P<value>{_QUOTED}))?\s*(?:,|(?=\}}))")
_END = re.compile(r"\s*\}")
_HEAD = re.compile(rf"({_NAME})?\s*(\{{)?")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}

_CREATED = "_created"
"""Ending of the series that says when another one began; servers that fork have one for each worker."""

MAX_LABELS = 100
"""Most labels of a series."""


def read_exposition(text: str, now: float, *, openmetrics: bool = False) -> Readings:
    """Read a page of metrics; a line that cannot be read is counted.

    Args:
        text: The page.
        now: Time of numbers without a time of their own, which nearly all are, in epoch seconds.
        openmetrics: Whether the page's type is OpenMetrics: its times are seconds, not milliseconds.
    """
    by_name: dict[str, Family] = {}
    families, invalid = Families(by_name), InvalidCount()
    readings: list[SeriesReading] = []
    starts: dict[tuple[str, Labels], float] = {}
    per_second = 1.0 if openmetrics else 1000.0
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip(" \t\r")
        if line.startswith("#"):
            if line == "# EOF":
                break
            _note(line, by_name)
        elif line:
            try:
                name, labels, value, time = _series(line)
                at = now if time is None else time / per_second
                reading = reading_of(name, labels, at, value, families)
            except ValueError as error:
                invalid.add(f"line {number}: {error}")
            else:
                readings += [reading] if reading else []
                if name.endswith(_CREATED):
                    starts[name.removesuffix(_CREATED), tuple(sorted(labels))] = value
    begun = tuple(_with_start(reading, starts, now) for reading in readings)
    return Readings(begun, invalid.count, invalid.first)


def _with_start(
    reading: SeriesReading, starts: Mapping[tuple[str, Labels], float], now: float
) -> SeriesReading:
    """Return a counting reading with the start that ``_created`` states for its series."""
    if reading.part in ("gauge", "quantile") or not starts:
        return reading
    start = starts.get((reading.name.removesuffix("_total"), reading.labels), 0.0)
    return replace(reading, start=start) if 0 < start <= now else reading


def _note(line: str, by_name: dict[str, Family]) -> None:
    """Record the type or the unit that a comment line states."""
    words = line.split(None, 3)
    if len(words) != 4 or words[1] not in ("TYPE", "UNIT"):
        return
    name = _unquoted(words[2]) if words[2].startswith('"') else words[2]
    before = by_name.get(name, Family())
    type_ = "" if words[3] in ("untyped", "unknown") else words[3]
    by_name[name] = Family(type_, before.unit) if words[1] == "TYPE" else Family(before.type, words[3])


def _series(line: str) -> tuple[str, Labels, float, float | None]:
    """Return name, labels, value and time of a line.

    Raises:
        ValueError: it is no such line.
    """
    head = _HEAD.match(line)
    name, position = (head[1] or "", head.end()) if head else ("", 0)
    labels: dict[str, str] = {}
    if head and head[2]:
        quoted, labels, position = _labels(line, position)
        name = name or quoted
    if not name:
        raise ValueError("no name of a metric")
    words = line[position:].partition("#")[0].split()  # an exemplar stands behind it
    if not 1 <= len(words) <= 2:
        raise ValueError("should have a value, and perhaps a time")
    if "_" in "".join(words):
        raise ValueError("no number")  # Python would read 1_000
    return name, tuple(labels.items()), float(words[0]), float(words[1]) if len(words) > 1 else None


def _labels(line: str, position: int) -> tuple[str, dict[str, str], int]:
    """Return the metric's name if it is quoted among the labels, the labels, and the position behind them."""
    name = ""
    labels: dict[str, str] = {}
    while not (end := _END.match(line, position)):
        match = _LABEL.match(line, position)
        if not match or len(labels) == MAX_LABELS:
            raise ValueError('labels should be NAME="VALUE", at most 100 of them')
        position = match.end()
        key = _unquoted(match["name"]) if match["name"].startswith('"') else match["name"]
        if match["value"] is not None:
            labels[key] = _unquoted(match["value"])
        elif match["name"].startswith('"'):
            name = key
        else:
            raise ValueError(f"the label {key[:50]} has no value")
    return name, labels, end.end()


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[0]), text[1:-1])
