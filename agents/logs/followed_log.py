"""A log that is being written: lines after a position, through rotation."""

from __future__ import annotations

import logging
from collections import deque
from pathlib import Path

from agents.logs.open_log import OpenLog, Position
from agents.logs.rotation import resume
from pipeline.model.errors import file_errors

log = logging.getLogger(__name__)


class FollowedLog:
    """A log that is being written: lines after now or a position, through rotation by renaming or truncation.

    It need not exist yet. ``read`` never waits.

    Args:
        path: The log.
        position: Position to go on from.
        is_new: True if the log did not exist when it was followed last, so that all of it is new.

    Raises:
        ConfigError: the file is there and cannot be read.
    """

    def __init__(self, path: Path, position: Position | None = None, *, is_new: bool = False) -> None:
        self._path = path
        self._file: OpenLog | None = None
        self._next: deque[OpenLog] = deque()
        self._is_followed = False  # replaced by a file that has lines
        if position:
            self._resume(position)
        else:
            self._file = OpenLog.open(path)
            if self._file and not is_new:
                self._file.go_to_end()

    @property
    def position(self) -> Position | None:
        """Position of the first line that was not returned yet; None while there is no file."""
        return self._file.position if self._file else None

    @property
    def is_at_end(self) -> bool:
        """True if the last call of ``read`` returned all lines."""
        return self._file is None or (self._file.is_at_end and not self._is_followed)

    def head(self) -> list[str]:
        """Return the first lines of the file, which show its format; empty if it does not exist yet.

        Raises:
            ConfigError: it cannot be read.
        """
        with file_errors(self._path):
            return self._file.head() if self._file else []

    def read(self) -> list[str]:
        """Return the lines that were written since the last call, but for an incomplete last line.

        Raises:
            ConfigError: the file is there and cannot be read.
        """
        with file_errors(self._path):
            if self._file is None:
                self._file = OpenLog.open(self._path)
            if self._file is None:
                return []
            if self._file.is_truncated:
                self._reopen()
            if self._file is None:
                return []  # truncated, then removed
            self._is_followed = bool(self._next) or self._is_replaced()
            lines = self._file.read()
            if lines or not self._file.is_at_end:
                return lines
            if self._next:
                return self._go_on()
            if self._is_followed:  # a later file existed before this one was read to its end
                lines = self._file.finish()
                self._reopen()
        return lines

    def close(self) -> None:
        """Close all files."""
        for file in (self._file, *self._next):
            if file:
                file.close()

    def _go_on(self) -> list[str]:
        """Return the incomplete last line of a rotated file, if any, and go on with the next file."""
        assert self._file is not None
        lines = self._file.finish()
        if self._file.is_damaged:
            log.warning("%s: a rotated file of it is damaged, and what follows there is lost", self._path)
        self._file.close()
        self._file = self._next.popleft()
        return lines

    def _reopen(self) -> None:
        """Find the position again after a rotation: the file was renamed, or copied and truncated."""
        assert self._file is not None
        before = self._file
        self._resume(before.position, is_read=not before.is_truncated)
        before.close()

    def _resume(self, position: Position, *, is_read: bool = False) -> None:
        """Go on at a position. ``is_read`` says that the file was read to its end."""
        files, is_found = resume(self._path, position)
        self._next = deque(files)
        self._file = self._next.popleft() if self._next else None
        if is_read:
            return
        if not is_found:
            log.warning(
                "%s: was rotated, and no file beside it has what came after byte %d of the one before: "
                "that is lost, and all that is here counts",
                self._path,
                position.offset,
            )
        elif self._file and self._file.name != self._path.name:
            log.warning("%s: was rotated: what came before is read from %s", self._path, self._file.name)

    def _is_replaced(self) -> bool:
        """Return whether another file has later lines; until then this one is followed.

        A server may write to a renamed file until it reopens its log.
        """
        assert self._file is not None
        try:
            there = self._path.stat()
        except FileNotFoundError:
            there = None
        identity = (there.st_dev, there.st_ino) if there else None
        if identity == self._file.identity:
            return False
        if there and there.st_size:
            return True
        files, _ = resume(self._path, self._file.position)
        has_later = any(file.size for file in files[1:])
        for file in files:
            file.close()
        return has_later
