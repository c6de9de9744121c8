"""A series over its scan as coordinates in a frame of pixels: ``series.html`` draws them as SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.model import FloatArray
from pipeline.model.clock import to_iso
from pipeline.model.units import DAY_S, HOUR_S, MINUTE_S
from pipeline.views.report.windows import DrawnSeries, ScanWindows

WIDTH, HEIGHT = 1016, 280
"""Pixels of the frame, without its axes."""

_MOST_POINTS = 5000
_DENSE = 0.35  # points a pixel from which on dots would hide the line
_POINT = re.compile(r"[ML]([^ML]+)")
_TICKS_X, _TICKS_Y = 8, 6
_PAD = 0.06  # of the range of values, above and under them
_STEPS_S = (
    *(MINUTE_S * count for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR_S * count for count in (1, 2, 3, 6, 12)),
    *(DAY_S * count for count in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)


Style = Literal["season", "trend", "trend-before"]


@dataclass(frozen=True, slots=True)
class ChartShift:
    """Change point of a series, and its levels on both sides."""

    time: float
    before: float
    after: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class StudyCurve:
    """A line that a study draws through a series from its first window on."""

    values: FloatArray
    style: Style


@dataclass(frozen=True, slots=True)
class Sign:
    """A short text at a time and a level."""

    time: float
    level: float
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis, and its position."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Band:
    """A window of a scan, or the interval of a change, from one x to another."""

    name: str
    left: float
    width: float


@dataclass(frozen=True, slots=True)
class SeriesChart:
    """Everything drawn, in pixels from the top left of the frame."""

    width: int
    height: int
    path: str
    dots: str  # empty where they would hide the line
    dense: bool
    levels: tuple[tuple[float, float, float], ...]  # left, right, y
    curves: tuple[tuple[str, str], ...]  # style, path
    signs: tuple[tuple[float, float, str], ...]  # x, y, text
    bands: tuple[Band, ...]
    change: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    title: str  # of the value axis
    data: dict[str, object]  # data for a script that zooms in


def series_chart(
    line: DrawnSeries,
    windows: ScanWindows,
    shift: ChartShift,
    *,
    curves: Sequence[StudyCurve] = (),
    signs: Sequence[Sign] = (),
    from_zero: bool = False,
) -> SeriesChart:
    """Lay out a series with its scan's windows, the change, levels on both sides, and a study's curves.

    Args:
        line: The series; of more than 5,000 windows only the lowest and highest of neighbours are drawn.
        windows: What the time axis covers.
        shift: The change.
        curves: Lines through the series.
        signs: Texts, such as SAX letters.
        from_zero: Whether the axis of values begins at 0: then a small change looks small.
    """
    scale, unit = (100.0, " %") if line.ratio else (1.0, "")
    frame = _frame(line, windows, shift, curves, signs, scale, from_zero)
    shown = _thinned(line.values)
    times = line.times + windows.resolution_s / 2
    x, y = frame.x(times[shown]), frame.y(line.values[shown] * scale)
    path = _path(x, y)
    dense = len(shown) > _DENSE * WIDTH
    levels = ((windows.start, shift.time, shift.before), (shift.time, windows.end, shift.after))
    return SeriesChart(
        width=WIDTH,
        height=HEIGHT,
        path=path,
        dots="" if dense else _POINT.sub(r"M\1h0", path),
        dense=dense,
        levels=tuple(
            (float(frame.x(start)), float(frame.x(end)), float(frame.y(level * scale)))
            for start, end, level in levels
        ),
        curves=tuple(
            (curve.style, _path(frame.x(times[of]), frame.y(curve.values[of] * scale)))
            for curve, of in ((curve, shown[: np.searchsorted(shown, len(curve.values))]) for curve in curves)
        ),
        signs=tuple((float(frame.x(s.time)), float(frame.y(s.level * scale)), s.text) for s in signs),
        bands=_bands(frame, windows, shift),
        change=float(frame.x(shift.time)),
        x_ticks=_time_ticks(frame),
        y_ticks=_value_ticks(frame, unit),
        title="share of the service's CPU" if line.ratio else "value",
        data={
            **{"start": windows.start, "end": windows.end, "steps": _STEPS_S, "unit": unit},
            "times": [round(float(time - windows.start), 3) for time in times[shown]],
            "values": [_rounded(value) for value in (line.values[shown] * scale).tolist()],
        },
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    start: float
    end: float
    low: float
    high: float

    def x(self, times: FloatArray | float) -> FloatArray:
        """Return pixels from the left."""
        return np.asarray((times - self.start) / (self.end - self.start) * WIDTH)

    def y(self, values: FloatArray | float) -> FloatArray:
        """Return pixels from the top."""
        return np.asarray((self.high - values) / (self.high - self.low) * HEIGHT)


def _frame(
    line: DrawnSeries,
    windows: ScanWindows,
    shift: ChartShift,
    curves: Sequence[StudyCurve],
    signs: Sequence[Sign],
    scale: float,
    from_zero: bool,
) -> _Frame:
    marks = [shift.before, shift.after, *(sign.level for sign in signs), *([0.0] if from_zero else [])]
    every = np.concatenate([line.values, np.array(marks), *(curve.values for curve in curves)]) * scale
    finite = every[np.isfinite(every)]
    low, high = float(finite.min()), float(finite.max())
    pad = (high - low) * _PAD or abs(high) * _PAD or 1.0
    floor = low if from_zero and low == 0.0 else low - pad
    return _Frame(windows.start, max(windows.end, windows.start + windows.resolution_s), floor, high + pad)


def _bands(frame: _Frame, windows: ScanWindows, shift: ChartShift) -> tuple[Band, ...]:
    named = [
        ("historical", windows.start, windows.analysis_start),
        ("analysis", windows.analysis_start, windows.analysis_end),
        ("extended", windows.analysis_end, windows.end),
    ]
    if shift.interval:
        named.append(("interval", *shift.interval))
    return tuple(
        Band(name, float(frame.x(start)), float(frame.x(end) - frame.x(start)))
        for name, start, end in named
        if end > start
    )


def _thinned(values: FloatArray) -> list[int]:
    """Return the points to draw: all, or the lowest and the highest of each run of neighbours."""
    if len(values) <= _MOST_POINTS:
        return list(range(len(values)))
    shown: set[int] = set()
    for run in np.array_split(np.arange(len(values)), _MOST_POINTS // 2):
        finite = run[np.isfinite(values[run])]
        if len(finite):
            shown |= {int(finite[values[finite].argmin()]), int(finite[values[finite].argmax()])}
    return sorted(shown)


def _path(x: FloatArray, y: FloatArray) -> str:
    """Return a line through points, with a gap at each NaN."""
    parts, drawing = [], False
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if math.isnan(b):
            drawing = False
            continue
        parts.append(f"{'L' if drawing else 'M'}{a:.1f} {b:.1f}")
        drawing = True
    return "".join(parts)


def _time_ticks(frame: _Frame) -> tuple[Tick, ...]:
    span = frame.end - frame.start
    step = next((step for step in _STEPS_S if span / step <= _TICKS_X), _STEPS_S[-1])
    first = math.ceil(frame.start / step)
    moments = [number * step for number in range(first, math.floor(frame.end / step) + 1)]
    return tuple(Tick(float(frame.x(moment)), _clock(moment, step)) for moment in moments)


def _clock(moment: float, step: float) -> str:
    text = to_iso(moment)
    return text[5:10] if step >= DAY_S or moment % DAY_S == 0 else text[11:16]


def _value_ticks(frame: _Frame, unit: str) -> tuple[Tick, ...]:
    rough = (frame.high - frame.low) / _TICKS_Y
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    digits = max(0, -math.floor(math.log10(step)) + (step / size == 2.5))
    first, last = math.ceil(frame.low / step), math.floor(frame.high / step)
    values = [number * step for number in range(first, last + 1)]
    return tuple(Tick(float(frame.y(value)), f"{_level(value, digits)}{unit}") for value in values)


def _level(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if abs(value) < 1e5 and digits < 7 else f"{value:.4g}"


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
