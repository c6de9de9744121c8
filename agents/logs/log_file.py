"""Log files, read to their end; compressed ones too."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from agents.profiles.profile_source import STDIN, shown_progress
from pipeline.model.errors import ConfigError, file_errors

CHUNK_BYTES = 2**20
MAX_LINE_BYTES = 2**16
"""Longest line; a longer one is cut: its beginning can be read, and memory stays bounded."""

_GZIP = b"\x1f\x8b"


def read_log(path: Path) -> Iterator[list[str]]:
    """Yield the lines of a log, many at a time; ``-`` is standard input, and gzip is decompressed.

    Raises:
        ConfigError: it cannot be read, or is damaged.
    """
    if str(path) == STDIN:
        with file_errors("standard input"):
            yield from _chunks(decompressed(sys.stdin.buffer))
        return
    with file_errors(path), path.open("rb") as stream, shown_progress(stream, str(path)) as advance:
        read = 0
        try:
            for lines in _chunks(decompressed(stream)):
                yield lines
                advance(stream.seek(0, os.SEEK_CUR) - read)
                read = stream.seek(0, os.SEEK_CUR)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ConfigError(f"{path}: damaged: {error}") from None


def decompressed(stream: BinaryIO) -> io.BufferedReader | gzip.GzipFile:
    """Return a stream of the content, decompressed if its first bytes are those of gzip."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    is_packed = buffered.peek(2)[:2] == _GZIP
    return gzip.GzipFile(fileobj=buffered) if is_packed else buffered  # type: ignore[return-value]


def _chunks(stream: io.BufferedReader | gzip.GzipFile) -> Iterator[list[str]]:
    """Yield whole lines, about a megabyte at a time."""
    rest = b""
    while data := stream.read(CHUNK_BYTES):
        data, _, rest = (rest + data).rpartition(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            rest = rest[:MAX_LINE_BYTES]
        if data:
            yield lines_of(data)
    if rest:
        yield lines_of(rest)


def lines_of(data: bytes) -> list[str]:
    """Return lines as texts; only a line feed ends one."""
    data = data.removeprefix(codecs.BOM_UTF8)
    return data.decode("utf-8", errors="replace").replace("\r\n", "\n").split("\n") if data else []
