"""Time at the edge: logic takes a clock or a number, it never reads the machine's clock itself."""

from __future__ import annotations

import re
import time
from calendar import isleap
from collections.abc import Callable
from datetime import UTC, datetime

from pipeline.model.errors import InvalidMessage
from pipeline.model.units import DAY_S

Clock = Callable[[], float]
"""Returns the present as seconds since the epoch."""


def system_clock() -> float:
    """Return the machine's time, in seconds since the epoch."""
    return time.time()


def to_iso(epoch_s: float) -> str:
    """Write seconds since the epoch as ISO 8601 in UTC, such as ``2026-01-31T12:00:00.000Z``."""
    stamp = datetime.fromtimestamp(epoch_s, tz=UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


_ISO = re.compile(
    r"(?P<date>\d{4}(?P<separator>[-/.])\d\d?(?P=separator)\d\d?"
    r"|\d{8}|\d{4}-W\d\d(?:-\d)?|\d{4}W\d\d\d?|\d{4}-\d{3})"
    r"(?:[Tt ](?P<time>(?:\d\d|\d(?=:))(?::?[0-5]\d(?::?(?:[0-5]\d|60)(?:[.,]\d+)?)?)?)"
    r" ?(?P<zone>[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_LEAP = re.compile(r"(\d\d:?\d\d:?)60([.,]\d+)?")
_ORDERS = {
    6: ("%y%m%d", "%d%m%y", "%m%d%y", "%Y%m"),
    8: ("%Y%m%d", "%d%m%Y", "%m%d%Y"),
    10: ("%Y%m%d%H",),
    12: ("%Y%m%d%H%M",),
    14: ("%Y%m%d%H%M%S",),
}
"""Orders in which digits without separators may be a date, by their number."""

_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}\b.*", re.ASCII | re.DOTALL)
_ZONE = re.compile(r"(.*\d) ?(?!AM|PM)[A-Z]{2,}(?:/\w+)?", re.ASCII | re.DOTALL | re.IGNORECASE)


def from_iso(text: str) -> float:
    """Read an ISO 8601 time, of the calendar, a week or a year's day; one without an offset is taken as UTC.

    As RFC 3339 allows, a space may stand for the T, z for Z, and a leap second counts as the next one. Other
    dates that begin with the year are read too, such as ``2026/2/1 9:05``: their order is known.

    Raises:
        InvalidMessage: the text is not a time, or may be read in two ways.
    """
    match = _ISO.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        date = match["date"]
        if match["separator"]:
            date = "-".join(part.zfill(2) for part in date.split(match["separator"]))
        time = match["time"] or "00"
        return _iso_s(date, time if time[1:2] != ":" else f"0{time}", match["zone"] or "")
    except ValueError:
        raise InvalidMessage(
            f"not an ISO 8601 time: {text[:40]!r}{_hint(text)} (one is 2026-01-31T12:00)"
        ) from None


def has_offset(text: str) -> bool:
    """Return whether an ISO 8601 time says its offset from UTC."""
    match = _ISO.fullmatch(text)
    return bool(match and match["zone"])


def has_date_digits(text: str) -> bool:
    """Return whether digits without separators may be a date of the years 1900 to 2099, in some order."""
    if not (text.isascii() and text.isdecimal()):
        return False
    return any(_is_date(text, order) for order in _ORDERS.get(len(text), ()))


def _is_date(digits: str, order: str) -> bool:
    try:
        return _FIRST_YEAR <= datetime.strptime(digits, order).replace(tzinfo=UTC).year < _LAST_YEAR
    except ValueError:
        return False


def _iso_s(date: str, time: str, zone: str) -> float:
    """Return the seconds of the parts of a time; what Python's own reader lacks is taken out before it."""
    added_s = 0.0
    if len(date) == 8 and date[4] == "-" and date[5] != "W":  # a year and its day
        added_s += (int(date[5:]) - 1) * DAY_S
        if not 0 <= added_s < (366 if isleap(int(date[:4])) else 365) * DAY_S:
            raise ValueError
        date = f"{date[:4]}-01-01"
    if time.startswith("24") and not time[2:].strip("0:.,"):
        added_s += DAY_S
        time = f"00{time[2:]}"
    if leap := _LEAP.fullmatch(time):
        added_s += 1
        time = f"{leap[1]}59{leap[2] or ''}"
    zone = zone if zone[:1] in ("+", "-") else "+00:00"
    return datetime.fromisoformat(f"{date}T{time}{zone}").timestamp() + added_s


def _hint(text: str) -> str:
    if text.isdecimal():
        return ": digits alone may be a date or a number" if has_date_digits(text) else ""
    if _DATE.fullmatch(text) and not re.match(r"\d{4}", text):
        return ": day, month and year may be meant in another order"
    zoned = _ZONE.fullmatch(text)
    has_zone = bool(zoned and _ISO.fullmatch(zoned[1]))
    return ": its time zone should be an offset such as +01:00" if has_zone else ""
