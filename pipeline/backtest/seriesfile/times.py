"""Times of points: ISO 8601, epoch seconds or parts of them, and years, decided over the whole column."""

from __future__ import annotations

import re

import numpy as np

from pipeline.backtest.seriesfile.quantities import is_number
from pipeline.backtest.seriesfile.table import Table
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model import FloatArray
from pipeline.model.clock import from_iso
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
    numbers = [text for text in (str(cell).strip() for cell in cells) if is_number(text)] if any_year else []
    # As epoch seconds they would lie in the first hours of 1970.
    years = bool(numbers) and all(_YEAR.fullmatch(text) for text in numbers)
    try:
        if years:
            raise ValueError
        times = np.array(cells, dtype=np.float64)
    except ValueError:
        times = np.array([_moment(table, row, str(cell), any_year, years) for row, cell in enumerate(cells)])
    unit = next((unit for unit, ticks in _TICKS.items() if _all_after_2000(times, ticks)), "")
    times = times / _TICKS.get(unit, 1.0)
    earliest, latest = (_YEAR_1_S, _YEAR_10000_S) if any_year else (EARLIEST_S, LATEST_S)
    outside = ~((times >= earliest) & (times < latest))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        span = "the years 1 and 9999" if any_year else "2000 and 2100"
        table.refuse(row, "timestamp", f"{cells[row]} is no time between {span} in epoch seconds")
    said = f"times in {unit}" if unit else "times are years" if years else ""
    return times, (said,) if said else ()


def _all_after_2000(times: FloatArray, ticks: float) -> bool:
    """Return whether all times lie between 2000 and 2100 in parts of a second: as seconds none would."""
    return bool(len(times) and ((times >= EARLIEST_S * ticks) & (times < LATEST_S * ticks)).all())


def _moment(table: Table, row: int, text: str, any_year: bool, years: bool) -> float:
    text = text.strip()
    if years and is_number(text):
        text = text[:4]
    elif is_number(text):
        return float(text)
    if any_year and re.fullmatch(r"\d{4}(-\d\d)?", text):
        text += "-01-01" if len(text) == 4 else "-01"
    try:
        return from_iso(text)
    except InvalidMessage as error:
        table.refuse(row, "timestamp", f"{error}" if text else "missing")
