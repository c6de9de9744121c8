"""Series files: CSV or Parquet, one point a row; every mistake is named by file, line and column."""

from __future__ import annotations

import itertools
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np

from pipeline.backtest.csvfile import SUFFIXES as CSV_SUFFIXES
from pipeline.backtest.csvfile import is_csv, read_csv_rows
from pipeline.backtest.tables import Columns, read_parquet
from pipeline.clock import from_iso
from pipeline.codec.fields import EARLIEST_S, LATEST_S
from pipeline.detect.metric_direction import DIRECTIONS
from pipeline.errors import ConfigError, InvalidMessage, file_errors
from pipeline.model import METRIC_KINDS, BoolArray, FloatArray, IntArray, MetricKind, MetricMetadata, is_gcpu

Duplicates = Literal["mean", "last", "refuse"]
"""What becomes of several points of a series at one time."""

SUFFIXES = (*CSV_SUFFIXES, ".parquet")
_MOST_NAMED = 8  # columns in one line
_MISSING = ("", "nan", "null", "none", "na", "n/a")
_YEAR = re.compile(r"[1-9]\d{3}(\.0*)?")
_YEAR_1_S = -62_135_596_800.0
_YEAR_10000_S = 253_402_300_800.0
METADATA = ("unit", "kind", "direction")
"""Columns of what is said of a metric; any of them may be missing."""

_KNOWN = ("service", "metric", "metric_kind", "timestamp", "value", "samples", "total", *METADATA)
_TIMES = ("@timestamp", "date", "date_time", "datetime", "time", "ts")
"""Other names of the column ``timestamp``."""

