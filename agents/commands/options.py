"""Flags of the agent's commands, and how their texts become values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from pipeline.commands.options import settings_options
from pipeline.messages.fields import EARLIEST_S, LATEST_S, MAX_NAME
from pipeline.model.clock import from_iso
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import parse_duration_s

SERVICE = re.compile(r"\w[\w.:@-]{0,199}")
_SHARE = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d{1,2})?)\s*(%?)")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})")
_HOST = re.compile(r"\S{1,400}")

_Checker = Callable[[click.Context, click.Parameter, Any], Any]


def checked_by(parse: Callable[[Any], Any]) -> _Checker:
    """Make an option's callback of a function that raises ValueError."""

    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None

    return callback


def service_name(text: str) -> str:
    """Check the name of a service."""
    if not SERVICE.fullmatch(text):
        raise ValueError(f"should be of a-z, A-Z, 0-9 and . _ - : @, at most 200, not {text[:40]!r}")
    return text


def pairs(values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Read texts LEFT=RIGHT, each part of one character at least; the last = parts them.

    Raises:
        ValueError: a text is none.
    """
    found = []
    for text in values:
        left, equals, right = text.rpartition("=")
        if not (left and equals and right and text.isprintable()):
            raise ValueError(f"should be LEFT=RIGHT, not {text[:80]!r}")
        found.append((left, right))
    return tuple(found)


def share_of(text: str) -> float:
    """Read a share such as 0.005% or 0.00005.

    Raises:
        ValueError: it is not between 0 and 1.
    """
    match = _SHARE.fullmatch(text.strip())
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share < 1:
        raise ValueError(f"should be a share such as 0.005% or 0.00005, not {text[:40]!r}")
    return share


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise ValueError("should be a name without spaces")
    return _text(text)


def _text(text: str) -> str:
    if not text.isprintable() or len(text) > MAX_NAME:  # also refuses bytes that are not UTF-8
        raise ValueError(f"should be printable text of at most {MAX_NAME} characters")
    return text


def duration_s_of(text: str) -> float:
    """Read a duration of up to an hour; a plain number is seconds."""
    seconds = parse_duration_s(float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text)
    if not 0 < seconds <= 3600:
        raise ValueError("should be more than 0 and at most 1h")
    return seconds


def sampling_interval_s(text: str) -> float:
    """Read a sampling interval; below half a second starting the sampler would cost more than it gives."""
    seconds = duration_s_of(text)
    if seconds < 0.5:
        raise ValueError("should be at least 500ms")
    return seconds


def _labels(values: tuple[str, ...]) -> dict[str, str]:
    labels = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ValueError(f"should be KEY=VALUE, not {text!r}")
        labels[_text(key)] = _text(value)
    return labels


def moment(text: str) -> float:
    """Read ISO 8601 or epoch seconds."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = from_iso(text)
        except InvalidMessage:
            raise ValueError(f"should be ISO 8601 or epoch seconds, not {text!r}") from None
    if not EARLIEST_S <= seconds < LATEST_S:
        raise ValueError(f"{text} is not a time between 2000 and 2100")
    return seconds


def address_of(text: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    found = _ADDRESS.fullmatch(text)
    if not found or int(found[2]) > 65_535:
        raise ValueError(f"should be HOST:PORT, not {text[:80]!r}")
    return found[1].strip("[]"), int(found[2])


def reader_names(readers: tuple[str, ...]) -> tuple[str, ...]:
    """Check the names of functions that read gates."""
    for reader in readers:
        if not all(part.isidentifier() for part in reader.split(".")):
            raise ValueError(f"{reader!r} should be a name such as conf.get")
    return readers


def change_time(text: str) -> float | str:
    """Read a time, or one of the words now and commit."""
    return text if text in ("now", "commit") else moment(text)


service_option = click.option(
    "--service", required=True, callback=checked_by(service_name), help="Service that the samples belong to."
)
host_option = click.option("--host", callback=checked_by(_host), help="Host (default: this machine's name).")
release_option = click.option(
    "--release",
    default="",
    callback=checked_by(_text),
    help="Release that runs, such as a version or commit.",
)
labels_option = click.option(
    "--label",
    "labels",
    multiple=True,
    callback=checked_by(_labels),
    metavar="KEY=VALUE",
    help="May be repeated.",
)
roots_option = click.option(
    "--source-root",
    "source_roots",
    multiple=True,
    metavar="DIR",
    help="Folder in the repository that modules are named from (default: the folder above the "
    "outermost package). May be repeated.",
)
agent_settings = settings_options("broker", "topics", "idempotent_producer", "log_level")
