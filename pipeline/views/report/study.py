"""A series studied again as by the filters: SAX letters, terms of the went-away predicate, season."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.seasonal.stl import decompose, find_periods, points_of
from pipeline.analysis.filters import ChangeSpans
from pipeline.analysis.filters.went_away import WentAway, judge_went_away
from pipeline.analysis.statistics.blocks import block_means
from pipeline.analysis.statistics.monotonic import theil_sen
from pipeline.model import FloatArray
from pipeline.model.units import DAY_S, WEEK_S
from pipeline.views.report.windows import DrawnSeries, ScanWindows

_MOST_POINTS = 200
"""Most points of Theil-Sen's line, which compares all pairs: more points are averaged in blocks."""


@dataclass(frozen=True, slots=True)
class Study:
    """The filters' view of a series.

    It uses the present data: late samples may have come since the scan.
    """

    went_away: WentAway | None  # None where the change point leaves nothing to compare
    trend: FloatArray | None  # (windows,) of the scan; None without a season
    season: FloatArray | None  # (windows,) trend + season
    seasons: tuple[str, ...]  # of daily, weekly: the significant ones
    rise: float | None  # of Theil-Sen's line, season taken off, from the change to the end of the scan
    lines: tuple[FloatArray, ...] = ()  # without a season: Theil-Sen's after the change, and over it too


def study(
    line: DrawnSeries, weights: FloatArray, windows: ScanWindows, *, change_time: float, rising: bool
) -> Study:
    """Study a series of a scan.

    Args:
        line: From the start of the scan on; points after its end are left out.
        weights: (windows,) of the line: samples of a window, or 1 where there is a value; 0 is no data.
        windows: Of the scan.
        change_time: Start of the new regime.
        rising: Whether a rise is the regression.
    """
    last, analysis, extended, change = (
        _column(windows, time)
        for time in (windows.end, windows.analysis_start, windows.analysis_end, change_time)
    )
    values, weights = line.values[:last], weights[:last]
    went_away = None
    if 1 <= change < len(values) and len(values) == last:
        (went_away,) = judge_went_away(
            values[None],
            weights[None],
            ChangeSpans(
                change_index=np.array([change]),
                analysis_index=analysis,
                extended_index=extended,
                resolution_s=windows.resolution_s,
                rising=rising,
            ),
        )
    season = find_periods(values[None], weights[None], windows.resolution_s)
    lengths = {"daily": DAY_S, "weekly": WEEK_S}
    seasons = tuple(
        name for name, there in (("daily", season.daily[0]), ("weekly", season.weekly[0])) if there
    )
    if not seasons:
        return Study(went_away, None, None, (), _rise(values, change), _lines(values, change))
    periods = [points_of(lengths[name], windows.resolution_s) for name in seasons]
    parts = decompose(values[None], weights[None], periods)
    trend, seasonal = parts.trend[0], parts.seasonal[0]
    # The trend of STL spreads a step over days: it cannot separate a slope after the change from it.
    return Study(went_away, trend, trend + seasonal, seasons, _rise(values - seasonal, change))


def _lines(values: FloatArray, change: int) -> tuple[FloatArray, ...]:
    """Return Theil-Sen's lines from the change on, and from as far before it: (windows,), NaN before each."""
    if not 0 <= change < len(values):
        return ()
    lines = (_line(values, first) for first in (change, max(2 * change - len(values), 0)))
    return tuple(line for line in lines if np.isfinite(line[-1]))


def _rise(values: FloatArray, change: int) -> float | None:
    if not 0 <= change < len(values):
        return None
    line = _line(values, change)
    return float(line[-1] - line[change]) if np.isfinite(line[-1]) else None


def _line(values: FloatArray, first: int) -> FloatArray:
    # Points are blocks, each in the middle of its windows.
    size = -(-(len(values) - first) // _MOST_POINTS)
    means, weight = block_means(
        values[None, first:], (~np.isnan(values[None, first:])).astype(np.float64), size
    )
    fitted = theil_sen(np.where(weight > 0, means, np.nan))
    back = np.arange(len(values)) - (len(values) - size * means.shape[1]) - (size - 1) / 2
    line = fitted.intercept[0] + fitted.slope[0] * back / size
    return np.where(np.arange(len(values)) >= first, line, np.nan)


def _column(windows: ScanWindows, time: float) -> int:
    return round((time - windows.start) / windows.resolution_s)
