"""Profile files as sources: opened, with a bar on the terminal for large ones."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from agents.profiles.formats import AUTO, ProfileSource, Reading, find_format, read_profile
from pipeline.model.errors import ConfigError, file_errors

STDIN = "-"
BAR_BYTES = 2**24
"""A file from this size on takes seconds, so that its progress is shown."""


@contextmanager
def opened_profile(path: Path, on_read: Callable[[bytes], object] | None = None) -> Iterator[ProfileSource]:
    """Open a profile file, ``-`` for standard input.

    Raises:
        ConfigError: it cannot be read.
    """
    if str(path) == STDIN:
        with file_errors("standard input"):
            yield ProfileSource(sys.stdin.buffer, on_read)
        return
    with file_errors(path), path.open("rb") as stream, shown_progress(stream, str(path)) as advance:

        def read(data: bytes) -> None:
            advance(len(data))
            if on_read:
                on_read(data)

        yield ProfileSource(stream, read)


def begin_profile(
    source: ProfileSource, format_: str = AUTO, value: str = "", period: float = 0.0
) -> tuple[str, Reading]:
    """Begin to read a profile; ``period``, if given, is the weight of one sample.

    Returns:
        What a file of its format holds, and the reading.

    Raises:
        ConfigError: it is of no known format, has no such value, or has no weights that a period divides.
    """
    format_found = find_format(format_, source.head)
    reading = read_profile(format_found, source, value)
    if period and reading.measure.unit == "count":
        raise ConfigError(
            "counts samples, and no time or bytes that --period could divide; if lines of stacks count time, "
            "say its unit by --value, such as microseconds"
        )
    if period:
        reading = replace(reading, measure=replace(reading.measure, period=period))
    return format_found.content, reading


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Put a file's name in front of its errors."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{'standard input' if str(path) == STDIN else path}: {error}") from None


@contextmanager
def shown_progress(stream: BinaryIO, name: str) -> Iterator[Callable[[int], object]]:
    """Show how much of a large file is read, if anybody sees it; what it yields is given each size."""
    about = os.fstat(stream.fileno())
    console = Console(stderr=True)
    shown = console.is_terminal and stat.S_ISREG(about.st_mode) and about.st_size >= BAR_BYTES
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task(name, total=about.st_size)
        yield lambda count: progress.advance(task, count)
