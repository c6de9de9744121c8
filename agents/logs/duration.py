"""Durations as servers write them: numbers in the unit of their field or with their own, and lists."""

from __future__ import annotations

import math
import re
from enum import IntEnum

from pipeline.model.units import TIME_UNITS, UNIT_S

_WORDS = {spelling: unit for spelling, unit in TIME_UNITS.items() if UNIT_S[unit] <= 1}
"""Units that a field may have: no server writes bare numbers of minutes."""

_SECONDS = {spelling: UNIT_S[unit] for spelling, unit in TIME_UNITS.items()}

_NUMBER = r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_BARE = re.compile(_NUMBER, re.ASCII)
_SIMPLE = re.compile(rf"({_NUMBER}) ?([a-zµμ]*)", re.ASCII)
_DECIMAL = re.compile(r"\d+\.\d+", re.ASCII)
_SEPARATOR = re.compile(r"\s*,\s*|\s+(?::\s+)?")
_TERM = re.compile(rf"({_NUMBER})\s?([a-zµμ]+)", re.ASCII | re.IGNORECASE)
_TERMS = re.compile(rf"(?:{_NUMBER}\s?[a-zµμ]+\s*)+", re.ASCII | re.IGNORECASE)
_ENDING = re.compile(r"(.*?)\s*([a-zµμ]*)", re.ASCII | re.IGNORECASE | re.DOTALL)
_TIME_SPAN = re.compile(r"(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)", re.ASCII)
_ISO = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?", re.ASCII)
_MISSING = ("", "nan", "none", "null")
_KEY = re.compile(r".*(?:[_.-]|(?<=[a-z])(?=[A-Z]))([A-Za-z]+)")

_MAX_KEY = 100
"""Characters of a key that are looked at."""


class NoDuration(IntEnum):
    """Reasons why a text is no duration."""

    ABSENT = 1  # the server writes that it has none, such as "-"
    UNREADABLE = 2
    UNITLESS = 3  # a number whose unit neither the text nor the field says


def unit_of_key(key: str) -> str:
    """Return the unit at the end of a name such as ``took_ms`` or ``elapsedMillis``, else empty."""
    match = _KEY.fullmatch(key[-_MAX_KEY:])
    return _WORDS.get(match[1].lower(), "") if match else ""


def unit_of_word(word: str) -> str:
    """Return the unit that a word such as ``ms`` or ``microseconds`` means, else empty."""
    return _WORDS.get(word.lower(), "")


def read_duration(text: str, unit: str) -> float | NoDuration:
    """Return the seconds of a duration.

    A text may have a unit of its own: ``120.5ms``, Go's ``1m2.5s``, ISO 8601's ``PT0.5S``, .NET's
    ``00:00:00.5000000``. nginx (ngx_http_upstream_module) and Amazon's load balancers write a list of decimal
    numbers, one for each server that was asked or part of the way; their sum counts.

    Args:
        text: As the server wrote it.
        unit: Of a number without a unit: s, ms, us or ns; empty if it is not known.
    """
    if (simple := _SIMPLE.fullmatch(text)) and (factor := _SECONDS.get(simple[2] or unit)):
        return _checked(float(simple[1]) * factor)
    match = _ENDING.fullmatch(text.strip())
    assert match
    numbers, ending = match.groups()
    unit = _WORDS.get(ending.lower(), "") if ending else unit
    parts = _SEPARATOR.split(numbers)
    is_empty = not any(part.strip("-") for part in parts)
    if "-1" in parts or (is_empty and (numbers or ending.lower() in _MISSING)):
        return NoDuration.ABSENT
    numerals = [part for part in parts if part != "-"]
    if all((_DECIMAL if len(parts) > 1 else _BARE).fullmatch(part) for part in numerals):
        total = sum(map(float, numerals))
        if unit or not total:
            return _checked(total * UNIT_S.get(unit, 1.0))
        if not ending:
            return NoDuration.UNITLESS
    return _composed(text.strip())


def _composed(text: str) -> float | NoDuration:
    """Return the seconds of a text with several units, or in parts between colons."""
    if span := _TIME_SPAN.fullmatch(text):
        return _checked(3600 * float(span[1]) + 60 * float(span[2]) + float(span[3]))
    if (iso := _ISO.fullmatch(text)) and any(iso.groups()):
        hours, minutes, seconds = (float(part or 0) for part in iso.groups())
        return _checked(3600 * hours + 60 * minutes + seconds)
    if _TERMS.fullmatch(text):
        terms = [(float(number), _SECONDS.get(unit.lower())) for number, unit in _TERM.findall(text)]
        return _checked(sum(number * (math.nan if unit is None else unit) for number, unit in terms))
    return NoDuration.UNREADABLE


def _checked(seconds: float) -> float | NoDuration:
    return seconds if math.isfinite(seconds) else NoDuration.UNREADABLE
