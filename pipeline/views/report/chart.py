"""A series as a few lines of text: its windows and change point, and the filters' view of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray
from pipeline.model.units import format_duration
from pipeline.views.report.explain import level, moment
from pipeline.views.report.study import Study
from pipeline.views.report.windows import DrawnSeries, ScanWindows

_LABEL = 12  # width of the numbers on the left
_NAME = 9  # width of the names under the plot, as those of the story's facts
_ROUNDING_S = 1e-3  # by which the start of a window may fall short of its column
_SHARES = {"history": 0.4, "analysis": 0.3, "extended": 0.2, "later": 0.1}
"""Shares of the width. On a common scale ten days would leave a four-hour window one column."""


@dataclass(frozen=True, slots=True)
class _Section:
    """One window of the scan, with a time scale of its own."""

    name: str
    start: float
    end: float
    edges: FloatArray  # (columns + 1,) times


def draw_chart(
    line: DrawnSeries,
    windows: ScanWindows,
    *,
    change_time: float,
    before: float,
    after: float,
    width: int = 100,
    height: int = 12,
) -> list[str]:
    """Draw a series: a dot is the mean of its column's windows, dashes are the levels before and after.

    Each window of the scan has a time scale of its own, written below it.

    Args:
        line: Any span; points before the scan are left out, points after it stand at the end.
        windows: Of the scan.
        change_time: Start of the new regime.
        before: Level before it.
        after: Level after it.
        width: Columns in all, at least 40.
        height: Rows of the plot.

    Returns:
        Lines without colour.
    """
    sections = _sections(line, windows, max(width, 40) - _LABEL)
    means = [_column_means(line, section.edges) for section in sections]
    if np.isnan(np.concatenate(means)).all():
        return ["no data"]
    scale = _scale([*means, np.array([before, after])], height)
    columns: list[list[str]] = []
    for section, values in zip(sections, means, strict=True):
        if columns:
            columns.append([*("┊" * height), " "])
        columns += _paint(section, values, scale, change_time, before, after)
    rows = ["".join(column[row] for column in columns).rstrip() for row in range(height + 1)]
    pointer = [f"{rows[height]} {moment(change_time)}"] if rows[height] else []
    labels = [scale.label(row, line.ratio) for row in range(height)] + [""] * 2
    names = " ".join(_centred(section, len(values)) for section, values in zip(sections, means, strict=True))
    lines = [*rows[:height], *pointer, names.rstrip()]
    return [f"{label:>{_LABEL - 2}} {text}" for label, text in zip(labels, lines, strict=False)]


def describe_study(study: Study, *, ratio: bool, width: int = 100) -> list[str]:
    """Write SAX letters, trend and season, each where known; SAX letters that do not fit are left out.

    Args:
        study: What the filters see.
        ratio: Whether levels are gCPU.
        width: Columns in all, at least 40.

    Returns:
        Lines without colour.
    """
    rows: list[tuple[str, str]] = []
    if study.went_away:
        pattern = study.went_away.pattern
        length = f"{pattern.block} windows" if pattern.block > 1 else "a window"
        first = "lowest" if pattern.width > 0 else "highest"
        rows += [
            ("SAX", _sax_letters(pattern.before, pattern.after, max(width, 40) - _NAME)),
            (
                "",
                f"a SAX letter: {length}; a: {first} of 20 buckets; valid before: {pattern.valid or 'none'}",
            ),
        ]
    if study.rise is not None:
        rise = f"{_size(study.rise, ratio)} from the change to the end of the scan (Theil-Sen)"
        rows.append(("trend", rise))
    season = "none found"
    if study.season is not None and study.trend is not None:
        swing = float(np.ptp(study.season - study.trend))
        season = f"{' and '.join(study.seasons)}, {_size(swing, ratio).lstrip('+')} from low to high"
    rows.append(("season", season))
    return [f"{name:<{_NAME}}{text}" for name, text in rows]


def _sax_letters(before: str, after: str, columns: int) -> str:
    """Join the SAX letters on both sides of the change; if too many, those next to it and the newest ones."""
    if len(after) > columns * 2 // 3:
        half = columns // 3 - 1
        after = f"{after[:half]}…{after[-half:]}"
    room = columns - len(after) - 3
    return f"{before if len(before) <= room else '…' + before[1 - room :]} ▲ {after}"


def _size(value: float, ratio: bool) -> str:
    return f"{value * 100:+.3g} points" if ratio else f"{value:+.4g}"


@dataclass(frozen=True, slots=True)
class _Scale:
    """Levels as rows, the highest first."""

    low: float
    high: float
    rows: int

    def row(self, value: float) -> int:
        return round((self.high - value) / (self.high - self.low) * (self.rows - 1))

    def label(self, row: int, ratio: bool) -> str:
        if row not in (0, self.rows // 2, self.rows - 1):
            return ""
        return level(self.high - (self.high - self.low) * row / (self.rows - 1), ratio=ratio)


def _scale(shown: list[FloatArray], rows: int) -> _Scale:
    values = np.concatenate(shown)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    pad = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return _Scale(low - pad, high + pad, rows)


def _paint(
    section: _Section, values: FloatArray, scale: _Scale, change_time: float, before: float, after: float
) -> list[list[str]]:
    """Return the cells of each column, and the marks under them."""
    columns = []
    for value, start, end in zip(values.tolist(), section.edges[:-1], section.edges[1:], strict=True):
        begins = start <= change_time + _ROUNDING_S < end
        cells = ["│" if begins else " "] * scale.rows
        cells[scale.row(before if start < change_time else after)] = "╌"
        if not np.isnan(value):
            cells[scale.row(value)] = "•"
        columns.append([*cells, "▲" if begins else " "])
    return columns


def _sections(line: DrawnSeries, windows: ScanWindows, columns: int) -> list[_Section]:
    rows = np.flatnonzero(~np.isnan(line.values))
    latest = float(line.times[rows[-1]]) + windows.resolution_s if len(rows) else windows.end
    spans = [
        ("history", windows.start, windows.analysis_start),
        ("analysis", windows.analysis_start, windows.analysis_end),
        ("extended", windows.analysis_end, windows.end),
        ("later", windows.end, latest),
    ]
    spans = [span for span in spans if span[2] - span[1] >= windows.resolution_s / 2]
    whole = sum(_SHARES[name] for name, _, _ in spans)
    columns -= len(spans) - 1
    sections = []
    for name, start, end in spans:
        points = max(round((end - start) / windows.resolution_s), 1)
        wide = max(int(columns * _SHARES[name] / whole), 1)
        positions = np.linspace(0, points, wide + 1)
        # Give columns whole windows, or neighbours would differ by their numbers of windows.
        edges = start + (np.round(positions) if points > wide else positions) * windows.resolution_s
        sections.append(_Section(name, start, end, edges))
    return sections


def _column_means(line: DrawnSeries, edges: FloatArray) -> FloatArray:
    """Return the mean of the windows that start in each column, NaN where none has data."""
    finite = ~np.isnan(line.values)
    times, values = line.times[finite] + _ROUNDING_S, line.values[finite]
    counts, _ = np.histogram(times, edges)
    sums, _ = np.histogram(times, edges, weights=values)
    means: FloatArray = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means


def _centred(section: _Section, columns: int) -> str:
    for text in (f"{section.name} {format_duration(section.end - section.start)}", section.name, ""):
        if len(text) <= columns:
            return text.center(columns)
    raise AssertionError("nothing always fits")
