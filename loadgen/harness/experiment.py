"""Experiments: the measurement of a bench, its number of parts, and the presentation of its rows.

A bench is a function that returns an experiment; ``bench`` makes a command of it::

    COLUMNS = (Column("size"), Column("detected", form=".1%"))

    @bench(json="one JSON object a size")
    def sizes(seed: int = seed_option()) -> Experiment[Row]:
        return Experiment(*measured(SIZES, partial(measure_size, seed=seed)), table(COLUMNS))

Its docstring is the help of the command.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import click

from loadgen.terminal import progress
from pipeline.commands.request import takes
from pipeline.commands.tables import Column, print_json_lines, print_markdown, print_table

Advance = Callable[[], None]
"""Called after each part of an experiment."""

Case = TypeVar("Case")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Experiment(Generic[Row]):
    """A measurement of a bench, and the presentation of its rows.

    Args:
        measure: Yields rows, and calls its argument after each part.
        parts: Number of parts; 0 if ``measure`` shows its own progress.
        show: Prints the rows for people.
        streamed: Whether a row is printed as soon as it is measured.
        passed: Whether a row is as it should be; otherwise the exit code is 1.
    """

    measure: Callable[[Advance], Iterable[Row]]
    parts: int
    show: Callable[[Iterable[Row]], None]
    streamed: bool = False
    passed: Callable[[Row], bool] = lambda _: True

    def run(self, name: str, *, as_json: bool) -> int:
        """Measure, print the rows, and return the exit code."""
        rows: list[Row] = []

        def stream() -> Iterator[Row]:
            with progress(name, self.parts) if self.parts else nullcontext(lambda: None) as advance:
                for row in self.measure(advance):
                    rows.append(row)
                    yield row

        show = print_json_lines if as_json else self.show
        show(stream() if self.streamed else list(stream()))
        return 0 if all(map(self.passed, rows)) else 1


def bench(
    *, json: str, cls: type[click.Command] = click.Command
) -> Callable[[Callable[..., Experiment[Any]]], click.Command]:
    """Make a command of a function that returns an experiment; its parameters declare the options.

    Args:
        json: What ``--json`` prints, such as ``one JSON object a row``.
        cls: Class of the command.
    """

    def decorate(declare: Callable[..., Experiment[Any]]) -> click.Command:
        @click.command(cls=cls)
        @takes
        @click.option("--json", "as_json", is_flag=True, help=f"Print {json}.")
        @functools.wraps(declare)
        def command(*, as_json: bool, **given: Any) -> int:
            return declare(**given).run(declare.__name__.replace("_", "-"), as_json=as_json)

        return command

    return decorate


def measured(
    cases: Sequence[Case], measure: Callable[[Case], Iterable[Row]]
) -> tuple[Callable[[Advance], Iterator[Row]], int]:
    """Return a function that measures cases one after the other, and the number of parts.

    Args:
        cases: The cases to measure, one part each.
        measure: Returns the rows of a case.
    """

    def rows(advance: Advance) -> Iterator[Row]:
        for case in cases:
            yield from measure(case)
            advance()

    return rows, len(cases)


def table(
    columns: Sequence[Column[Row]], summary: Callable[[Sequence[Row]], Iterable[str]] | None = None
) -> Callable[[Iterable[Row]], None]:
    """Return a function that prints a table in Markdown, and the lines of a summary below it."""

    def show(rows: Iterable[Row]) -> None:
        listed = list(rows)
        print_markdown(columns, listed)
        for line in summary(listed) if summary else ():
            click.echo(line)

    return show


def terminal_table(columns: Sequence[Column[Row]], title: str = "") -> Callable[[Iterable[Row]], None]:
    """Return a function that prints a table for a terminal."""
    return functools.partial(print_table, columns, title=title)


def lines(line_of: Callable[[Row], str]) -> Callable[[Iterable[Row]], None]:
    """Return a function that prints a line for each row."""

    def show(rows: Iterable[Row]) -> None:
        for row in rows:
            click.echo(line_of(row))

    return show
