"""What ``smidgen why`` draws: the series with its windows, and what the filters see in it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pipeline.model import FloatArray
from pipeline.report.chart import draw_chart
from pipeline.report.study import study
from pipeline.report.windows import Line, ScanWindows
from tests.fleets import START

WINDOWS = ScanWindows(1.0, START, START + 30, START + 45, START + 50)


def chart(values: FloatArray, width: int = 100, **given: Any) -> list[str]:
    line = Line(START + np.arange(len(values), dtype=np.float64), values, ratio=True)
    levels = {"change_time": START + 38, "before": 0.1, "after": 0.2, **given}
    return draw_chart(line, WINDOWS, width=width, **levels)


def test_a_chart_shows_levels_windows_and_the_change_point() -> None:
    rows = chart(np.where(np.arange(50) < 38, 0.1, 0.2))
    high = next(row for row in rows if "•" in row)
    low = [row for row in rows if "•" in row][-1]
    assert rows.index(high) < rows.index(low)
    assert high.rindex("•") > high.index("│") > low.index("•")
    pointer, names = rows[-2:]
    assert pointer.endswith("▲ 2023-11-14 22:13:58 UTC")
    assert pointer.index("▲") == rows[5].index("│")
    assert re.findall(r"\w+ \d+s", names) == ["history 30s", "analysis 15s", "extended 5s"]
    assert rows[0].split()[0] == "20.5"


def test_a_chart_goes_on_as_far_as_there_is_data() -> None:
    values = np.full(70, 0.1)
    values[60:] = np.nan
    assert "later" in chart(values)[-1]
    assert "later" not in chart(values[:50])[-1]


@pytest.mark.parametrize("width", [20, 60, 100, 200])
@pytest.mark.parametrize("windows", [1, 50, 80])
def test_a_chart_fits_any_width(width: int, windows: int) -> None:
    rows = chart(np.full(windows, 0.1), width, change_time=START + 44)
    assert max(map(len, rows[:-2])) <= max(width, 40)
    assert sum("▲" in row for row in rows) == 1


def test_a_chart_of_nothing_says_so() -> None:
    assert chart(np.full(50, np.nan)) == ["no data"]


def test_a_constant_series_has_a_chart() -> None:
    assert sum(row.count("•") for row in chart(np.zeros(50), before=0.0, after=0.0)) > 40


# What the filters see


def test_a_season_is_shown_where_there_is_one() -> None:
    day = 144
    times = np.arange(12 * day, dtype=np.float64)
    noise = np.random.default_rng(1).normal(0, 0.001, len(times))
    windows = ScanWindows(600.0, START, START + 10 * 86_400, START + 11 * 86_400, START + 12 * 86_400)
    found = {}
    for name, cycle in (("daily", 0.01), ("none", 0.0)):
        values = 0.1 + cycle * np.sin(times * 2 * np.pi / day) + noise
        line = Line(START + times * 600, values, ratio=True)
        change_time = START + 10.5 * 86_400
        found[name] = study(line, np.ones(len(times)), windows, change_time=change_time, rising=True)
    assert found["daily"].seasons == ("daily",)
    assert found["daily"].season is not None
    assert np.ptp(found["daily"].season) == pytest.approx(0.02, rel=0.2)
    assert (found["none"].seasons, found["none"].season) == ((), None)
    assert found["none"].went_away is not None
    assert (len(found["daily"].lines), len(found["none"].lines)) == (0, 2)


@pytest.mark.parametrize("hours", [6, 60], ids=["every window", "blocks"])
def test_without_a_season_the_trend_is_theil_sens_line(hours: int) -> None:
    # A step, and a steady rise after it; a gap and a few wild points.
    change, end = 1000, 1000 + 6 * hours
    place = np.arange(end, dtype=np.float64)
    values = 10.0 + np.where(place >= change, 2.0 + 0.01 * (place - change), 0.0)
    values[change + 5 :: 17] += 50.0
    values[change + 9 : change + 13] = np.nan
    windows = ScanWindows(600.0, START, START + change * 600.0, START + end * 600.0, START + end * 600.0)
    line = Line(START + place * 600, values, ratio=False)
    seen = study(line, ~np.isnan(values) + 0.0, windows, change_time=START + change * 600.0, rising=True)
    after, over = seen.lines
    assert np.isnan(after[:change]).all()
    expected = 12.0 + 0.01 * (place[change:] - change)
    assert after[change:] == pytest.approx(expected, abs=4.0 if hours > 30 else 0.2)
    assert np.isnan(over).sum() == 2 * change - end
    assert over[-1] > over[2 * change - end]


@pytest.mark.parametrize("change", [-3, 99, 100, 200])
def test_a_change_without_data_after_it_has_no_line(change: int) -> None:
    values = np.arange(100.0)
    windows = ScanWindows(600.0, START, START + 48_000, START + 60_000, START + 60_000)
    line = Line(START + values * 600, values, ratio=False)
    seen = study(line, np.ones(100), windows, change_time=START + change * 600.0, rising=True)
    assert len(seen.lines) == (1 if change == 99 else 0)
