"""Times of points: ISO 8601, epoch seconds or parts of them, and years, decided over the whole column."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from pipeline.backtest.seriesfile.quantities import is_number
from pipeline.backtest.seriesfile.table import Cells, Table
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model import FloatArray, IntArray
from pipeline.model.clock import from_iso, has_date_digits, has_offset
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import DAY_S, HOUR_S

_YEAR = re.compile(r"[1-9]\d{3}(\.0*)?")
_CLOCK = re.compile(r"[:Tt ]")
_YEAR_1_S = -62_135_596_800.0
_YEAR_10000_S = 253_402_300_800.0
_TICKS = {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
_DAY_NUMBERS = ((10_957.0, 73_415.0), (730_486.0, 767_012.0), (2_451_544.0, 2_488_071.0))
"""Days between 2000 and 2100 as programs count them: from 1970 or 1900 (spreadsheets), year 0, and -4712."""

_BETWEEN_CHANGES_S = 90 * DAY_S
"""Clocks are put back at most once in this time."""


@dataclass(frozen=True, slots=True)
class Times:
    """The column of times. ``is_local``: clocks that are put forward and back may have written it."""

    seconds: FloatArray | None  # (rows,) since the epoch; None where a file has no times
    is_local: bool
    assumed: tuple[str, ...]


def read_times(table: Table, *, any_year: bool) -> Times:
    """Read the column ``timestamp``.

    Args:
        table: With that column.
        any_year: Whether times since the year 1 are taken, months and years too, not only those since 2000.

    Raises:
        ConfigError: the line of what is no such time, or may be another one.
    """
    cells = table.cells["timestamp"]
    if (table.decimals.given or table.decimals.presumed) == "," and not isinstance(cells, np.ndarray):
        cells = [cell.replace(",", ".") for cell in cells]
    numbers = _numbers(cells)
    dates = bool(numbers) and all(has_date_digits(text) for text in numbers)
    if dates and not all(len(text) == 8 and _is_iso(text) for text in numbers):
        row = next(row for row, cell in enumerate(cells) if _spelt(cell) in numbers)
        what = "digits alone may be dates or seconds: write 2026-01-31T12:00, or seconds with a decimal point"
        table.refuse(row, "timestamp", f"{_spelt(cells[row])}: {what}")
    # As epoch seconds they would lie in the first hours of 1970.
    years = any_year and bool(numbers) and all(_YEAR.fullmatch(text) for text in numbers)
    is_local = table.is_local
    try:
        if years or dates:
            raise ValueError
        times = np.array(cells, dtype=np.float64)
    except ValueError:
        reading = _Reading(table, any_year, years, dates)
        texts = [_spelt(cell) for cell in cells]
        times = np.array([reading.moment(row, text) for row, text in enumerate(texts)])
        is_local = reading.is_local(texts)
    unit = next((unit for unit, ticks in _TICKS.items() if _all_after_2000(times, ticks)), "")
    times = times / _TICKS.get(unit, 1.0)
    is_of_1970 = bool(
        len(numbers) == len(cells) and not (unit or years or dates) and (times < EARLIEST_S).all()
    )
    if is_of_1970 and any(((times >= first) & (times < end)).all() for first, end in _DAY_NUMBERS):
        what = "may be days, as of a spreadsheet, or seconds: write 2026-01-31T12:00, or count from 0"
        table.refuse(0, "timestamp", f"{_spelt(cells[0])} {what}")
    earliest, latest = (_YEAR_1_S, _YEAR_10000_S) if any_year else (EARLIEST_S, LATEST_S)
    outside = ~((times >= earliest) & (times < latest))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        span = "the years 1 and 9999" if any_year else "2000 and 2100"
        table.refuse(row, "timestamp", f"{cells[row]} is no time between {span} in epoch seconds")
    kinds = {
        f"times in {unit}": bool(unit),
        "times are years": years,
        "times are dates of digits": dates,
        "times in seconds, before 2000 if since 1970": is_of_1970,
        "times without an offset are UTC": is_local,
    }
    return Times(times, is_local, tuple(kind for kind, holds in kinds.items() if holds))


def repeated_hour(times: FloatArray, series_of: IntArray) -> int | None:
    """Return the first row after clocks were put back by an hour, if times in a file's order say so.

    They do if the times of each series rise (or fall), except where they return by an hour less one or two
    intervals, to the beginning of an hour, at most once in 90 days. Files that follow one another in a file
    look so only by chance.

    Args:
        times: (rows,) seconds as clocks showed them, in the order of the file.
        series_of: (rows,).
    """
    rows = np.argsort(series_of, kind="stable")
    if np.median(np.diff(times[rows])) < 0:  # the newest first
        rows = rows[::-1]
    steps, within = np.diff(times[rows]), np.diff(series_of[rows]) == 0
    rises, returns = steps[within & (steps > 0)], np.flatnonzero(within & (steps <= 0))
    if not len(returns) or len(rises) < 2:
        return None
    interval = float(np.median(rises))
    if interval > HOUR_S:
        return None
    landed, series, back = times[rows][returns + 1], series_of[rows][returns], steps[returns]
    is_put_back = (back >= -HOUR_S) & (back <= 2 * interval - HOUR_S) & (landed % HOUR_S < 2 * interval)
    is_rare = (np.diff(landed) > _BETWEEN_CHANGES_S) | (np.diff(series) != 0)
    return int(rows[returns + 1].min()) if is_put_back.all() and is_rare.all() else None


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

    def is_local(self, texts: list[str]) -> bool:
        """Return whether times of the day have no offset; refuse them beside times that have one."""
        zoned = [has_offset(text) or (is_number(text) and not (self.dates or self.years)) for text in texts]
        if any(zoned) and not all(zoned):
            has, lacks = texts[zoned.index(True)], texts[zoned.index(False)]
            what = f"{lacks} has no offset from UTC, {has} has one: write it, such as Z or +01:00, in all"
            self.table.refuse(zoned.index(not zoned[0]), "timestamp", what)
        return not all(zoned) and any(_CLOCK.search(text) for text in texts)
