"""Kinds of values that options accept beside those of click: durations, times, finite numbers."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection
from typing import Any, Literal, Self

import click

from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model.clock import from_iso, system_clock
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.model.units import parse_duration_s


class Duration(click.ParamType):
    """Seconds, written as 30s, 2m or a plain number."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the duration."""
        try:
            return parse_duration_s(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Ago(float):
    """A moment, in epoch seconds, given as a number of seconds before now."""

    def __new__(cls, before_s: float) -> Self:
        """Count back from now."""
        return super().__new__(cls, system_clock() - before_s)

    def __init__(self, before_s: float) -> None:
        self.before_s = before_s


_MOMENTS = {
    "before": "a duration such as 2d, or an ISO 8601 time",
    "after": "ISO 8601, epoch seconds between 2000 and 2100, or a duration from now such as 2h",
    None: "an ISO 8601 time, or epoch seconds, between 2000 and 2100",
}


_WITH_UNIT = re.compile(r"[0-9.]+\s*[a-z]+")


class Moment(click.ParamType):
    """Epoch seconds between 2000 and 2100: an ISO 8601 time, a number, or a duration before or after now.

    ``words`` stand for times that the command determines itself, and are returned unchanged.
    """

    name = "time"

    def __init__(self, duration: Literal["before", "after"] | None = "before", words: Collection[str] = ()):
        self._duration = duration
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Read the time."""
        if isinstance(value, float) or value in self._words:
            moment: float | str = value
            return moment
        for read in (float, from_iso):
            with contextlib.suppress(ValueError, InvalidMessage):
                if EARLIEST_S <= (seconds := read(value)) < LATEST_S:
                    return seconds
        # Without a unit a number that is no time might be either: of times to come it is refused.
        if self._duration == "before" or (self._duration == "after" and _WITH_UNIT.fullmatch(value)):
            with contextlib.suppress(ValueError):
                seconds = parse_duration_s(value)
                return Ago(seconds) if self._duration == "before" else system_clock() + seconds
        return self.fail(f"should be {_MOMENTS[self._duration]}: {value!r}", param, ctx)


class IsoTime(click.ParamType):
    """Epoch seconds of an ISO 8601 time."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the time."""
        try:
            return from_iso(value)
        except InvalidMessage as error:
            raise ConfigError(f"{param.opts[0] if param else 'time'}: {error}") from None


class FiniteRange(click.FloatRange):
    """A finite number in a range, not NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number
