"""One file of a log, open: its lines, and the position up to which they were read."""

from __future__ import annotations

import gzip
import logging
import os
import stat
import zlib
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Self

import xxhash
from pydantic import Field

from agents.logs.log_file import CHUNK_BYTES, MAX_LINE_BYTES, decompressed, lines_of
from pipeline.files.validation import StrictModel
from pipeline.model.errors import ConfigError, file_errors

log = logging.getLogger(__name__)

FINGERPRINT_BYTES = 1024
"""Bytes at the beginning of a file, and before a position, that identify the file."""

_DAMAGES = (EOFError, zlib.error, gzip.BadGzipFile)

_Number = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
_Identity = Annotated[int, Field(ge=0, lt=2**64, strict=True)]
_Text = Annotated[str, Field(strict=True, max_length=64)]


class Position(StrictModel):
    """Position in a file: ``offset`` bytes were read, of the content if the file is compressed.

    ``head`` is a hash of the file's first bytes, ``tail`` of the last ones before the offset. A file of
    which nothing was read is identified by device and inode alone.
    """

    device: _Identity
    inode: _Identity
    offset: _Number
    head: _Text
    tail: _Text


class OpenLog:
    """A file of a log, read from its beginning unless ``go_to`` says otherwise. ``read`` never waits."""

    def __init__(self, file: BufferedReader, stream: BufferedReader | gzip.GzipFile) -> None:
        self.name = Path(file.name).name
        status = os.fstat(file.fileno())
        self.identity = (status.st_dev, status.st_ino)
        self._file = file
        self._stream = stream
        self._head = b""  # the first FINGERPRINT_BYTES of the returned bytes
        self._tail = b""  # the last FINGERPRINT_BYTES of the returned bytes
        self._rest = b""  # the first MAX_LINE_BYTES of an incomplete line
        self._rest_bytes = 0  # length of the incomplete line
        self._behind = b""  # last FINGERPRINT_BYTES of the incomplete line
        self.is_damaged: bool  # the rest cannot be read
        self._begin_at(0, b"", b"")

    @classmethod
    def open(cls, path: Path, *, is_rotated: bool = False) -> Self | None:
        """Open a file; None if there is none. A rotated one may be compressed.

        Raises:
            ConfigError: it is there and cannot be read.
        """
        with file_errors(path):
            try:
                if not stat.S_ISREG(path.stat().st_mode):
                    raise ConfigError(f"{path}: is no file")
                file = path.open("rb")
            except FileNotFoundError:
                return None
            return cls(file, decompressed(file) if is_rotated else file)

    @property
    def position(self) -> Position:
        """Position of the first line that was not returned yet."""
        return Position(
            device=self.identity[0],
            inode=self.identity[1],
            offset=self._offset,
            head=xxhash.xxh3_128_hexdigest(self._head),
            tail=xxhash.xxh3_128_hexdigest(self._tail),
        )

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def is_truncated(self) -> bool:
        """True if the file no longer holds the bytes that were read, even if it is as long again."""
        if self._stream is not self._file:
            return False  # nothing is written to a compressed file
        last = (self._tail + self._behind)[-FINGERPRINT_BYTES:]
        position = self._stream.seek(0, os.SEEK_CUR)
        return os.pread(self._file.fileno(), len(last), position - len(last)) != last

    def go_to(self, position: Position) -> bool:
        """Go to a position; return False, and go to the beginning, if it is not of this file."""
        try:
            if self._goes_on_at(position):
                return True
        except _DAMAGES:
            log.debug("%s: damaged", self.name)
        self._stream.seek(0)
        self._begin_at(0, b"", b"")
        return False

    def go_to_end(self) -> None:
        """Read on from the end."""
        size = self._stream.seek(0, os.SEEK_END)
        self._begin_at(size, *self._around(size))

    def head(self) -> list[str]:
        """Return the first lines, which show the format; none if the file is damaged there."""
        before = self._stream.seek(0, os.SEEK_CUR)
        self._stream.seek(0)
        try:
            return lines_of(self._stream.read(CHUNK_BYTES).rpartition(b"\n")[0])
        except _DAMAGES:
            return []
        finally:
            self._stream.seek(before)

    def read(self) -> list[str]:
        """Return lines, about a megabyte at most, but for an incomplete last one."""
        content = self._next_bytes()
        self.is_at_end = len(content) < CHUNK_BYTES
        whole, end, rest = content.rpartition(b"\n")
        data = self._rest + whole
        if end:
            self._pass(data, self._behind + whole + end, self._rest_bytes + len(whole) + 1)
        self._rest = (self._rest + rest)[:MAX_LINE_BYTES]
        self._rest_bytes += len(rest)
        self._behind = (self._behind + rest)[-FINGERPRINT_BYTES:]
        return lines_of(data) if end else []

    def finish(self) -> list[str]:
        """Return the incomplete last line, when nothing more is written to this file."""
        rest = self._rest
        if rest:
            self._pass(rest, self._behind, self._rest_bytes)
        return lines_of(rest)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _next_bytes(self) -> bytes:
        """Return about a megabyte; in a damaged file, the bytes before the damage."""
        parts: list[bytes] = []
        missing = 0 if self.is_damaged else CHUNK_BYTES
        try:
            # A single ``read`` would lose the bytes that were decompressed before the damage.
            while missing and (part := self._stream.read1(missing)):
                parts.append(part)
                missing -= len(part)
        except _DAMAGES:
            self.is_damaged = True
        return b"".join(parts)

    def _pass(self, data: bytes, behind: bytes, size: int) -> None:
        """Note that ``size`` bytes more were returned, which begin like ``data`` and end like ``behind``."""
        if len(self._head) < FINGERPRINT_BYTES:
            missing = FINGERPRINT_BYTES - len(self._head)
            self._head += (data + b"\n")[: min(missing, size)]
        self._tail = (self._tail + behind)[-FINGERPRINT_BYTES:]
        self._offset += size
        self._rest, self._rest_bytes, self._behind = b"", 0, b""

    def _begin_at(self, offset: int, head: bytes, tail: bytes) -> None:
        self._offset, self._head, self._tail = offset, head, tail
        self._rest, self._rest_bytes, self._behind = b"", 0, b""
        self.is_at_end = False
        self.is_damaged = False

    def _goes_on_at(self, position: Position) -> bool:
        if not position.offset:
            return self.identity == (position.device, position.inode)
        self._stream.seek(0)
        head = self._stream.read(min(position.offset, FINGERPRINT_BYTES))
        if xxhash.xxh3_128_hexdigest(head) != position.head:
            return False
        head, tail = self._around(position.offset)
        if xxhash.xxh3_128_hexdigest(tail) != position.tail:
            return False
        self._begin_at(position.offset, head, tail)
        return True

    def _around(self, offset: int) -> tuple[bytes, bytes]:
        """Return the first bytes of the file and those before an offset, and seek to the offset."""
        wanted = min(offset, FINGERPRINT_BYTES)
        self._stream.seek(0)
        head = self._stream.read(wanted)
        self._stream.seek(offset - wanted)
        return head, self._stream.read(wanted)
