"""Parquet files as tables."""

from __future__ import annotations

import io
from pathlib import Path

from pipeline.backtest.seriesfile.content import Content
from pipeline.backtest.seriesfile.table import COUNTS, KNOWN, TIMES, Cells, Table, known_name, named
from pipeline.backtest.tables import Columns, parse_parquet
from pipeline.files.listing import listed


def read_parquet_table(content: Content) -> Table:
    """Read Parquet: the known columns, or all of them where each series has its own.

    Raises:
        ConfigError: it is no Parquet, or a column is of a type that is neither text, time nor number.
    """
    columns = parse_parquet(io.BytesIO(content.data), Path(content.name))
    renamed, assumed = _time_by_type(columns)
    lower = {known_name(renamed.get(name, name)) for name in columns.names}
    is_wide = not lower & {"metric", "value", *COUNTS}
    is_timed = not lower.isdisjoint(("timestamp", *TIMES))
    cells: list[tuple[str, Cells]] = []
    read = [
        name
        for name in columns.names
        if is_wide or not is_timed or known_name(renamed.get(name, name)) in KNOWN
    ]
    for name in read:
        known = known_name(renamed.get(name, name))
        cells.append((known, _cells(columns, name, is_time=known in ("timestamp", *TIMES))))
    if len(columns.names) == 1 and cells[0][0] not in KNOWN:
        cells = [("value", cells[0][1])]
    if unread := [name for name in columns.names if name not in read]:
        assumed = (*assumed, f"without {listed(unread)}")
    rows = range(1, columns.table.num_rows + 1)
    is_local = any(columns.is_local(name) for name in columns.names)
    return Table(content.name, named(content.name, cells), rows, "row", is_local=is_local, assumed=assumed)


def _time_by_type(columns: Columns) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the one column of the type of times as ``timestamp``, where none is called so."""
    if any(name.lower() in ("timestamp", *TIMES) for name in columns.names):
        return {}, ()
    found = [name for name in columns.names if columns.is_moment(name)]
    return ({found[0]: "timestamp"}, (f"{found[0]} as timestamp",)) if len(found) == 1 else ({}, ())


def _cells(columns: Columns, name: str, *, is_time: bool) -> Cells:
    if columns.is_text(name):
        texts = columns.texts(name, missing="")
        return [texts.values[code] for code in texts.codes.tolist()]
    if not is_time:
        return columns.numbers_or_nan(name)
    moments = columns.moments(name)
    return columns.numbers(name) if moments is None else moments
