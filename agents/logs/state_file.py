"""State file of a followed log: position, open periods and messages on their way, written together."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import Field

from agents.logs.open_log import Position
from agents.logs.tally_state import TallyState, TypesState
from pipeline.files.outputs import write_output
from pipeline.files.validation import StrictModel, validate
from pipeline.model import Outgoing
from pipeline.model.errors import ConfigError, file_errors

MAX_STATE_BYTES = 256 * 1024**2

_Text = Annotated[str, Field(strict=True)]


class PendingMessage(StrictModel):
    """A message that the broker may not have; its value is JSON."""

    topic: Literal["requests", "metrics"]
    key: _Text
    value: _Text


class FollowState(StrictModel):
    """State from which a follower can go on. ``position`` is None while there is no file."""

    format: Literal[1] = 1
    service: _Text
    log: _Text  # its path
    period_s: float
    position: Position | None
    tally: TallyState
    types: TypesState
    outbox: tuple[PendingMessage, ...]


class StateFile:
    """The file in which the state of one follower is kept."""

    def __init__(self, path: Path, *, service: str, log: Path, period_s: float) -> None:
        self._path = path
        self._service = service
        self._log = os.fsencode(log.absolute()).decode(errors="backslashreplace")
        self._period_s = period_s

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the file against other agents, by a lock file beside it, since the file itself is replaced.

        Raises:
            ConfigError: another agent has it, or its folder cannot be written to.
        """
        path = self._path.with_name(f"{self._path.name}.lock")
        with file_errors(f"--state: {path}"), path.open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(f"--state: {self._path}: another agent has it") from None
            yield

    def read(self) -> FollowState | None:
        """Return the state that was written last, None if there is none.

        Raises:
            ConfigError: it cannot be read, is no state, or is of another log, service or period.
        """
        with file_errors(f"--state: {self._path}"):
            try:
                with self._path.open("rb") as file:
                    content = file.read(MAX_STATE_BYTES + 1)
            except FileNotFoundError:
                return None
        if len(content) > MAX_STATE_BYTES:
            raise ConfigError(f"--state: {self._path}: larger than {MAX_STATE_BYTES} bytes")
        try:
            raw = orjson.loads(content)
        except orjson.JSONDecodeError:
            raise ConfigError(f"--state: {self._path}: not a state file") from None
        state = validate(FollowState, raw, f"--state: {self._path}: not a state file")
        for name, here in (("service", self._service), ("log", self._log), ("period_s", self._period_s)):
            if (there := getattr(state, name)) != here:
                raise ConfigError(f"--state: {self._path}: is of {name} {there!r}, not {here!r}")
        return state

    def write(
        self,
        position: Position | None,
        tally: TallyState,
        types: TypesState,
        outbox: list[Outgoing],
    ) -> None:
        """Replace the state, whole or not at all, and wait until it is on the disk.

        Raises:
            ConfigError: it cannot be written; then it is as it was.
        """
        state = FollowState(
            service=self._service,
            log=self._log,
            period_s=self._period_s,
            position=position,
            tally=tally,
            types=types,
            outbox=tuple(PendingMessage(topic=m.topic, key=m.key, value=m.value.decode()) for m in outbox),  # type: ignore[arg-type]
        )
        with file_errors("--state"):
            write_output(self._path, state.model_dump_json().encode(), durable=True)
