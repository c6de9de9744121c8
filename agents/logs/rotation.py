"""Rotation of a log: the files with the lines after a position."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from agents.logs.open_log import OpenLog, Position
from pipeline.model.errors import ConfigError

MOST_ROTATED = 100
"""Most rotated files that are examined, those written last."""

_WITHIN = r"([-._]\d{4}[-._]?\d{2}[-._]?\d{2}[-._\dTZ]*|\.\d{1,3})?"
"""Infix of rotated files before the suffix: a date, or an index. ``access-8080.log`` is a log of its own."""

_BEHIND = r"([-._][-._\dTZ]*)?"
"""Suffixes of rotated files: numbers and times."""


def resume(path: Path, position: Position) -> tuple[list[OpenLog], bool]:
    """Return the files to read, opened, in order, and whether the file of ``position`` is among them.

    It is the log itself, or a rotated file beside it, renamed, copied or compressed; then come those that
    were written later, and the log. If none is, all of the log is new.

    Raises:
        ConfigError: the log is there and cannot be read.
    """
    live = OpenLog.open(path)
    if live and live.go_to(position):
        return [live], True
    last = [live] if live else []
    rotated = _rotated(path, live)
    for index, file in enumerate(rotated):
        if file.go_to(position):
            for earlier in rotated[:index]:
                earlier.close()
            return [*rotated[index:], *last], True
    for file in rotated:
        file.close()
    return last, False


def _rotated(path: Path, live: OpenLog | None) -> list[OpenLog]:
    """Return the rotated files of a log, open, in the order in which they were last written."""
    stem, suffix = re.escape(path.stem), re.escape(path.suffix)
    pattern = re.compile(rf"{stem}{_WITHIN}{suffix}{_BEHIND}(\.gz)?")
    files = {file.name: file for file in _files(path.parent) if pattern.fullmatch(file.name)}
    files.pop(path.name, None)
    opened = []
    for file in sorted(files.values(), key=_written)[-MOST_ROTATED:]:
        if file.name.endswith(".gz") and file.name.removesuffix(".gz") in files:
            continue  # it is being compressed
        with contextlib.suppress(ConfigError):  # we may not read it
            rotated = OpenLog.open(Path(file.path), is_rotated=True)
            if rotated and live and rotated.identity == live.identity:
                rotated.close()  # the log is a link to it
            elif rotated:
                opened.append(rotated)
    return opened


def _files(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_file()]
    except OSError:
        return []


def _written(file: os.DirEntry[str]) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:  # it is gone
        return 0
