"""What commands of this package have in common: progress, JSON, files, and figures of matplotlib."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.progress import Progress

from pipeline.model.errors import ConfigError
from pipeline.model.units import parse_duration_s


class Duration(click.ParamType):
    """A span of time on the command line, such as 10m, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds, or fail with what is wrong."""
        try:
            return parse_duration_s(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show on standard error how many parts of a whole are done; what is yielded counts one more."""
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def print_json(value: object) -> None:
    """Print a JSON value as one line."""
    click.echo(orjson.dumps(value).decode())


def print_rows(
    rows: Sequence[Any], table: Callable[[Sequence[Any]], Iterable[str]], *, as_json: bool
) -> None:
    """Print dataclasses: one JSON object each, or the lines of a table of them."""
    if as_json:
        for row in rows:
            print_json(asdict(row))
        return
    for line in table(rows):
        click.echo(line)


def read_file(path: Path) -> bytes:
    """Return what a file holds.

    Raises:
        ConfigError: it cannot be read.
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
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("figures need matplotlib: pip install matplotlib (or 'smidgen[dev]')")
    return importlib.import_module("matplotlib.figure").Figure(figsize=(width, height), **options)
