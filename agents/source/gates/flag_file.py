"""A file of flags that is watched: each difference to what it held before is a flip."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import orjson

from agents.source.gates.flag_set import MAX_BYTES, FlagSet, differences, read_flag_set
from agents.source.gates.flips import Flip
from pipeline.files.outputs import write_output
from pipeline.messages.fields import parse_object
from pipeline.model.clock import Clock
from pipeline.model.errors import BrokerUnavailable, ConfigError, InvalidMessage, file_errors

log = logging.getLogger(__name__)

MAX_STATE_BYTES = 16 * MAX_BYTES
"""Largest state file: a rule that flags share stands with each of them there."""


class FlagFile:
    """A flag file, its last known flags, and where they are remembered.

    ``pattern`` chooses gates by their names; ``state`` may be None, then a new process begins anew.
    """

    def __init__(self, path: Path, state: Path | None, *, service: str, pattern: str, clock: Clock) -> None:
        self._path = path
        self._state = state
        self._service = service
        self._pattern = pattern
        self._clock = clock

    def remembered(self) -> FlagSet | None:
        """Return the flags as they were last; None if nothing is remembered.

        Raises:
            ConfigError: the state file is not one, or another service's.
        """
        if self._state is None or not self._state.exists():
            return None
        content = _content(self._state, MAX_STATE_BYTES)
        if len(content) > MAX_STATE_BYTES:
            raise ConfigError(f"--state: {self._state}: larger than {MAX_STATE_BYTES} bytes")
        try:
            raw = parse_object(content)
            service, flags = raw["service"], {gate: dict(flag) for gate, flag in raw["flags"].items()}
        except (InvalidMessage, AttributeError, KeyError, TypeError, ValueError):
            raise ConfigError(f"--state: {self._state}: not a state file") from None
        if service != self._service:
            raise ConfigError(f"--state: {self._state}: belongs to service {str(service)[:200]!r}")
        return flags

    def remember(self, flags: FlagSet) -> None:
        """Replace what is remembered, whole or not at all."""
        if self._state is None:
            return
        content = orjson.dumps({"service": self._service, "flags": flags})
        if len(content) > MAX_STATE_BYTES:
            raise ConfigError(f"--state: {self._state}: would be larger than {MAX_STATE_BYTES} bytes")
        write_output(self._state, content, durable=True)

    def read(self) -> FlagSet:
        """Return the flags as they are.

        Raises:
            ConfigError: there is no such file, or it holds no flags.
        """
        return read_flags(self._path)

    def flips(self, before: FlagSet, after: FlagSet) -> list[Flip]:
        """Return the flips, with the time when the file was written."""
        with file_errors(self._path):
            time = min(self._path.stat().st_mtime, self._clock())
        return flips_between(before, after, time=time, pattern=self._pattern)


def read_flags(path: Path) -> FlagSet:
    """Read a file of flags.

    Raises:
        ConfigError: there is no such file, or it holds no flags.
    """
    try:
        return read_flag_set(_content(path, MAX_BYTES))
    except InvalidMessage as error:
        raise ConfigError(f"{path}: {error}") from None


def _content(path: Path, limit: int) -> bytes:
    """Read a file, of a larger one only a byte more than ``limit``: a device has no end."""
    with file_errors(path), path.open("rb") as file:
        return file.read(limit + 1)


def flips_between(before: FlagSet, after: FlagSet, *, time: float, pattern: str = "*") -> list[Flip]:
    """Return the flips that turn one set of flags into another, by name."""
    return [
        Flip(gate, time, old, new)
        for gate, old, new in differences(before, after)
        if fnmatchcase(gate, pattern)
    ]


def watch(
    file: FlagFile,
    publish: Callable[[Sequence[Flip]], None],
    *,
    interval_s: float,
    stop: threading.Event,
) -> None:
    """Publish flips, and check the file again every ``interval_s`` seconds until ``stop`` is set.

    Without anything remembered it begins with what comes after now. What is published is remembered after it
    was confirmed, so that a crash in between publishes a flip twice, with the same id. A file that cannot be
    read, since it is being written, is looked at again.

    Raises:
        ConfigError: the state is wrong, or at the first look the file.
    """
    previous = file.remembered()
    if previous is None:
        previous = file.read()
        file.remember(previous)
    while True:
        try:
            now = file.read()
            if flips := file.flips(previous, now):
                publish(flips)
        except (ConfigError, BrokerUnavailable) as error:
            log.warning("%s; trying again in %g s", error, interval_s)
        else:
            if now != previous:
                previous = now
                file.remember(previous)
        if stop.wait(interval_s):
            return
