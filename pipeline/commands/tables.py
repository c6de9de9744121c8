"""Tables and JSON of commands: columns format rows, for a terminal or in Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

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
        style: Function that returns the style of a row's cell on a terminal.
    """

    name: str
    value: str | Callable[[Row], Any] = ""
    form: str | Callable[[Any], str] = ""
    style: Callable[[Row], str] | None = None

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


def print_markdown(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> None:
    """Print a table in Markdown."""
    for line in markdown_table(columns, list(rows)):
        click.echo(line)


def rich_table(columns: Sequence[Column[Row]], rows: Iterable[Row], *, title: str = "") -> Table:
    """Return a table for a terminal."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE)
    if title:
        table.title, table.title_justify = Text(escape_controls(title), style="bold"), "left"
        table.min_width = min(len(title), 78)  # otherwise the title of a narrow table is broken into lines
    for column in columns:
        alignment: Literal["left", "right"] = "right" if column.form else "left"
        table.add_column(_escaped(column.name), justify=alignment, overflow="fold", no_wrap=bool(column.form))
    for row in rows:
        table.add_row(*(Text(_escaped(c.cell(row)), c.style(row) if c.style else "") for c in columns))
    return table


def print_table(columns: Sequence[Column[Row]], rows: Iterable[Row], *, title: str = "") -> None:
    """Print a table for a terminal."""
    table_console().print(rich_table(columns, rows, title=title))


def text_columns(names: Iterable[str], *, numbers: Container[int] = ()) -> list[Column[Sequence[str]]]:
    """Return the columns of rows of texts; those at the positions ``numbers`` stand to the right."""
    return [
        Column(name, itemgetter(position), str if position in numbers else "")
        for position, name in enumerate(names)
    ]


@dataclass(frozen=True, slots=True)
class TextTable:
    """Table of texts, which may have several lines; numbers stand in all columns but the first."""

    title: str
    names: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def columns(self) -> list[Column[Sequence[str]]]:
        """Columns of the table."""
        return text_columns(self.names, numbers=range(1, len(self.names)))

    def show(self) -> None:
        """Print the table for a terminal."""
        print_table(self.columns, self.rows, title=self.title)

    def markdown(self) -> str:
        """Return the table in Markdown, with its title as a heading."""
        return "\n".join([f"## {self.title}", "", *markdown_table(self.columns, self.rows)])


def print_rows(
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    *,
    as_json: bool,
    encode: Callable[[Row], object] | None = None,
) -> None:
    """Print a table for a terminal, or a JSON object of each row, which ``encode`` returns."""
    if as_json:
        print_json_lines(map(encode, rows) if encode else rows)
    else:
        print_table(columns, rows)


def print_json_lines(values: Iterable[object]) -> None:
    """Print each value as one line of JSON."""
    for value in values:
        print_json(value)


def print_json(value: object) -> None:
    """Print a value as one line of JSON, with ``as_json`` of the objects in it."""
    click.echo(orjson.dumps(value, default=as_json, option=orjson.OPT_PASSTHROUGH_DATACLASS).decode())


def as_json(row: Any) -> Any:
    """Return a row as a JSON value: its own ``to_json``, or all fields of a dataclass."""
    if hasattr(row, "to_json"):
        return row.to_json()
    if isinstance(row, Mapping):
        return dict(row)
    return {field.name: getattr(row, field.name) for field in fields(row)}


def _line(cells: Iterable[str]) -> str:
    plain = (cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells)
    return f"| {' | '.join(plain)} |"


def _escaped(text: str) -> str:
    return "\n".join(map(escape_controls, text.split("\n")))
