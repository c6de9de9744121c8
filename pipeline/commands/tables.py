"""Tables and JSON of commands: columns format rows, for a terminal or in Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click
import orjson

from pipeline.commands.terminal import escape_controls, table_console

if TYPE_CHECKING:
    from rich.table import Table

Row = TypeVar("Row")

NONE = "–"
"""Text for a missing value: None, or a number that is not finite."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One column of a table.

    Args:
        name: Its heading.
        value: Attribute or key of a row, or a function of the row; by default the heading.
        form: Format of a number, such as ``.1%``, or a function that writes it; empty for text. Numbers
            stand to the right.
    """

    name: str
    value: str | Callable[[Row], Any] = ""
    form: str | Callable[[Any], str] = ""

    def cell(self, row: Row) -> str:
        """Return a row's value in this column, as text."""
        value = self._value(row)
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return NONE
        if callable(self.form):
            return self.form(value)
        return value if isinstance(value, str) else format(value, self.form)

    def _value(self, row: Row) -> Any:
        if callable(self.value):
            return self.value(row)
        name = self.value or self.name
        return row.get(name) if isinstance(row, Mapping) else getattr(row, name)


def markdown_table(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield _line(column.name for column in columns)
    yield _line("---:" if column.form else "---" for column in columns)
    for row in rows:
        yield _line(column.cell(row) for column in columns)


def rich_table(columns: Sequence[Column[Row]], rows: Iterable[Row], **options: Any) -> Table:
    """Return a table for a terminal; ``options`` are those of rich's class."""
    from rich.table import Table

    table = Table(**options)
    for column in columns:
        table.add_column(column.name, justify="right" if column.form else "left")
    for row in rows:
        table.add_row(*(escape_controls(column.cell(row)) for column in columns))
    return table


def print_markdown(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> None:
    """Print a table in Markdown."""
    for line in markdown_table(columns, list(rows)):
        click.echo(line)


def print_table(columns: Sequence[Column[Row]], rows: Iterable[Row], **options: Any) -> None:
    """Print a table for a terminal; ``options`` are those of rich's class."""
    table_console().print(rich_table(columns, rows, **options))


def print_json(value: object) -> None:
    """Print a JSON value as one line; ``as_json`` converts objects of our own."""
    click.echo(orjson.dumps(value).decode())


def as_json(row: Any) -> Any:
    """Return a row as a JSON value: its own ``to_json``, or all fields of a dataclass."""
    if hasattr(row, "to_json"):
        return row.to_json()
    return row if isinstance(row, Mapping) else asdict(row)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
