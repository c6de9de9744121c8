"""Times of access logs: Apache's and nginx' local time, ISO 8601, seconds or milliseconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from pipeline.messages.fields import EARLIEST_S, LATEST_S

_LOCAL = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d)(?:\.\d+)? ([+-])(\d\d)(\d\d)")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_MILLISECONDS = 1e11
"""A number from here on (the year 5138 in seconds) is in a unit a thousand times smaller."""


def log_time(text: str) -> float:
    """Return a time in seconds since the epoch; one without an offset is UTC.

    Raises:
        ValueError: it is none, or not between 2000 and 2100.
    """
    match = _LOCAL.match(text)
    if match:
        day, month, year, hour, minute, second, sign, hours, minutes = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        zone = timezone(-offset if sign == "-" else offset)
        when = datetime(
            *(int(year), _MONTHS.get(month, 0), int(day), int(hour), int(minute), int(second)), tzinfo=zone
        )
        seconds = when.timestamp()
    else:
        seconds = _plain(text)
    if not EARLIEST_S <= seconds < LATEST_S:
        raise ValueError(f"{text[:50]!r} is not between 2000 and 2100")
    return seconds


def _plain(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    while _MILLISECONDS <= seconds < _MILLISECONDS * 1e9:
        seconds /= 1000
    return seconds
