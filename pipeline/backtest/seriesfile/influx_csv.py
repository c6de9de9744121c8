"""CSV of InfluxDB: several tables in one file, each with its own columns and series.

Sources: InfluxDB's reference, "Annotated CSV", of Flux, whose annotations stand before the names of columns
and hold for the tables after them until there are others; and the CSV of InfluxQL (``influx -format csv``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.backtest.seriesfile.quantities import is_number
from pipeline.backtest.seriesfile.table import Cells, Table
from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError

_ANNOTATIONS = ("#group", "#datatype", "#default")
_NUMBERS = ("double", "long", "unsignedLong", "")
_INTERNAL = ("", "result", "table")
_INFLUXQL = ("name", "tags", "time")
_TAG = re.compile(r"((?:\\.|[^\\,=])+)=((?:\\.|[^\\,])*)")


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
    names = [cell.strip() for cell in row]
    return names[0] in _ANNOTATIONS or {"result", "table", "_time"} <= set(names) or _is_influxql(names)


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
    read = _influxql_points if _is_influxql([cell.strip() for cell in rows[0]]) else _flux_points
    points, assumed = read(name, rows, lines)
    if not points:
        raise ConfigError(f"{name}: CSV of InfluxDB without numbers")
    has_results = len({point.result for point in points}) > 1
    cells: dict[str, Cells] = {
        "metric": [point.metric(has_results) for point in points],
        "timestamp": [point.time for point in points],
        "value": [point.value for point in points],
    }
    points_of = [point.line for point in points]
    return Table(name, cells, points_of, "line", assumed=("CSV of InfluxDB", *assumed))


@dataclass(frozen=True, slots=True)
class _Point:
    """A value with what its series is called by."""

    quantity: str  # measurement and field
    labels: Mapping[str, str]
    result: str  # of the query
    time: str
    value: str
    line: int

    def metric(self, has_results: bool) -> str:
        """Return the name of the series; ``has_results``: the query returned several results."""
        labels = {**self.labels, **({"result": self.result} if has_results else {})}
        texts = ", ".join(f'{label}="{text}"' for label, text in sorted(labels.items()))
        return f"{self.quantity}{{{texts}}}" if texts else self.quantity


def _flux_points(
    name: str, rows: Sequence[Sequence[str]], lines: Sequence[int]
) -> tuple[list[_Point], Sequence[str]]:
    """Return the numbers of annotated CSV, and what was assumed."""
    points = []
    others = 0
    for columns, row, line in _records(name, rows, lines):
        record = [cell or columns.said("#default", index) for index, cell in enumerate(row)]
        fields = dict(zip(columns.names, record, strict=True))
        for index in [index for index in range(len(row)) if columns.is_value(index)]:
            if columns.said("#datatype", index) not in _NUMBERS:
                others += 1
            elif record[index].strip():
                column = columns.names[index]
                quantity = fields.get("_field", "") if column == "_value" else column
                points.append(
                    _Point(
                        ".".join(filter(None, (fields.get("_measurement", ""), quantity))) or "value",
                        _labels(columns, record),
                        fields.get("result", ""),
                        fields["_time"],
                        record[index],
                        line,
                    )
                )
    return points, [f"without {others:,} values that are no numbers"] if others else []


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


def _labels(columns: _Columns, record: Sequence[str]) -> dict[str, str]:
    """Return the tags of a record."""
    return {
        label: record[position]
        for position, label in enumerate(columns.names)
        if columns.is_label(position) and record[position]
    }


def _is_influxql(names: Sequence[str]) -> bool:
    return len(names) > 2 and names[0] == "name" and "time" in names[1:3]


def _influxql_points(
    name: str, rows: Sequence[Sequence[str]], lines: Sequence[int]
) -> tuple[list[_Point], Sequence[str]]:
    """Return the numbers of InfluxQL's CSV: tables between blank lines, with columns name, tags and time.

    Tags that a query grouped by are in the column ``tags``. Other columns with a text are tags too, or
    fields: they are labels in either case, so that no two series become one.
    """
    points: list[_Point] = []
    text_columns: dict[str, None] = {}
    blanks = [-1, *(index for index, row in enumerate(rows) if not row), len(rows)]
    for start, end in zip(blanks, blanks[1:], strict=False):
        if end - start > 1:
            added, texts = _influxql_table(name, rows[start + 1 : end], lines[start + 1 : end])
            points += added
            text_columns |= dict.fromkeys(texts)
    return points, [f"labels by {listed(list(text_columns))}"] if text_columns else []


def _influxql_table(
    name: str, rows: Sequence[Sequence[str]], lines: Sequence[int]
) -> tuple[list[_Point], list[str]]:
    """Return the numbers of a table with its names, and the columns of texts."""
    names = [cell.strip() for cell in rows[0]]
    if not _is_influxql(names):
        raise ConfigError(f"{name}:{lines[0]}: a table of InfluxDB without the columns name and time")
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise ConfigError(f"{name}:{line}: {len(row)} columns, where the table has {len(names)}")
    columns = [index for index, column in enumerate(names) if column not in _INFLUXQL]
    numbers = [index for index in columns if all(is_number(row[index] or "0") for row in rows[1:])]
    texts = [index for index in columns if index not in numbers]
    points = []
    for row, line in zip(rows[1:], lines[1:], strict=True):
        record = dict(zip(names, row, strict=True))
        labels = {names[index]: row[index] for index in texts if row[index]} | _tags(record.get("tags", ""))
        points += [
            _Point(f"{record['name']}.{names[index]}", labels, "", record["time"], row[index], line)
            for index in numbers
            if row[index].strip()
        ]
    return points, [names[index] for index in texts]


def _tags(text: str) -> dict[str, str]:
    """Return tags such as ``host=a,region=eu``; old versions do not mark commas within one."""
    tags = dict(_TAG.findall(text))
    is_whole = ",".join(f"{tag}={value}" for tag, value in tags.items()) == text
    return tags if is_whole else {"tags": text}