_MEANT = frozenset({*_KNOWN, *_TIMES})


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a file, in order of time. ``totals`` is None for plain values."""

    service: str
    kind: MetricKind
    metric: str
    timestamps: FloatArray | None  # (points,) epoch seconds; None where the file has none
    values: FloatArray  # (points,) values, NaN where one is missing; or samples where there are totals
    totals: FloatArray | None  # (points,)
    metadata: MetricMetadata = MetricMetadata()  # of a service-level metric

    @property
    def levels(self) -> FloatArray:
        """(points,) values, or shares where there are totals; NaN where nothing is known."""
        if self.totals is None:
            return self.values
        known = self.totals > 0
        found: FloatArray = np.divide(self.values, self.totals, out=np.full(len(known), np.nan), where=known)
        return found


@dataclass(frozen=True, slots=True)
class _Table:
    """The cells of a file: texts as they stand there, or numbers where the format has types."""

    path: Path
    cells: dict[str, Sequence[str] | FloatArray]
    lines: Sequence[int]  # (rows,)
    unit: str  # what ``lines`` counts: line or row
    plain: bool  # any time since the year 1, and values may be missing
    others: Sequence[str] = ()  # columns whose meaning is not known
    wide: bool = False  # whether each series has a column of its own in the file

    def refuse(self, row: int, column: str, what: str) -> NoReturn:
        """Raise a ConfigError about one cell."""
        position = (
            f"{self.path}:{self.lines[row]}" if self.unit == "line" else f"{self.path}: row {self.lines[row]}"
        )
        if self.wide and column == "value":
            column = str(self.cells["metric"][row])
        raise ConfigError(f"{position}: {column}: {what}")


def read_series(path: Path, *, plain: bool = False, duplicates: Duplicates = "refuse") -> tuple[Series, ...]:
    """Read every series of a CSV or Parquet file, sorted by service, kind and name.

    Args:
        path: With the columns ``service, metric, timestamp`` (ISO 8601 or epoch seconds), and either
            ``value`` or ``samples, total``; ``metric_kind`` may say what kind of gCPU series it is.
        plain: Whether ``timestamp, value`` or a single column is enough. Then a value may be missing (empty,
            ``NaN``, ``null``, ``NA``; in a single column also a blank line, but not before its name), CSV may
            have a column of times and one for each series, and
            ``timestamp`` may be any ISO 8601 date, a month or a year; whole numbers of four digits
            throughout are years.
        duplicates: What becomes of several points of a series at one time: their mean (of counts their sums),
            the last of them in the file, or none of the file.

    Raises:
        ConfigError: the file, line and column that is wrong.
    """
    if not path.name.lower().endswith(SUFFIXES):
        _refuse_kind(path)
    table = _read_csv(path, plain) if is_csv(path) else _parquet_table(read_parquet(path), plain)
    if not table.lines:
        raise ConfigError(f"{path}: holds no point")
    _find_times(table)
    if plain and "timestamp" in table.cells and not {"value", "samples", "total"} & set(table.cells):
        table = _unpivot(table)
    _check_columns(table, plain)
    return _split(table, duplicates)


def _refuse_kind(path: Path) -> NoReturn:
    with file_errors(path):
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    what = "is a directory" if is_folder else f"unknown kind of file {path.suffix!r}"
    raise ConfigError(f"{path}: {what}; should be {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")


def _read_csv(path: Path, plain: bool) -> _Table:
    rows, lines = read_csv_rows(path)
    first = next((index for index, row in enumerate(rows) if row), None)
    if first is None:
        raise ConfigError(f"{path}: empty")
    header = [_known(name.strip()) for name in rows[first]]
    if plain and len(header) == 1:  # a blank line in a single column is a point, before the first value too
        named = not (_is_number(header[0]) or header[0].lower() in _MISSING)
        header, begin = ["value"], first + 1 if named else 0
        rows, lines = [row or [""] for row in rows[begin:]], lines[begin:]
    else:
        filled = [index for index, row in enumerate(rows) if row and index > first]
        rows, lines = [rows[index] for index in filled], [lines[index] for index in filled]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise ConfigError(f"{path}:{line}: {len(row)} columns, where the header has {len(header)}")
    if again := [name for name, group in itertools.groupby(sorted(header)) if len(list(group)) > 1]:
        raise ConfigError(f"{path}:1: {again[0]}: column stands twice")
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    others = [name for name in header if name not in _MEANT]
    return _Table(path, dict(zip(header, columns, strict=True)), lines, "line", plain, others)


def _known(name: str) -> str:
    """Return the name of a column as it is known, or as it stands there: that of a series keeps its case."""
    return name.lower() if name.lower() in _MEANT else name


def _parquet_table(columns: Columns, plain: bool) -> _Table:
    cells: dict[str, Sequence[str] | FloatArray] = {}
    names = [name for name in columns.names if name.lower() in _MEANT] or columns.names[:1]
    others = [name for name in columns.names if name not in names]
    for name in names:
        if columns.is_text(name):
            texts = columns.texts(name)
            cells[name] = [texts.values[code] for code in texts.codes.tolist()]
        elif plain and (name.lower() == "value" or name.lower() not in _MEANT):
            cells[name] = columns.numbers_or_nan(name)
        elif (moments := columns.moments(name)) is not None:
            cells[name] = moments
        else:
            cells[name] = columns.numbers(name)
    if len(columns.names) == 1 and names[0] not in _KNOWN:
        cells = {"value": cells[names[0]]}
    cells = {name.lower() if name.lower() in _MEANT else name: column for name, column in cells.items()}
    return _Table(columns.path, cells, range(1, columns.table.num_rows + 1), "row", plain, others)


def _find_times(table: _Table) -> None:
    """Give the column of times its name; a file that may have one under another name is refused."""
    if "timestamp" in table.cells:
        return
    found = [name for name in table.cells if name in _TIMES]
    if len(found) == 1:
        table.cells["timestamp"] = table.cells.pop(found[0])
        return
    if table.plain and (others := found or table.others):
        raise ConfigError(
            f"{table.path}: no column 'timestamp', which {' or '.join(map(repr, others[:3]))} may be; "
            "name it so, or leave such columns out if the points are in order of time"
        )


def _unpivot(table: _Table) -> _Table:
    """Return a file with a column for each series, as dashboards export it, with a row for each point."""
    names = [name for name in table.cells if name not in _MEANT]
    if not names or {"service", "metric"} & set(table.cells):
        return table
    rows, times = len(table.lines), table.cells["timestamp"]
    every = [table.cells[name] for name in names]
    numeric = isinstance(times, np.ndarray)
    cells: dict[str, Sequence[str] | FloatArray] = {
        "timestamp": np.tile(times, len(names)) if numeric else [*times] * len(names),
        "metric": [name for name in names for _ in range(rows)],
        "value": [cell for cells in every for cell in cells],
    }
    return _Table(table.path, cells, [*table.lines] * len(names), table.unit, table.plain, wide=True)


def _check_columns(table: _Table, plain: bool) -> None:
    wanted = [] if plain else ["service", "metric", "timestamp"]
    counts = "samples" in table.cells or "total" in table.cells
    if counts and "value" in table.cells:
        raise ConfigError(f"{table.path}: has both value and samples, total; give one of the two")
    wanted += ["samples", "total"] if counts else ["value"]
    if missing := [name for name in wanted if name not in table.cells]:
        raise ConfigError(f"{table.path}: no column {missing[0]!r}; it has {_some(list(table.cells))}")


def _some(names: Sequence[str]) -> str:
    """Write the first of some names, which may be thousands."""
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more or "none that is known"


def _split(table: _Table, duplicates: Duplicates) -> tuple[Series, ...]:
    """Check every cell, and put the rows of each series together, in order of time."""
    rows = len(table.lines)
    counts = "samples" in table.cells
    keys = list(
        zip(
            _texts(table, "service", "", rows),
            _kinds(table, "subroutine" if counts else "service", rows),
            _texts(table, "metric", "value", rows),
            strict=True,
        )
    )
    series = sorted(set(keys))
    position = {key: number for number, key in enumerate(series)}
    row_of: IntArray = np.array([position[key] for key in keys], dtype=np.int64)
    times = _moments(table) if "timestamp" in table.cells else None
    values = _numbers(table, "samples" if counts else "value", missing=table.plain and not counts)
    totals = _numbers(table, "total") if counts else None
    if totals is not None:
        _check_counts(table, values, totals)
    order = np.lexsort((np.arange(rows) if times is None else times, row_of))
    if times is not None:
        same = (np.diff(row_of[order]) == 0) & (np.diff(times[order]) == 0)
        if same.any():
            if duplicates == "refuse":
                hint = "; --duplicates mean or last takes such files" if table.plain else ""
                again = int(order[1:][same].min())
                table.refuse(again, "timestamp", f"the series has a point at this time already{hint}")
            values, totals, order = _one_a_time(values, totals, order, same, duplicates)
    bounds = np.searchsorted(row_of[order], np.arange(len(series) + 1)).tolist()
    return tuple(
        Series(
            service,
            kind,
            metric,
            None if times is None else times[order[first:last]],
            values[order[first:last]],
            None if totals is None else totals[order[first:last]],
            MetricMetadata() if counts else _metadata(table, int(order[last - 1])),
        )
        for (service, kind, metric), first, last in zip(series, bounds[:-1], bounds[1:], strict=True)
    )


def _one_a_time(
    values: FloatArray, totals: FloatArray | None, order: IntArray, same: BoolArray, duplicates: Duplicates
) -> tuple[FloatArray, FloatArray | None, IntArray]:
    """Return values and totals with one point a time, and the order of the rows that are left.

    Args:
        values: (rows,).
        totals: (rows,) or None.
        order: (rows,) by series, time and row.
        same: (rows - 1,) whether a point of that order is of the time of the one before it.
        duplicates: Which one is left.
    """
    first = np.concatenate([[True], ~same])
    kept = order[np.concatenate([~same, [True]])]
    if duplicates == "last":
        return values, totals, kept
    of = np.cumsum(first) - 1
    sums = np.bincount(of, np.nan_to_num(values[order]))
    if totals is not None:
        values, totals = values.copy(), totals.copy()
        values[kept], totals[kept] = sums, np.bincount(of, totals[order])
        return values, totals, kept
    known = np.bincount(of, ~np.isnan(values[order]))
    means = np.divide(sums, known, out=np.full(len(sums), np.nan), where=known > 0)
    values = values.copy()
    values[kept] = means
    return values, totals, kept


def _texts(table: _Table, column: str, default: str, rows: int) -> list[str]:
    cells = table.cells.get(column)
    if cells is None:
        return [default] * rows
    texts = [str(cell).strip() for cell in cells]
    if "" in texts:
        table.refuse(texts.index(""), column, "missing")
    return texts


def _kinds(table: _Table, default: MetricKind, rows: int) -> list[MetricKind]:
    allowed = [kind for kind in METRIC_KINDS if is_gcpu(kind) == is_gcpu(default)]
    kinds = _texts(table, "metric_kind", default, rows)
    for row, kind in enumerate(kinds):
        if kind not in allowed:
            table.refuse(row, "metric_kind", f"should be {' or '.join(allowed)}, not {kind[:40]!r}")
    return kinds  # type: ignore[return-value]  # the literal's values, just checked


def _metadata(table: _Table, row: int) -> MetricMetadata:
    """Return what a row says of its metric: what the file says last counts."""
    said = {name: str(table.cells[name][row]).strip() for name in METADATA if name in table.cells}
    said = {name: "" if text.lower() in _MISSING else text for name, text in said.items()}
    if (direction := said.get("direction", "")) not in ("", *DIRECTIONS):
        table.refuse(row, "direction", f"should be {', '.join(DIRECTIONS)}, not {direction[:40]!r}")
    return MetricMetadata(**said)


def _numbers(table: _Table, column: str, *, missing: bool = False) -> FloatArray:
    cells = table.cells[column]
    if missing and not isinstance(cells, np.ndarray):
        cells = ["nan" if str(cell).strip().lower() in _MISSING else cell for cell in cells]
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        row = next(row for row, cell in enumerate(cells) if not _is_number(str(cell)))
        text = str(cells[row]).strip()
        table.refuse(row, column, f"not a number: {text[:40]!r}" if text else "missing")
    wrong = ~np.isfinite(values) & ~(missing & np.isnan(values))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        table.refuse(row, column, f"should be finite, not {values[row]}")
    return values


def _moments(table: _Table) -> FloatArray:
    cells = table.cells["timestamp"]
    years = table.plain and _hold_years(cells)
    try:
        if years:
            raise ValueError
        times = np.array(cells, dtype=np.float64)
    except ValueError:
        times = np.array([_moment(table, row, str(cell), years) for row, cell in enumerate(cells)])
    times = times / _ticks_a_second(times)
    earliest, latest = (_YEAR_1_S, _YEAR_10000_S) if table.plain else (EARLIEST_S, LATEST_S)
    outside = ~((times >= earliest) & (times < latest))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        span = "the years 1 and 9999" if table.plain else "2000 and 2100"
        table.refuse(row, "timestamp", f"{cells[row]} is no time between {span} in epoch seconds")
    return times


def _ticks_a_second(times: FloatArray) -> float:
    """Return 1,000 where all times are milliseconds, and so on: as seconds none of them would be a time."""
    for ticks in (1e3, 1e6, 1e9):
        if len(times) and ((times >= EARLIEST_S * ticks) & (times < LATEST_S * ticks)).all():
            return ticks
    return 1.0


def _hold_years(cells: Sequence[str] | FloatArray) -> bool:
    """Return whether all numbers are years: as epoch seconds they would lie in the first hours of 1970."""
    texts = (str(cell).strip() for cell in cells)
    return all(_YEAR.fullmatch(text) for text in texts if _is_number(text))


def _moment(table: _Table, row: int, text: str, years: bool) -> float:
    text = text.strip()
    if years and _is_number(text):
        text = text[:4]
    elif _is_number(text):
        return float(text)
    if table.plain and re.fullmatch(r"\d{4}(-\d\d)?", text):
        text += "-01-01" if len(text) == 4 else "-01"
    try:
        return from_iso(text)
    except InvalidMessage as error:
        table.refuse(row, "timestamp", f"{error}" if text else "missing")


def _check_counts(table: _Table, samples: FloatArray, totals: FloatArray) -> None:
    for column, values in (("samples", samples), ("total", totals)):
        if (values < 0).any():
            row = int(np.flatnonzero(values < 0)[0])
            table.refuse(row, column, f"negative: {values[row]:g}")
    if (samples > totals).any():
        row = int(np.flatnonzero(samples > totals)[0])
        table.refuse(row, "samples", f"{samples[row]:g} of a total of {totals[row]:g}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
