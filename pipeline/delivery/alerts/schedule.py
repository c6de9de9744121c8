"""Times of messages to a target: quiet hours, digests and limits, by the clock of a time zone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, Self, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, Field, model_validator

from pipeline.files.validation import StrictModel
from pipeline.model.units import HOUR_S
from pipeline.settings.config import Seconds

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)

_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)")
_MOST_SPANS = 20  # consecutive quiet hours; with more of them there is no end


def parse_clock(value: object) -> int:
    """Read ``22:00`` as minutes of the day; ``24:00`` is its end.

    Raises:
        ValueError: it is no time of a day. YAML reads 22:00 without quotes as the number 1320, which it is.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 24 * 60:
        return value
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if not match or (minutes := int(match[1]) * 60 + int(match[2])) > 24 * 60:
        raise ValueError(f"should be a time such as 22:00, not {str(value)[:40]!r}")
    return minutes


def parse_zone(value: object) -> str:
    """Check the name of a time zone.

    Raises:
        ValueError: there is none of that name.
    """
    try:
        return ZoneInfo(str(value)).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"no time zone {str(value)[:60]!r}; one is Europe/Berlin") from None


Clock = Annotated[int, BeforeValidator(parse_clock)]
Zone = Annotated[str, BeforeValidator(parse_zone)]
Days = Annotated[tuple[Day, ...], Field(min_length=1)]


class QuietHours(StrictModel):
    """A daily span on the named days; if it ends before it begins, it ends on the next day."""

    start: Clock = Field(default=0, alias="from")
    end: Clock = Field(default=24 * 60, alias="to")
    days: Days = DAYS


class Digest(StrictModel):
    """Times of one message for all new alerts: at a time of the day, or at an interval."""

    at: Clock | None = None
    every_s: Seconds | None = Field(default=None, alias="every", ge=60)
    days: Days = DAYS

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.at is None) == (self.every_s is None):
            raise ValueError("give either at or every")
        return self


class Limit(StrictModel):
    """The most messages in a span; further ones come together in one message once there is room."""

    messages: int = Field(ge=1)
    per_s: Seconds = Field(default=HOUR_S, alias="per", gt=0)


def quiet_until(spans: Sequence[QuietHours], zone: str, now: float) -> float:
    """Return the end of the quiet hours at ``now``, directly following ones included; ``now`` outside."""
    until = now
    for _ in range(_MOST_SPANS):
        ends = [end for span in spans if (end := _end_of(span, ZoneInfo(zone), until)) is not None]
        if not ends:
            return until
        until = max(ends)
    return until


def _end_of(span: QuietHours, zone: ZoneInfo, now: float) -> float | None:
    """Return when a span ends that holds ``now``; it may have begun the day before."""
    today = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    for day in (today - timedelta(days=1), today):
        if DAYS[day.weekday()] in span.days:
            over = span.end if span.end > span.start else span.end + 24 * 60
            if _moment(day, span.start, zone) <= now < (end := _moment(day, over, zone)):
                return end
    return None


def next_digest(digest: Digest, zone: str, now: float) -> float:
    """Return when the next digest is due, after ``now``."""
    if digest.every_s is not None:
        return (now // digest.every_s + 1) * digest.every_s
    own = ZoneInfo(zone)
    today = datetime.fromtimestamp(now, own).replace(hour=0, minute=0, second=0, microsecond=0)
    days = (today + timedelta(days=number) for number in range(9))
    return next(
        moment
        for day in days
        if DAYS[day.weekday()] in digest.days and (moment := _moment(day, digest.at or 0, own)) > now
    )


def _moment(day: datetime, minutes: int, zone: ZoneInfo) -> float:
    """Return the time of a clock, in minutes after midnight of a day, also when clocks change."""
    at = day + timedelta(days=minutes // (24 * 60))
    at = at.replace(hour=minutes // 60 % 24, minute=minutes % 60, tzinfo=zone)
    return at.timestamp()


def room(limit: Limit | None, sent: Sequence[float], now: float) -> int | None:
    """Return how many messages may be sent now; None: any number. ``sent`` are former times."""
    if limit is None:
        return None
    return max(0, limit.messages - sum(at > now - limit.per_s for at in sent))
