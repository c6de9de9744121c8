"""Annotated CSV of InfluxDB: several tables in one file, each with its own columns and series.

Source: InfluxDB's reference, "Annotated CSV". Annotations stand before the names of columns, and hold for the
tables after them until there are others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.backtest.seriesfile.table import Cells, Table
from pipeline.model.errors import ConfigError

_ANNOTATIONS = ("#group", "#datatype", "#default")
_NUMBERS = ("double", "long", "unsignedLong", "")
_INTERNAL = ("", "result", "table")


@dataclass(slots=True)
class _Columns:
    """Names of columns, and what annotations say of them."""

    names: Sequence[str] = ()
    annotations: dict[str, Sequence[str]] = field(default_factory=dict)

    def said(self, annotation: str, index: int) -> str:
        """Return what an annotation says of a column; empty without it."""
        cells = self.annotations.get(annotation, ())
        return cells[index].strip() if index < len(cells) else ""

    def is_value(self, index: int) -> bool:
        """Return whether a column holds values: ``_value``, or after a pivot one named like a field."""
        name = self.names[index]
        if "_value" in self.names:
            return name == "_value"
        is_other = name.startswith("_") or name in _INTERNAL or self.said("#group", index) == "true"
        return not is_other and self.said("#datatype", index) in _NUMBERS

    def is_label(self, index: int) -> bool:
        """Return whether a column is a tag, which makes series different."""
        name = self.names[index]
        if name.startswith("_") or name in _INTERNAL or self.is_value(index):
            return False
        return self.said("#group", index) != "false"


def is_influx_csv(row: Sequence[str]) -> bool:
    """Return whether a file with this first row is CSV of InfluxDB."""
    return row[0].strip() in _ANNOTATIONS or {"result", "table", "_time"} <= {cell.strip() for cell in row}


def read_influx_csv(name: str, rows: Sequence[Sequence[str]], lines: Sequence[int]) -> Table:
    """Return one row for each value.

    Args:
        name: Of the file.
        rows: Cells of each line, none of a blank one.
        lines: (rows,) Numbers of the lines.

    Raises:
        ConfigError: a table has no times or no numbers, a line has more or fewer cells than names, or the
            file is the error that InfluxDB answered with.
    """
    cells: dict[str, list[str]] = {"metric": [], "timestamp": [], "value": []}
    points: list[int] = []
    others = 0
    for columns, row, line in _records(name, rows, lines):
        values = [index for index in range(len(row)) if columns.is_value(index)]
        record = [cell or columns.said("#default", index) for index, cell in enumerate(row)]
        numbers = [index for index in values if columns.said("#datatype", index) in _NUMBERS]
        others += len(values) - len(numbers)
        for index in numbers:
            if record[index].strip():
                cells["metric"].append(_metric(columns, record, index))
                cells["timestamp"].append(record[columns.names.index("_time")])
                cells["value"].append(record[index])
                points.append(line)
    if not points:
        raise ConfigError(f"{name}: CSV of InfluxDB without numbers")
    said = ["CSV of InfluxDB", *([f"without {others:,} values that are no numbers"] if others else [])]
    named: Mapping[str, Cells] = cells
    return Table(name, named, points, "line", assumed=tuple(said))


def _records(
    name: str, rows: Sequence[Sequence[str]], lines: Sequence[int]
) -> Iterator[tuple[_Columns, Sequence[str], int]]:
    """Yield the lines with values, each with the columns of its table."""
    columns = _Columns()
    is_head = True
    for row, line in zip(rows, lines, strict=True):
        if not row:
            is_head = True
        elif row[0].startswith("#"):
            if columns.names or not is_head:
                columns = _Columns()
            columns.annotations[row[0].strip()] = row
            is_head = True
        elif is_head:
            columns = _Columns([cell.strip() for cell in row], columns.annotations)
            _check(f"{name}:{line}", columns)
            is_head = False
        elif len(row) != len(columns.names):
            raise ConfigError(f"{name}:{line}: {len(row)} columns, where the table has {len(columns.names)}")
        elif "error" in columns.names:
            raise ConfigError(f"{name}:{line}: InfluxDB's error: {row[columns.names.index('error')][:200]}")
        else:
            yield columns, row, line


def _check(where: str, columns: _Columns) -> None:
    """Refuse a table without times or values."""
    if "error" in columns.names:
        return
    if "_time" not in columns.names:
        raise ConfigError(f"{where}: a table of InfluxDB without _time; keep that column in the query")
    if not any(columns.is_value(index) for index in range(len(columns.names))):
        raise ConfigError(f"{where}: a table of InfluxDB without _value or a column of numbers")


def _metric(columns: _Columns, record: Sequence[str], index: int) -> str:
    """Return the name of a value's series: measurement, field and tags."""
    labels = {
        label: record[position]
        for position, label in enumerate(columns.names)
        if columns.is_label(position) and record[position]
    }
    fields = dict(zip(columns.names, record, strict=True))
    quantity = columns.names[index] if columns.names[index] != "_value" else fields.get("_field", "")
    name = ".".join(part for part in (fields.get("_measurement", ""), quantity) if part) or "value"
    tags = ", ".join(f'{label}="{text}"' for label, text in sorted(labels.items()))
    return f"{name}{{{tags}}}" if tags else name
