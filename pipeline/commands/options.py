"""Flags that several commands share, and their conversion to Settings."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin

import click

from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model.clock import from_iso, system_clock
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import parse_duration_s
from pipeline.settings.config import (
    PREFIX,
    Settings,
    hidden,
    load_settings,
    setting_fields,
    strange_variables,
)
from pipeline.telemetry.logs import formatter

_METAVARS = {
    **{"broker": "HOST:PORT", "store": "DSN", "workloads": "NAME|FILE"},
    **{"topic_prefix": "TEXT", "group_prefix": "TEXT", "instance": "NAME"},
    **{"dead_letter_limit": "SHARE", "health": "HOST:PORT", "source_url": "URL"},
}


def _flag(key: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a setting as a flag, with the setting's type and help."""
    field, name = setting_fields()[key], key.replace("_", "-")
    about = f"{(field.description or '').rstrip('.')} ({PREFIX}{key.upper()})."
    if field.annotation is bool:
        return click.option(f"--{name}/--no-{name}", default=None, help=about)
    kind: Any = None
    if get_origin(field.annotation) is Literal:
        kind = click.Choice(get_args(field.annotation))
    elif field.annotation is Path:
        kind = click.Path(path_type=Path)
    elif field.annotation in (int, float) and not field.alias:
        kind = field.annotation
    metavar = _METAVARS.get(key, "DURATION" if field.alias else None)
    return click.option(f"--{name}", type=kind, metavar=metavar, multiple=key == "workloads", help=about)


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


class FiniteRange(click.FloatRange):
    """A finite number in a range, not NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


_TOGETHER = {"topics": ("topics", "topic_prefix")}
"""Setting → the settings that belong to it."""


_WHERE = frozenset({"broker", "store"})
"""Settings that have substitutes on this machine."""


def settings_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--config`` and the named flags to a command, which then receives ``settings: Settings``."""
    names = tuple(flag for name in names for flag in _TOGETHER.get(name, (name,)))

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(*args: Any, config: Path | None, **kwargs: Any) -> Any:
            flags = {name: kwargs.pop(name) for name in names}
            settings = load_settings(flags, file=config, local=bool(_WHERE.intersection(names)))
            configure_logging(settings)
            for variable, meant in strange_variables().items():
                click.echo(f"smidgen: {variable} is no setting: did you mean {meant}?", err=True)
            if settings.local:
                substitutes = " and ".join(f"--{name}" for name in sorted(_WHERE.intersection(names)))
                click.echo(f"smidgen: on what smidgen up runs here ({substitutes} for another)", err=True)
            return command(*args, settings=settings, **kwargs)

        decorated: Callable[..., Any] = wrapper
        for name in reversed(names):
            decorated = _flag(name)(decorated)
        return click.option(
            "--config",
            type=click.Path(path_type=Path),
            help="Settings file (default: smidgen.yaml if there).",
        )(decorated)

    return decorate


def configure_logging(settings: Settings, secrets: Iterable[str] = ()) -> None:
    """Send Smidgen's own log to stderr, without secrets; libraries log warnings and worse."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Hiding(formatter(settings.log_format), (*settings.secrets(), *secrets)))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for package in ("pipeline", "agents", "loadgen"):
        logging.getLogger(package).setLevel(settings.log_level.upper())
    logging.getLogger("aiohttp.server").addFilter(_NO_HTTP)


class _NoHttp(logging.Filter):
    """Shortens the record of requests that are not HTTP, such as those of port scanners, to one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the record."""
        error = record.exc_info[1] if record.exc_info else None
        if type(error).__module__ == "aiohttp.http_exceptions":
            record.levelno, record.levelname, record.exc_info = logging.WARNING, "WARNING", None
            reason = " ".join(str(error).split())[:_MOST_SAID]
            record.msg, record.args = "%s: %s", (record.getMessage(), reason)
        return True


_NO_HTTP = _NoHttp()
_MOST_SAID = 200  # characters of what is wrong with a request


class _Hiding(logging.Formatter):
    """Hides secrets in log lines, including tracebacks and messages of libraries."""

    def __init__(self, inner: logging.Formatter, secrets: tuple[str, ...]) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without secrets."""
        return hidden(self._inner.format(record), self._secrets)
