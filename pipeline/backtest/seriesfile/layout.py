"""Roles of the columns of a table: times under other names, and tables with a column per series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline.backtest.seriesfile.table import COUNTS, KNOWN, METADATA, TIMES, Cells, Table
from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError
from pipeline.model.units import counted

_USED = KNOWN - set(TIMES)
_NAMELESS = "a column that has no name"


def lay_out(table: Table, *, untimed: bool) -> Table:
    """Return a table with one point per row, and the columns that its series need.

    Args:
        table: The table as in the file.
        untimed: True if points may have no time, as in a file of a single column.

    Raises:
        ConfigError: a column is missing, or may be the one of times.
    """
    table = _with_times(table, untimed=untimed)
    if "timestamp" in table.cells and not {"metric", "value", *COUNTS} & set(table.cells):
        table = _long(table)
    counts = not COUNTS.isdisjoint(table.cells)
    if counts and "value" in table.cells:
        raise ConfigError(f"{table.name}: has both value and samples, total; give one of the two")
    wanted = [*([] if untimed else ["timestamp"]), *(["samples", "total"] if counts else ["value"])]
    wanted = ["metric", *wanted] if counts and not untimed else wanted
    if missing := [name for name in wanted if name not in table.cells]:
        raise ConfigError(f"{table.name}: no column {missing[0]!r}; it has {_names(table, missing[0])}")
    if unused := [name for name in table.cells if name not in _USED]:
        table = table.assume(f"without {listed([_described(name, table.cells[name]) for name in unused])}")
    return table


def _described(name: str, cells: Cells) -> str:
    """Name a column that is not used; texts in it may be labels, whose rows are then one series."""
    texts = 0 if isinstance(cells, np.ndarray) else len(set(cells))
    return f"{name or _NAMELESS}{f' ({texts:,} values)' if name and texts > 1 else ''}"


def _with_times(table: Table, *, untimed: bool) -> Table:
    """Rename the column of times; refuse a file that may have one under an unknown name."""
    if "timestamp" in table.cells:
        return table
    time_columns = [name for name in table.cells if name in TIMES]
    if len(time_columns) == 1:
        names = {time_columns[0]: "timestamp"}
        return replace(table, cells={names.get(name, name): cells for name, cells in table.cells.items()})
    possible = time_columns or [name for name in table.cells if name not in KNOWN]
    if untimed and possible:
        raise ConfigError(
            f"{table.name}: no column 'timestamp', which {_either(possible)} may be; "
            "name it so, or leave such columns out if the points are in order of time"
        )
    return table


def _names(table: Table, wanted: str) -> str:
    return listed(list(table.cells), wanted, none="none that is known")


def _either(names: Sequence[str]) -> str:
    return " or ".join(repr(name[:100]) for name in names[:3])


def _long(table: Table) -> Table:
    """Turn a table with a column per series, as dashboards export it, into one with a row per point."""
    names = [name for name in table.cells if name and name not in KNOWN]
    if not names:
        return table
    rows, times = len(table.lines), table.cells["timestamp"]
    cells: dict[str, Cells] = {
        "timestamp": np.tile(times, len(names)) if isinstance(times, np.ndarray) else [*times] * len(names),
        "metric": [name for name in names for _ in range(rows)],
        "value": _joined([table.cells[name] for name in names]),
    }
    for name in ("service", "metric_kind", *METADATA):
        if name in table.cells:
            cells[name] = [str(cell) for cell in table.cells[name]] * len(names)
    long = replace(table, cells=cells, lines=[*table.lines] * len(names), wide=True)
    long = long.assume(f"{counted(len(names), 'column')} as series")
    others = [name for name in table.cells if name in TIMES or not name]
    return long.assume(f"without {listed([name or _NAMELESS for name in others])}") if others else long


def _joined(columns: Sequence[Cells]) -> Cells:
    if all(isinstance(cells, np.ndarray) for cells in columns):
        return np.concatenate(columns)
    return [_text(cell) for cells in columns for cell in cells]


def _text(cell: str | float) -> str:
    return cell if isinstance(cell, str) else repr(float(cell))
