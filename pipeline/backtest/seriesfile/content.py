"""Bytes of a file or of standard input, unpacked, and their text."""

from __future__ import annotations

import codecs
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from pipeline.files.unpacking import UnpackError, gunzip
from pipeline.model.errors import ConfigError, file_errors

STDIN = Path("-")
"""The path that stands for standard input."""

_MOST_BYTES = 4 * 1024**3
_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # as Excel writes Unicode text


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds; ``name`` is how errors name it."""

    name: str
    data: bytes

    @property
    def stem(self) -> str:
        """The name of the file without its folder and endings."""
        last = Path(self.name).name
        return last.split(".")[0] or last

    def text(self) -> str:
        """Return UTF-8 text, or UTF-16 that begins with its mark.

        Raises:
            ConfigError: it is neither; the text has the line.
        """
        try:
            if self.data.startswith(_UTF16):
                return self.data.decode("utf-16")
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            if error.encoding.startswith("utf-16"):
                what = f"not UTF-16 text, as its first bytes say: {error.reason}"
                raise ConfigError(f"{self.name}: {what}") from None
            line = self.data[: error.start].count(b"\n") + 1
            raise ConfigError(f"{self.name}:{line}: not UTF-8 text") from None
        if "\0" in text:
            line = text[: text.index("\0")].count("\n") + 1
            raise ConfigError(f"{self.name}:{line}: not UTF-8 text: holds a NUL character")
        return text


def read_content(path: Path) -> Content:
    """Read a file, or standard input where ``path`` is ``-``; what gzip has packed is unpacked.

    Raises:
        ConfigError: it cannot be read, is a directory, is damaged, or is larger than 4 GiB unpacked.
    """
    if path == STDIN:
        return Content("stdin", _unpacked("stdin", _stdin()))
    with file_errors(path):
        if stat.S_ISDIR(path.stat().st_mode):
            raise ConfigError(f"{path}: is a directory, no series file")
        data = path.read_bytes()
    return Content(str(path), _unpacked(str(path), data))


def _stdin() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise ConfigError("stdin: closed")
    with file_errors("stdin"):
        return sys.stdin.buffer.read()


def _unpacked(name: str, data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        return gunzip(data, _MOST_BYTES)
    except UnpackError as error:
        raise ConfigError(f"{name}: {error}") from None
