"""Flags of the agent's commands, and how their texts become values."""

from __future__ import annotations

import re

from pipeline.commands.options import settings_options
from pipeline.commands.request import option
from pipeline.files.values import address_of, duration_s_of, service_name
from pipeline.messages.fields import MAX_NAME

_HOST = re.compile(r"\S{1,400}")


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


service_option = option(parse=service_name, help="Service that the samples belong to.")
host_option = option(parse=_host, help="Host (default: this machine's name).")
metrics_option = option(
    parse=address_of,
    metavar="HOST:PORT",
    help="Address of GET /metrics, for Prometheus, and /healthz; port 0 takes a free one.",
)
release_option = option("", parse=_text, help="Release that runs, such as a version or commit.")
labels_option = option(
    flag="--label",
    multiple=True,
    parse=_labels,
    metavar="KEY=VALUE",
    help="Label of the host.",
)
roots_option = option(
    flag="--source-root",
    metavar="DIR",
    help="Folder in the repository that modules are named from (default: the folder above the "
    "outermost package).",
)
agent_settings = settings_options("broker", "topics", "idempotent_producer", "log_level")
