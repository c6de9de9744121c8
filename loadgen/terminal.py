"""Common parts of the commands of this package: progress, files, and figures of matplotlib."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pipeline.model.errors import ConfigError
from pipeline.settings.extras import require


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Callable[[], None]]:
    """Show on standard error the number of parts done; the yielded function counts one more."""
    with _bar(*Progress.get_default_columns()) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda: bar.advance(task)


@contextmanager
def share_progress(what: str) -> Iterator[Callable[[str, float], None]]:
    """Show on standard error the work of a long run and the share done; nothing if it is no terminal."""
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[doing]}")
    with _bar(*columns, TimeElapsedColumn()) as bar:
        task = bar.add_task(what, total=1.0, doing="")
        yield lambda doing, share: bar.update(task, doing=doing, completed=share)


def _bar(*columns: Any) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def read_file(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None


def new_figure(width: float, height: float, **options: Any) -> Any:
    """Return an empty figure of matplotlib; its size is in inches.

    Raises:
        ConfigError: matplotlib, one of the development dependencies, is not installed.
    """
    require("matplotlib")
    return importlib.import_module("matplotlib.figure").Figure(figsize=(width, height), **options)
