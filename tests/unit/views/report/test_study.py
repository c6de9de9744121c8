"""A series looked at again: its season, the lines through it, and what the went-away predicate sees."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.model import FloatArray
from pipeline.views.report.chart import describe_study
from pipeline.views.report.study import Study, study
from pipeline.views.report.windows import Line, ScanWindows
from tests.support.fleets import START


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
    assert found["daily"].rise == pytest.approx(0, abs=0.001)
    assert describe_study(found["daily"], ratio=True)[-1].startswith("season   daily, 2")
    assert describe_study(found["none"], ratio=True)[-1] == "season   none found"


@pytest.mark.parametrize("hours", [6, 60], ids=["every window", "blocks"])
def test_without_a_season_the_trend_is_theil_sens_line(hours: int) -> None:
    # A step, and a steady rise after it; a gap and a few wild points.
    change, end = 1000, 1000 + 6 * hours
    position = np.arange(end, dtype=np.float64)
    values = 10.0 + np.where(position >= change, 2.0 + 0.01 * (position - change), 0.0)
    values[change + 5 :: 17] += 50.0
    values[change + 9 : change + 13] = np.nan
    windows = ScanWindows(600.0, START, START + change * 600.0, START + end * 600.0, START + end * 600.0)
    line = Line(START + position * 600, values, ratio=False)
    seen = study(line, ~np.isnan(values) + 0.0, windows, change_time=START + change * 600.0, rising=True)
    after, over = seen.lines
    assert np.isnan(after[:change]).all()
    expected = 12.0 + 0.01 * (position[change:] - change)
    assert after[change:] == pytest.approx(expected, abs=4.0 if hours > 30 else 0.2)
    assert np.isnan(over).sum() == 2 * change - end
    assert over[-1] > over[2 * change - end]
    assert seen.rise == after[-1] - after[change]


@pytest.mark.parametrize("change", [-3, 99, 100, 200])
def test_a_change_without_data_after_it_has_no_line(change: int) -> None:
    values = np.arange(100.0)
    windows = ScanWindows(600.0, START, START + 48_000, START + 60_000, START + 60_000)
    line = Line(START + values * 600, values, ratio=False)
    seen = study(line, np.ones(100), windows, change_time=START + change * 600.0, rising=True)
    assert len(seen.lines) == (1 if change == 99 else 0)
    assert seen.rise is None


WINDOWS = ScanWindows(600.0, START, START + 60_000, START + 84_000, START + 90_000)
STEP = np.where(np.arange(150) < 120, 1.0, 2.0) + 0.01 * (np.arange(150) % 3)


def studied(values: FloatArray, change: int = 120) -> Study:
    line = Line(START + 600 * np.arange(len(values), dtype=np.float64), values, ratio=False)
    return study(line, np.ones(len(values)), WINDOWS, change_time=START + change * 600.0, rising=True)


@pytest.mark.parametrize(
    ("points", "change", "judged"),
    [
        pytest.param(150, 120, True, id="within"),
        pytest.param(150, 1, True, id="at the second window"),
        pytest.param(150, 0, False, id="nothing before it"),
        pytest.param(150, 150, False, id="nothing after it"),
        pytest.param(140, 120, False, id="the series ends before the scan"),
    ],
)
def test_went_away_is_judged_where_there_is_something_to_compare(
    points: int, change: int, judged: bool
) -> None:
    values = np.where(np.arange(points) < change, 1.0, 2.0) + 0.01 * (np.arange(points) % 3)
    assert (studied(values, change).went_away is not None) is judged


def test_what_follows_the_scan_is_left_out() -> None:
    scanned, longer = (studied(each) for each in (STEP, np.concatenate([STEP, np.full(50, 99.0)])))
    assert scanned.went_away == longer.went_away
    assert scanned.rise == longer.rise
    for line, of_longer in zip(scanned.lines, longer.lines, strict=True):
        np.testing.assert_array_equal(line, of_longer)


def test_a_steady_rise_after_the_change_by_hand() -> None:
    # From the change on 0.5 a window: over thirty windows 29 times as much.
    seen = studied(np.where(np.arange(150) < 120, 1.0, 3.0 + 0.5 * (np.arange(150) - 120)))
    assert seen.rise == pytest.approx(14.5)
    assert seen.lines[0][[120, 149]] == pytest.approx([3.0, 17.5])
    assert np.isnan(seen.lines[1]).sum() == 90  # as far before the change as after it
