"""Series of a table, each in order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pipeline.analysis.detect.metric_direction import DIRECTIONS
from pipeline.backtest.seriesfile.measures import as_ucum, in_one_unit
from pipeline.backtest.seriesfile.quantities import (
    Decimals,
    EitherMark,
    Quantities,
    WrongCell,
    decimal_mark,
    read_quantities,
)
from pipeline.backtest.seriesfile.table import METADATA, MISSING, Table
from pipeline.backtest.seriesfile.times import Times, read_times, repeated_hour
from pipeline.model import METRIC_KINDS, BoolArray, FloatArray, IntArray, MetricKind, MetricMetadata, is_gcpu

Duplicates = Literal["mean", "last", "refuse"]
"""Handling of several points of a series at one time: their mean, the last one, or an error."""


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
        """(points,) values, or shares if there are totals; NaN where a value is missing or a total is 0."""
        if self.totals is None:
            return self.values
        has_samples = self.totals > 0
        shares: FloatArray = np.divide(
            self.values, self.totals, out=np.full(len(has_samples), np.nan), where=has_samples
        )
        return shares


@dataclass(frozen=True, slots=True)
class _Points:
    """The columns of a table as arrays of all its rows."""

    series: tuple[tuple[str, MetricKind, str], ...]  # service, kind, metric; sorted
    series_of: IntArray  # (rows,)
    times: FloatArray | None  # (rows,)
    is_local: bool  # whether clocks that are put forward and back may have written the times
    values: FloatArray  # (rows,)
    totals: FloatArray | None  # (rows,)
    units: tuple[str, ...]  # (series,) units of the values; "" if no cell names one


def split_series(
    table: Table, *, service: str, plain: bool, duplicates: Duplicates
) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """Check every cell, and group the rows by series, in order of time.

    Args:
        table: As ``layout.lay_out`` leaves it.
        service: The service of the series if the table has no such column.
        plain: True if values may be missing and times may lie before 2000.
        duplicates: Handling of several points of a series at one time.

    Returns:
        The series, sorted by service, kind and name, and the assumptions about cells.

    Raises:
        ConfigError: the line and column of a wrong cell.
    """
    points, assumed = _points(table, service, plain)
    rows = np.arange(len(table.lines))
    if table.wide and not plain:
        rows = rows[~np.isnan(points.values)]
    order = rows[np.lexsort((rows if points.times is None else points.times[rows], points.series_of[rows]))]
    values, totals = points.values, points.totals
    if points.times is not None:
        same = (np.diff(points.series_of[order]) == 0) & (np.diff(points.times[order]) == 0)
        if duplicates == "refuse" or not same.any():
            _check_order(table, points, rows, order[1:][same], plain)
        elif same.any():
            values, totals, order = _one_a_time(values, totals, order, same, duplicates)
    bounds = np.searchsorted(points.series_of[order], np.arange(len(points.series) + 1)).tolist()
    return tuple(
        Series(
            *key,
            None if points.times is None else points.times[order[first:last]],
            values[order[first:last]],
            None if totals is None else totals[order[first:last]],
            MetricMetadata() if totals is not None else _metadata(table, int(order[last - 1]), unit),
        )
        for key, unit, first, last in zip(points.series, points.units, bounds[:-1], bounds[1:], strict=True)
        if last > first
    ), assumed


def _check_order(table: Table, points: _Points, rows: IntArray, again: IntArray, plain: bool) -> None:
    """Refuse rows whose time the series has already, or may have had before clocks were put back.

    Args:
        table: For the refusal.
        points: Of the table, with times.
        rows: (points,) rows that hold a point, in the order of the file.
        again: Rows with the time of another row of their series.
        plain: Whether the command has the option --duplicates.
    """
    assert points.times is not None
    hint = "; --duplicates mean or last takes such files" if plain else ""
    if points.is_local:
        position = repeated_hour(points.times[rows], points.series_of[rows])
        if position is not None:
            what = "clocks seem to have been put back here: write times with an offset such as +01:00"
            table.refuse(int(rows[position]), "timestamp", what + (hint if len(again) else ""))
        hint += "; if clocks were put back, write times with an offset such as +01:00"
    if len(again):
        table.refuse(int(again.min()), "timestamp", f"the series has a point at this time already{hint}")


def _points(table: Table, service: str, plain: bool) -> tuple[_Points, tuple[str, ...]]:
    counts = "samples" in table.cells
    kinds = _kinds(table, "subroutine" if counts else "service")
    keys = list(zip(_texts(table, "service", service), kinds, _texts(table, "metric", "value"), strict=True))
    series = tuple(sorted(set(keys)))
    position = {key: number for number, key in enumerate(series)}
    series_of: IntArray = np.array([position[key] for key in keys], dtype=np.int64)
    _check_units(table, series_of)
    times = read_times(table, any_year=plain) if "timestamp" in table.cells else Times(None, False, ())
    missing = (plain or table.wide) and not counts
    values, units, assumptions = _numbers(table, "samples" if counts else "value", series_of, missing=missing)
    totals = None
    if counts:
        totals, _, total_assumptions = _numbers(table, "total", series_of, missing=False)
        _check_counts(table, values, totals)
        assumptions = (*assumptions, *total_assumptions)
    points = _Points(series, series_of, times.seconds, times.is_local, values, totals, units)
    return points, (*times.assumed, *assumptions)


def _check_units(table: Table, series_of: IntArray) -> None:
    """Refuse a series whose rows name several units, since its values would be compared as they are."""
    units: dict[int, str] = {}
    cells = table.cells.get("unit", [""] * len(table.lines))
    for row, (series, cell) in enumerate(zip(series_of.tolist(), cells, strict=True)):
        unit = str(cell).strip()
        if unit.lower() not in MISSING and units.setdefault(series, unit) != unit:
            table.refuse(row, "unit", f"{unit[:40]}, where the series is in {units[series][:40]} before")


def _numbers(
    table: Table, column: str, series_of: IntArray, *, missing: bool
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...]]:
    """Return a column of numbers, the unit of each series, and the assumptions about both."""
    try:
        quantities = _quantities(table, column, series_of, missing)
        values, units, assumptions = _in_one_unit(quantities, series_of)
    except WrongCell as error:
        table.refuse(error.row, column, str(error))
    wrong = ~np.isfinite(values) & ~(missing & np.isnan(values))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        has_text = not (np.isnan(values[row]) and isinstance(table.cells[column], np.ndarray))
        table.refuse(row, column, f"should be finite, not {values[row]}" if has_text else "missing")
    return (
        values,
        units,
        tuple(f"{column}: {assumption}" for assumption in dict.fromkeys((*quantities.assumed, *assumptions))),
    )


def _quantities(table: Table, column: str, series_of: IntArray, missing: bool) -> Quantities:
    cells = table.cells[column]
    if isinstance(cells, np.ndarray):
        return Quantities(cells, np.zeros(len(cells), dtype=np.int64), ("",))
    if missing:
        cells = ["nan" if cell.strip().lower() in MISSING else cell for cell in cells]
    try:
        return read_quantities(cells, table.decimals, series_of)
    except EitherMark:
        marks = {mark: name for name in table.cells if name != column and (mark := _mark(table, name))}
        if len(marks) != 1:
            raise
        ((mark, name),) = marks.items()
        quantities = read_quantities(cells, Decimals(given=mark), series_of)
        return replace(quantities, assumed=(*quantities.assumed, f"decimals as in {name[:100]}"))


def _mark(table: Table, column: str) -> str:
    """Return what stands before decimals in a column, "." or ","; empty if it does not say."""
    cells = table.cells[column]
    if isinstance(cells, np.ndarray):
        return ""
    return decimal_mark([cell for cell in cells if cell.strip().lower() not in MISSING])


def _in_one_unit(
    quantities: Quantities, series_of: IntArray
) -> tuple[FloatArray, tuple[str, ...], Sequence[str]]:
    """Return (rows,) values, the unit of each series, and the assumptions."""
    series = int(series_of.max()) + 1
    if quantities.units == ("",):
        return quantities.numbers, ("",) * series, ()
    order = np.argsort(series_of, kind="stable")
    bounds = np.searchsorted(series_of[order], np.arange(1, series))
    values = quantities.numbers.copy()
    units, assumptions = [], []
    for rows in np.split(order, bounds):
        values[rows], unit, assumption = in_one_unit(quantities, rows)
        units.append(unit)
        assumptions.append(assumption)
    return values, tuple(units), [assumption for assumption in dict.fromkeys(assumptions) if assumption]


def _one_a_time(
    values: FloatArray, totals: FloatArray | None, order: IntArray, same: BoolArray, duplicates: Duplicates
) -> tuple[FloatArray, FloatArray | None, IntArray]:
    """Return values and totals with one point per series and time, and the order of the remaining rows.

    Args:
        values: (rows,).
        totals: (rows,) or None.
        order: (rows,) by series, time and row.
        same: (rows - 1,) True where a point of that order has the time of the point before it.
        duplicates: "mean" or "last".
    """
    first = np.concatenate([[True], ~same])
    last_rows = order[np.concatenate([~same, [True]])]
    if duplicates == "last":
        return values, totals, last_rows
    of = np.cumsum(first) - 1
    sums = np.bincount(of, np.nan_to_num(values[order]))
    if totals is not None:
        values, totals = values.copy(), totals.copy()
        values[last_rows], totals[last_rows] = sums, np.bincount(of, totals[order])
        return values, totals, last_rows
    present = np.bincount(of, ~np.isnan(values[order]))
    means = np.divide(sums, present, out=np.full(len(sums), np.nan), where=present > 0)
    values = values.copy()
    values[last_rows] = means
    return values, totals, last_rows


def _texts(table: Table, column: str, default: str) -> list[str]:
    if column not in table.cells:
        return [default] * len(table.lines)
    texts = [str(cell).strip() for cell in table.cells[column]]
    if "" in texts:
        table.refuse(texts.index(""), column, "missing")
    return texts


def _kinds(table: Table, default: MetricKind) -> list[MetricKind]:
    allowed = [kind for kind in METRIC_KINDS if is_gcpu(kind) == is_gcpu(default)]
    kinds = _texts(table, "metric_kind", default)
    for row, kind in enumerate(kinds):
        if kind not in allowed:
            table.refuse(row, "metric_kind", f"should be {' or '.join(allowed)}, not {kind[:40]!r}")
    return kinds  # type: ignore[return-value]  # the literal's values, just checked


def _metadata(table: Table, row: int, unit: str) -> MetricMetadata:
    """Return the metadata of a metric from its row; a unit in that row overrides the unit of cells."""
    texts = {name: str(table.cells[name][row]).strip() for name in METADATA if name in table.cells}
    texts = {name: "" if text.lower() in MISSING else text for name, text in texts.items()}
    if (direction := texts.get("direction", "")) not in ("", *DIRECTIONS):
        table.refuse(row, "direction", f"should be {', '.join(DIRECTIONS)}, not {direction[:40]!r}")
    metadata = MetricMetadata(**texts)
    return metadata if metadata.unit or not unit else replace(metadata, unit=as_ucum(unit))


def _check_counts(table: Table, samples: FloatArray, totals: FloatArray) -> None:
    for column, values in (("samples", samples), ("total", totals)):
        if (values < 0).any():
            row = int(np.flatnonzero(values < 0)[0])
            table.refuse(row, column, f"negative: {values[row]:g}")
    if (samples > totals).any():
        row = int(np.flatnonzero(samples > totals)[0])
        table.refuse(row, "samples", f"{samples[row]:g} of a total of {totals[row]:g}")
