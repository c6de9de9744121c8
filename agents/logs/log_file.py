"""Log files: read to their end, compressed ones too, or followed through rotation."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from agents.profile_source import STDIN, shown_progress
from pipeline.errors import ConfigError, file_errors

CHUNK_BYTES = 2**20
MAX_LINE_BYTES = 2**16
"""A line is cut here: it can be read from its beginning, and none is kept that never ends."""

_GZIP = b"\x1f\x8b"


def read_log(path: Path) -> Iterator[list[str]]:
    """Yield the lines of a log, many at a time; ``-`` is standard input, and gzip is decompressed.

    Raises:
        ConfigError: it cannot be read, or is damaged.
    """
    if str(path) == STDIN:
        with file_errors("standard input"):
            yield from _chunks(_decompressed(sys.stdin.buffer))
        return
    with file_errors(path), path.open("rb") as stream, shown_progress(stream, str(path)) as advance:
        read = 0
        try:
            for lines in _chunks(_decompressed(stream)):
                yield lines
                advance(stream.seek(0, os.SEEK_CUR) - read)
                read = stream.seek(0, os.SEEK_CUR)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ConfigError(f"{path}: damaged: {error}") from None


class FollowedLog:
    """A log that is written: what comes after now, through rotation by renaming or by truncation.

    It need not exist yet. ``read`` never waits.
    """

    def __init__(self, path: Path, *, from_start: bool = False) -> None:
        self._path = path
        self._stream: BinaryIO | None = None
        self._rest = b""
        self._open()
        if self._stream and not from_start:
            self._stream.seek(0, os.SEEK_END)

    def head(self) -> list[str]:
        """Return the first lines of the file, which say what it is like; empty if it is not there yet."""
        if self._stream is None:
            return []
        position = self._stream.seek(0, os.SEEK_CUR)
        self._stream.seek(0)
        lines = _lines(self._stream.read(CHUNK_BYTES).rpartition(b"\n")[0])
        self._stream.seek(position)
        return lines

    def read(self) -> list[str]:
        """Return the lines that were written since the last call; one that has no end yet is kept back.

        Raises:
            ConfigError: the file is there and cannot be read.
        """
        with file_errors(self._path):
            if self._stream is None:
                self._open()
            if self._stream is None:
                return []
            if os.fstat(self._stream.fileno()).st_size < self._stream.seek(0, os.SEEK_CUR):
                self._rest = b""
                self._stream.seek(0)  # it was copied and truncated
            data = self._rest + self._stream.read(CHUNK_BYTES)
            if len(data) == len(self._rest) and self._is_replaced():
                self._stream.close()
                self._open()
                return _lines(data)  # the last one, if it has no end
        data, _, self._rest = data.rpartition(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest = self._rest[:MAX_LINE_BYTES]
        return _lines(data)

    def close(self) -> None:
        """Close the file."""
        if self._stream:
            self._stream.close()

    def _open(self) -> None:
        self._rest = b""
        with file_errors(self._path):
            try:
                self._stream = self._path.open("rb")
            except FileNotFoundError:
                self._stream = None

    def _is_replaced(self) -> bool:
        """Return whether the path leads to another file; while it leads to none, the old one is kept."""
        assert self._stream is not None
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        mine = os.fstat(self._stream.fileno())
        return (there.st_ino, there.st_dev) != (mine.st_ino, mine.st_dev)


def _decompressed(stream: BinaryIO) -> BinaryIO:
    """Return what a stream holds, by its first bytes."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    is_packed = buffered.peek(2)[:2] == _GZIP
    return gzip.GzipFile(fileobj=buffered) if is_packed else buffered  # type: ignore[return-value]


def _chunks(stream: BinaryIO) -> Iterator[list[str]]:
    """Yield whole lines, about a megabyte at a time."""
    rest = b""
    while data := stream.read(CHUNK_BYTES):
        data, _, rest = (rest + data).rpartition(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            rest = rest[:MAX_LINE_BYTES]
        if data:
            yield _lines(data)
    if rest:
        yield _lines(rest)


def _lines(data: bytes) -> list[str]:
    """Return lines as texts; only a line feed ends one."""
    data = data.removeprefix(codecs.BOM_UTF8)
    return data.decode("utf-8", errors="replace").replace("\r\n", "\n").split("\n") if data else []


def first_line(lines: Sequence[str]) -> str:
    """Return the first line that is not empty."""
    return next((line for line in lines if line.strip()), "")
