"""Times of access logs: those of servers, ISO 8601, and seconds or their parts since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model.clock import from_iso, has_date_digits, has_offset
from pipeline.model.errors import InvalidMessage

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
_ZONE = r"(?: ?(?P<zone>[+-]\d\d:?\d\d|UTC|GMT|Z))?"
_SERVER_TIMES = tuple(
    re.compile(rf"{date}{_CLOCK}{_ZONE}", re.ASCII)
    for date in (
        r"(?P<day>\d\d)/(?P<name>[A-Z][a-z]{2})/(?P<year>\d{4})[: ]",  # Apache, nginx, HAProxy, Django
        r"(?P<year>\d{4})/(?P<month>\d\d)/(?P<day>\d\d) - ",  # gin
        r"(?:[A-Z][a-z]{2}, )?(?P<day>\d\d) (?P<name>[A-Z][a-z]{2}) (?P<year>\d{4}) ",  # HTTP
    )
)
_MILLISECONDS = 1e11
"""A number from here on (the year 5138 in seconds) is in a unit a thousand times smaller."""


def log_time(text: str, zone: tzinfo = UTC) -> tuple[float, bool]:
    """Return a time in seconds since the epoch, and whether the text says from where they count.

    Args:
        text: As the server wrote it.
        zone: Time zone of a time without an offset.

    Raises:
        ValueError: it is none, may be another one, or is not between 2000 and 2100; or clocks in ``zone``
            were put forward over it, or back and showed it twice.
    """
    for pattern in _SERVER_TIMES:
        if match := pattern.fullmatch(text):
            seconds, is_complete = _server_time(match), bool(match["zone"])
            break
    else:
        seconds, is_complete = _plain(text)
    if not EARLIEST_S <= seconds < LATEST_S:
        raise ValueError(f"{text[:50]!r} is not between 2000 and 2100")
    return seconds if is_complete or zone is UTC else _in_zone(seconds, zone, text), is_complete


def _in_zone(seconds: float, zone: tzinfo, text: str) -> float:
    """Return the seconds of what clocks in a zone show when those in UTC show the same ``seconds``."""
    shown = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=zone)
    first, second = (shown.replace(fold=fold).timestamp() for fold in (0, 1))
    if first != second:
        raise ValueError(f"{text[:50]!r}: clocks in {zone} showed it twice, or never")
    return first


def _server_time(match: re.Match[str]) -> float:
    parts = match.groupdict()
    month = _MONTHS.get(parts["name"], 0) if parts.get("name") else int(parts["month"])
    date = (int(parts["year"]), month, int(parts["day"]))
    hour, minute, second = (int(parts[name]) for name in ("hour", "minute", "second"))
    start = datetime(*date, hour, minute, min(second, 59), tzinfo=UTC)
    offset = timedelta()
    if (zone := parts["zone"]) and zone[0] in "+-":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])) * (-1 if zone[0] == "-" else 1)
    is_leap = second == 60
    if second > 60:
        raise ValueError(f"{second} is no second of a minute")
    return (start - offset).timestamp() + is_leap + float(f"0.{parts['fraction'] or 0}")


def _plain(text: str) -> tuple[float, bool]:
    is_date = has_date_digits(text)
    try:
        if is_date:
            raise ValueError
        seconds = float(text)
    except ValueError:
        try:
            return from_iso(text), has_offset(text)
        except InvalidMessage as error:
            raise ValueError(str(error)) from None
    while _MILLISECONDS <= seconds < _MILLISECONDS * 1e9:
        seconds /= 1000
    return seconds, True
