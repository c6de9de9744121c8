"""CSV as people have it: commas, semicolons or tabs between cells."""

from __future__ import annotations

import csv
import io
import re

from pipeline.backtest.seriesfile.content import Content
from pipeline.backtest.seriesfile.influx_csv import is_influx_csv, read_influx_csv
from pipeline.backtest.seriesfile.measures import is_quantity
from pipeline.backtest.seriesfile.quantities import Decimals, is_number
from pipeline.backtest.seriesfile.table import KNOWN, MISSING, TIMES, Table, known_name, named
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model.clock import from_iso, has_date_digits
from pipeline.model.errors import ConfigError, InvalidMessage

_DELIMITERS = ("\t", ";", ",")
_EXCEL_HINT = re.compile(r"sep=([\t;,|])\r?\n")
"""First line by which programs say to Excel what stands between cells."""

_Rows = list[list[str]]


def read_delimited(content: Content) -> Table:
    """Read CSV: a line of names, and one line a row. A single column, and times beside values, need no names.

    The first line that is not blank says what stands between cells: what makes a known name of one of them,
    or else a tab, a semicolon or a comma.

    Raises:
        ConfigError: the file, and the line where it is no UTF-8 text or no CSV.
    """
    text = content.text()
    excel = _EXCEL_HINT.match(text)
    delimiter = excel[1] if excel else _delimiter(text)
    rows, lines = _rows(content.name, text, delimiter)
    if excel:
        rows[0] = []
    first = next((index for index, row in enumerate(rows) if row), None)
    if first is None:
        raise ConfigError(f"{content.name}: empty")
    if is_influx_csv(rows[first]):
        return read_influx_csv(content.name, rows[first:], lines[first:])
    header = [known_name(name.strip()) for name in rows[first]]
    # A single column has no delimiter; Excel writes tabs in any language, semicolons with decimal commas.
    decimals = Decimals(
        presumed="," if delimiter == ";" else ".", is_sure=delimiter == "," and len(header) > 1
    )
    if len(header) == 1 and header[0] not in ("timestamp", *TIMES):
        return _single(content.name, rows, lines, first, decimals)
    assumed: tuple[str, ...] = ()
    begin = first + 1
    if _is_time(rows[first][0]) and all(_is_value(cell) for cell in rows[first][1:]):
        if len(header) > 2:
            names = f"a first line such as timestamp{delimiter}a{delimiter}b"
            raise ConfigError(f"{content.name}:{lines[first]}: no names of columns; put {names} before it")
        header, begin, assumed = ["timestamp", "value"], first, ("no names, so timestamp and value",)
    filled = [index for index, row in enumerate(rows) if row and index >= begin]
    rows, lines = [rows[index] for index in filled], [lines[index] for index in filled]
    header, rows = _without_blank_end(header, rows)
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise ConfigError(
                f"{content.name}:{line}: {len(row)} columns, where the header has {len(header)}"
            )
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    cells = named(f"{content.name}:1", zip(header, columns, strict=True))
    return Table(content.name, cells, lines, "line", decimals, assumed=assumed)


def _without_blank_end(header: list[str], rows: _Rows) -> tuple[list[str], _Rows]:
    """Return a table without the last columns that have neither name nor cells: programs end lines so."""
    if header[-1] and all(len(row) <= len(header) for row in rows):
        return header, rows
    sizes = [_size(row) for row in rows]
    width = max([1, _size(header), *(min(size, len(header)) for size in sizes)])
    return header[:width], [
        row[:width] if size <= width else row for row, size in zip(rows, sizes, strict=True)
    ]


def _size(row: list[str]) -> int:
    """Return the number of cells up to the last one that is not blank."""
    return next((size for size in range(len(row), 0, -1) if row[size - 1].strip()), 0)


def _single(name: str, rows: _Rows, lines: list[int], first: int, decimals: Decimals) -> Table:
    """Return a single column; a blank line in it is a point, before the first value too."""
    head = rows[first][0].strip()
    begin = 0 if _is_value(head) else first + 1
    cells = [row[0] if row else "" for row in rows[begin:]]
    return Table(name, {"value": cells}, lines[begin:], "line", decimals)


def _rows(name: str, text: str, delimiter: str) -> tuple[_Rows, list[int]]:
    """Return the cells of every line, none of a blank one, and the numbers of the lines."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=delimiter != "\t", strict=True
    )
    rows: _Rows = []
    lines: list[int] = []
    try:
        for row in reader:
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise ConfigError(f"{name}:{reader.line_num}: {error}") from None
    return rows, lines


def _delimiter(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    found = [one for one in _DELIMITERS if one in first]
    knowing = [one for one in found if {cell.strip(' "').lower() for cell in first.split(one)} & KNOWN]
    return (knowing or found or [","])[0]


def _is_value(cell: str) -> bool:
    return cell.strip().lower() in MISSING or is_quantity(cell)


def _is_time(cell: str) -> bool:
    """Return whether a cell can only be a time: in ISO 8601, or in seconds or their parts after 2000."""
    if is_number(cell) and not (len(cell.strip()) == 8 and has_date_digits(cell.strip())):
        return any(EARLIEST_S * ticks <= float(cell) < LATEST_S * ticks for ticks in (1, 1e3, 1e6, 1e9))
    try:
        from_iso(cell.strip())
    except InvalidMessage:
        return False
    return True
