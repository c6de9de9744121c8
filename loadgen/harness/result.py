"""Results of benches of speed: figures by their unit, and functions that show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pipeline.commands.tables import Column, print_table


@dataclass(frozen=True, slots=True)
class BenchResult:
    """One line of a report: figures by unit, such as ``{"messages/s": 1200.0}``, and the setup measured."""

    name: str
    figures: dict[str, float]
    setup: dict[str, float] = field(default_factory=dict)


def figure_columns(first: str, units: Sequence[str], form: str) -> tuple[Column[BenchResult], ...]:
    """Return columns for results with the same figures: the name, headed ``first``, and each unit."""
    return (Column(first, "name"), *(_column(unit, form) for unit in units))


def print_results(results: Iterable[BenchResult]) -> None:
    """Print results with different figures, one figure a line."""
    rows = [(result.name, figure, unit) for result in results for unit, figure in result.figures.items()]
    columns: tuple[Column[tuple[str, float, str]], ...] = (
        Column("what", lambda row: row[0]),
        Column("figure", lambda row: row[1], lambda figure: f"{figure:,.{2 if figure < 100 else 0}f}"),
        Column("unit", lambda row: row[2]),
    )
    print_table(columns, rows)


def _column(unit: str, form: str) -> Column[BenchResult]:
    return Column(unit, lambda result: result.figures.get(unit), form)
