"""Options that set Settings, and the log that settings describe."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click

from pipeline.commands.request import Decorator, Part
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


def _flag(key: str) -> Decorator:
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


_TOGETHER = {"topics": ("topics", "topic_prefix")}
"""Setting → the settings that belong to it."""


_WHERE = frozenset({"broker", "store"})
"""Settings that have substitutes on this machine."""


def settings_options(*names: str) -> Any:
    """Return a parameter of type Settings: ``--config`` and the flags of the named settings."""
    names = tuple(flag for name in names for flag in _TOGETHER.get(name, (name,)))
    about = "Settings file (default: smidgen.yaml if there)."
    config = click.option("--config", type=click.Path(path_type=Path), help=about)
    return Part([config, *map(_flag, names)], partial(_take_settings, names))


def _take_settings(names: tuple[str, ...], given: dict[str, Any]) -> Settings:
    """Load the settings, configure the log by them, and note on stderr what is assumed."""
    replaced = _WHERE.intersection(names)
    flags = {name: given.pop(name) for name in names}
    settings = load_settings(flags, file=given.pop("config"), local=bool(replaced))
    configure_logging(settings)
    for variable, meant in strange_variables().items():
        click.echo(f"smidgen: {variable} is no setting: did you mean {meant}?", err=True)
    if settings.local:
        substitutes = " and ".join(f"--{name}" for name in sorted(replaced))
        click.echo(f"smidgen: on what smidgen up runs here ({substitutes} for another)", err=True)
    return settings


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
