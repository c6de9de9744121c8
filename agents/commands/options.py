"""Flags of the agent's commands, and how their texts become values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from pipeline.commands.options import settings_options
from pipeline.files.values import duration_s_of, service_name
from pipeline.messages.fields import MAX_NAME

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


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise ValueError("should be a name without spaces")
    return _text(text)


def _text(text: str) -> str:
    if not text.isprintable() or len(text) > MAX_NAME:  # also refuses bytes that are not UTF-8
        raise ValueError(f"should be printable text of at most {MAX_NAME} characters")
    return text


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


def reader_names(readers: tuple[str, ...]) -> tuple[str, ...]:
    """Check the names of functions that read gates."""
    for reader in readers:
        if not all(part.isidentifier() for part in reader.split(".")):
            raise ValueError(f"{reader!r} should be a name such as conf.get")
    return readers


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
