"""The state file of a bisection: its task, then a line for each build and each measurement."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import orjson

from pipeline.model.errors import ConfigError, file_errors

FORMAT = 1


@dataclass(frozen=True, slots=True)
class BisectionTask:
    """The task of a bisection; a state file belongs to one task."""

    first: str  # id of the version before the range
    last: str
    build: str
    run: str
    reads: str


@dataclass(slots=True)
class Journal:
    """Builds and measurements in order, kept in a file if there is one, so that another call can go on.

    Each line has ``commit``, one of ``built``, ``value`` and ``skipped``, and its duration in ``seconds``.
    """

    path: Path | None
    task: BisectionTask
    lines: list[dict[str, Any]] = field(default_factory=list)
    _file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Open the file and read its lines.

        Raises:
            ConfigError: it cannot be read or written, is of another task, or in use.
        """
        if self.path is None:
            return self
        with file_errors(self.path):
            self._file = self.path.open("a+b")
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(f"--state: {self.path}: another bisection uses it") from None
            self._file.seek(0)
            content = self._file.read()
            whole = content.rfind(b"\n") + 1  # the last line may be incomplete, if its writer was killed
            self._file.truncate(whole)
        header = {"bisection": FORMAT, **asdict(self.task)}
        entries = list(self._parsed(content[:whole]))
        if not entries:
            self._write(header)
        elif entries[0] != header:
            differs = [name for name in header if entries[0].get(name) != header[name]]
            raise ConfigError(f"--state: {self.path}: is of another bisection; {', '.join(differs)} differ")
        self.lines = entries[1:]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._file:
            self._file.close()

    def append(self, line: Mapping[str, Any]) -> None:
        """Add a line and write it to the file at once."""
        self.lines.append(dict(line))
        self._write(line)

    def of(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """Return the lines of a kind: built, value or skipped."""
        return [line for line in self.lines if kind in line]

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file and self.path:
            with file_errors(self.path):
                self._file.write(orjson.dumps(line) + b"\n")
                self._file.flush()

    def _parsed(self, content: bytes) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(content.splitlines(), 1):
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError:
                entry = None
            if not isinstance(entry, dict) or (number > 1 and not _is_entry(entry)):
                raise ConfigError(f"--state: {self.path}: line {number}: is not of a bisection")
            yield entry


def _is_entry(line: Mapping[str, Any]) -> bool:
    kinds = {"built": bool, "value": float | int, "skipped": str}
    seconds = isinstance(line.get("seconds"), float | int)
    members = [name for name, kind in kinds.items() if name in line and isinstance(line[name], kind)]
    return isinstance(line.get("commit"), str) and seconds and len(members) == 1
