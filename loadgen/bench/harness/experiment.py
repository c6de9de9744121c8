"""Experiments: what a bench measures, in how many parts and processes, and how its rows are shown.

A bench is a function of its request that returns an experiment; ``bench`` makes a command of it::

    COLUMNS = (Column("size"), Column("found", form=".1%"))

    @bench(SizesRequest)
    def sizes(request: SizesRequest) -> Experiment[Row]:
        return Experiment(*measured(SIZES, partial(measure_size, seed=request.seed)), table(COLUMNS))

Its docstring is the help of the command.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import click

from loadgen.bench.harness.workers import run_in_workers
from loadgen.terminal import progress
from pipeline.commands.request import takes
from pipeline.commands.tables import Column, as_json, print_json, print_markdown, print_table

Advance = Callable[[], None]
"""Called after each part of an experiment."""

Case = TypeVar("Case")
Row = TypeVar("Row")


class BenchRequest(Protocol):
    """What every bench is asked."""

    @property
    def as_json(self) -> bool:
        """Whether rows are printed as JSON, one object each."""


Asked = TypeVar("Asked", bound=BenchRequest)


@dataclass(frozen=True, slots=True)
class Experiment(Generic[Row]):
    """What a bench measures, and how it is shown.

    Args:
        measure: Yields rows, and calls what it is given after each part.
        parts: How many parts there are; 0 if ``measure`` shows its own progress.
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

        def measured() -> Iterator[Row]:
            with progress(name, self.parts) if self.parts else nullcontext(lambda: None) as advance:
                for row in self.measure(advance):
                    rows.append(row)
                    yield row

        show = _print_objects if as_json else self.show
        show(measured() if self.streamed else list(measured()))
        return 0 if all(map(self.passed, rows)) else 1


def bench(
    request: type[Asked], cls: type[click.Command] = click.Command
) -> Callable[[Callable[[Asked], Experiment[Any]]], click.Command]:
    """Make a command of a function that returns the experiment for a request.

    Args:
        request: Options of the command.
        cls: Class of the command.
    """

    def decorate(declare: Callable[[Asked], Experiment[Any]]) -> click.Command:
        @click.command(cls=cls)
        @takes(request)
        @functools.wraps(declare)
        def command(asked: Asked) -> int:
            return declare(asked).run(declare.__name__.replace("_", "-"), as_json=asked.as_json)

        return command

    return decorate


def measured(
    cases: Sequence[Case], measure: Callable[[Case], Iterable[Row]], processes: int = 1
) -> tuple[Callable[[Advance], Iterator[Row]], int]:
    """Return how cases are measured one after the other or in processes, and how many they are.

    Args:
        cases: What is measured, one part each.
        measure: Returns the rows of a case; several processes need one that can be pickled.
        processes: How many cases are measured at a time; rows come in the order of the cases.
    """

    def rows(advance: Advance) -> Iterator[Row]:
        if processes > 1:
            numbered = enumerate(cases)
            done = {}
            for (number, _), found in run_in_workers(
                functools.partial(_numbered, measure), numbered, processes
            ):
                done[number] = found
                advance()
            for number in sorted(done):
                yield from done[number]
            return
        for case in cases:
            yield from measure(case)
            advance()

    return rows, len(cases)


def table(
    columns: Sequence[Column[Row]], summary: Callable[[Sequence[Row]], Iterable[str]] | None = None
) -> Callable[[Iterable[Row]], None]:
    """Return what prints a table in Markdown, and the lines of a summary below it."""

    def show(rows: Iterable[Row]) -> None:
        listed = list(rows)
        print_markdown(columns, listed)
        for line in summary(listed) if summary else ():
            click.echo(line)

    return show


def terminal_table(columns: Sequence[Column[Row]], **options: Any) -> Callable[[Iterable[Row]], None]:
    """Return what prints a table with a frame; ``options`` are those of rich's class."""
    return functools.partial(print_table, columns, **options)


def lines(line_of: Callable[[Row], str]) -> Callable[[Iterable[Row]], None]:
    """Return what prints a line for each row."""

    def show(rows: Iterable[Row]) -> None:
        for row in rows:
            click.echo(line_of(row))

    return show


def _print_objects(rows: Iterable[Any]) -> None:
    for row in rows:
        print_json(as_json(row))


def _numbered(measure: Callable[[Case], Iterable[Row]], task: tuple[int, Case]) -> list[Row]:
    return list(measure(task[1]))
