"""Rotation of a log: which files hold what was written after a position."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from agents.logs.open_log import OpenLog, Position
from pipeline.errors import ConfigError

MOST_ROTATED = 100
"""Most rotated files that are looked at, those written last."""

_ROTATED = r"[-._\dTZ]*"
"""What rotation puts into a name: numbers and times."""


def resume(path: Path, position: Position) -> tuple[list[OpenLog], bool]:
    """Return the open files to read in order, and whether the one of ``position`` is among them.

    It is the log itself, or a rotated file beside it, renamed, copied or compressed; then come those that
    were written later, and the log. If none is, all of the log is new.

    Raises:
        ConfigError: the log is there and cannot be read.
    """
    live = OpenLog.open(path)
    if live and live.go_to(position):
        return [live], True
    last = [live] if live else []
    rotated = _rotated(path)
    for index, file in enumerate(rotated):
        if file.go_to(position):
            for earlier in rotated[:index]:
                earlier.close()
            return [*rotated[index:], *last], True
    for file in rotated:
        file.close()
    return last, False


def _rotated(path: Path) -> list[OpenLog]:
    """Return the rotated files of a log, open, in the order in which they were last written."""
    stem, suffix = re.escape(path.stem), re.escape(path.suffix)
    pattern = re.compile(rf"{stem}{_ROTATED}{suffix}{_ROTATED}(\.gz)?")
    names = {name for name in _names(path.parent) if name != path.name and pattern.fullmatch(name)}
    found = []
    for name in names:
        if name.removesuffix(".gz") in names - {name}:
            continue  # it is being compressed
        with contextlib.suppress(ConfigError):  # not for us to read, or no file
            if file := OpenLog.open(path.parent / name, is_rotated=True):
                found.append(file)
    found.sort(key=lambda file: file.modified_ns)
    for file in found[:-MOST_ROTATED]:
        file.close()
    return found[-MOST_ROTATED:]


def _names(folder: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.is_file():
                yield path.name
