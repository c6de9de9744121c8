"""Table: the columns of a file before anything is said of what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn

from pipeline.backtest.seriesfile.quantities import Decimals
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError

Cells = Sequence[str] | FloatArray
"""A column: texts as they stand there, or numbers where the format has types; then NaN is missing."""

METADATA = ("unit", "kind", "direction")
"""Columns of what is said of a metric; any of them may be missing."""

TIMES = ("@timestamp", "date", "date_time", "datetime", "time", "ts")
"""Other names of the column ``timestamp``."""

COUNTS = frozenset({"samples", "total"})
KNOWN = frozenset({"service", "metric", "metric_kind", "timestamp", "value", *COUNTS, *METADATA, *TIMES})
"""Columns whose meaning is known; the case of their names is not minded."""

MISSING = frozenset({"", "nan", "null", "none", "na", "n/a"})


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a file, and what was taken for granted of them."""

    name: str  # of the file, as errors name it
    cells: Mapping[str, Cells]
    lines: Sequence[int]  # (rows,)
    counts: Literal["line", "row"]  # what ``lines`` holds
    decimals: Decimals = Decimals()
    wide: bool = False  # whether each series has a column of its own: then a missing value is no point
    is_local: bool = False  # whether times that are numbers here count in a time zone that is not known
    assumed: tuple[str, ...] = ()

    def refuse(self, row: int, column: str, what: str) -> NoReturn:
        """Raise a ConfigError about one cell."""
        line = self.lines[row]
        position = f"{self.name}:{line}" if self.counts == "line" else f"{self.name}: row {line}"
        if self.wide and column == "value":
            column = str(self.cells["metric"][row])
        raise ConfigError(f"{position}: {column[:100]}: {what}")

    def assume(self, *what: str) -> Table:
        """Return the table with more that was taken for granted."""
        return replace(self, assumed=(*self.assumed, *what))


def known_name(name: str) -> str:
    """Return the name of a column as it is known, or as it stands there: that of a series keeps its case."""
    return name.lower() if name.lower() in KNOWN else name


def named(name: str, columns: Iterable[tuple[str, Cells]]) -> dict[str, Cells]:
    """Return columns by their names.

    Raises:
        ConfigError: two have the same name.
    """
    found: dict[str, Cells] = {}
    for column, cells in columns:
        if column in found:
            raise ConfigError(f"{name}: {column[:100]}: column stands twice")
        found[column] = cells
    return found
