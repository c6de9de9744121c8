"""Times and numbers in addresses."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pipeline.model.errors import InvalidMessage

_SECONDS_DIGITS = 10
"""Digits of seconds since the epoch, from 2001 on; more of them are milli-, micro- or nanoseconds."""


def moment(query: Mapping[str, str], name: str) -> float | None:
    """Return epoch seconds of a time in seconds, milli-, micro- or nanoseconds; None if it is not there.

    Raises:
        InvalidMessage: it is no time.
    """
    text = query.get(name, "")
    if not text:
        return None
    value = _finite(text, name)
    digits = len(text.partition(".")[0])
    thousands = min(3, max(0, math.ceil((digits - _SECONDS_DIGITS) / 3)))
    return float(value / 1000**thousands)


def number(query: Mapping[str, str], name: str) -> float:
    """Return a number that is not negative; 0 if it is not there.

    Raises:
        InvalidMessage: it is no such number.
    """
    text = query.get(name, "")
    value = _finite(text, name) if text else 0.0
    if value < 0:
        raise InvalidMessage(f"{name}: should not be negative")
    return value


def _finite(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or len(text) > 40:
        raise InvalidMessage(f"{name}: should be a number, not {text[:40]!r}")
    return value
