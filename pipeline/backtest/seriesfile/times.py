"""Times of points: ISO 8601, epoch seconds or parts of them, and years, decided over the whole column."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from pipeline.backtest.seriesfile.quantities import is_number
from pipeline.backtest.seriesfile.table import Cells, Table
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model import FloatArray
from pipeline.model.clock import from_iso, has_date_digits
from pipeline.model.errors import InvalidMessage

_YEAR = re.compile(r"[1-9]\d{3}(\.0*)?")
_YEAR_1_S = -62_135_596_800.0
_YEAR_10000_S = 253_402_300_800.0
_TICKS = {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}


def read_times(table: Table, *, any_year: bool) -> tuple[FloatArray, tuple[str, ...]]:
    """Return (rows,) epoch seconds of the column ``timestamp``, and what was assumed of it.

    Args:
        table: With that column.
        any_year: Whether times since the year 1 are taken, months and years too, not only those since 2000.

    Raises:
        ConfigError: the line of what is no such time.
    """
    cells = table.cells["timestamp"]
    if table.decimal_comma and not isinstance(cells, np.ndarray):
        cells = [cell.replace(",", ".") for cell in cells]
    numbers = _numbers(cells)
    dates = bool(numbers) and all(has_date_digits(text) for text in numbers)
    if dates and not all(len(text) == 8 and _is_iso(text) for text in numbers):
        row = next(row for row, cell in enumerate(cells) if _spelt(cell) in numbers)
        what = "digits alone may be dates or seconds: write 2026-01-31T12:00, or seconds with a decimal point"
        table.refuse(row, "timestamp", f"{_spelt(cells[row])}: {what}")
    # As epoch seconds they would lie in the first hours of 1970.
    years = any_year and bool(numbers) and all(_YEAR.fullmatch(text) for text in numbers)
    try:
        if years or dates:
            raise ValueError
        times = np.array(cells, dtype=np.float64)
    except ValueError:
        reading = _Reading(table, any_year, years, dates)
        times = np.array([reading.moment(row, _spelt(cell)) for row, cell in enumerate(cells)])
    unit = next((unit for unit, ticks in _TICKS.items() if _all_after_2000(times, ticks)), "")
    times = times / _TICKS.get(unit, 1.0)
    earliest, latest = (_YEAR_1_S, _YEAR_10000_S) if any_year else (EARLIEST_S, LATEST_S)
    outside = ~((times >= earliest) & (times < latest))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        span = "the years 1 and 9999" if any_year else "2000 and 2100"
        table.refuse(row, "timestamp", f"{cells[row]} is no time between {span} in epoch seconds")
    kinds = {f"times in {unit}": bool(unit), "times are years": years, "times are dates of digits": dates}
    return times, tuple(kind for kind, holds in kinds.items() if holds)


def _all_after_2000(times: FloatArray, ticks: float) -> bool:
    """Return whether all times lie between 2000 and 2100 in parts of a second: as seconds none would."""
    return bool(len(times) and ((times >= EARLIEST_S * ticks) & (times < LATEST_S * ticks)).all())


def _spelt(cell: str | float) -> str:
    """Return the text of a cell; whole numbers of a format with types have no decimal point."""
    return cell.strip() if isinstance(cell, str) else f"{cell:.15g}"


def _is_iso(text: str) -> bool:
    try:
        from_iso(text)
    except InvalidMessage:
        return False
    return True


def _numbers(cells: Cells) -> list[str]:
    return [text for text in map(_spelt, cells) if is_number(text)]


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the cells of a column are read, as the whole column says."""

    table: Table
    any_year: bool
    years: bool  # numbers are years
    dates: bool  # numbers are dates without separators

    def moment(self, row: int, text: str) -> float:
        """Return the epoch seconds, or their parts, of one cell."""
        if self.years and is_number(text):
            text = text[:4]
        elif is_number(text) and not self.dates:
            return float(text)
        if self.any_year and re.fullmatch(r"\d{4}(-\d\d)?", text):
            text += "-01-01" if len(text) == 4 else "-01"
        try:
            return from_iso(text)
        except InvalidMessage as error:
            self.table.refuse(row, "timestamp", f"{error}" if text else "missing")
