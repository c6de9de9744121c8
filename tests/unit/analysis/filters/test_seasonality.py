from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.filters import ChangeSpans
from pipeline.analysis.filters.seasonality import judge_seasonality
from pipeline.model import Decision, FloatArray

RESOLUTION_S = 600.0
DAY, HOUR = 144, 6
WEEK = 7 * DAY
HISTORY, ANALYSIS, EXTENDED = 10 * DAY, 24, 36  # frontfaas-small
WINDOWS = HISTORY + ANALYSIS + EXTENDED
CHANGE = HISTORY + 8
T = np.arange(WINDOWS)
ROWS = 8
STEP = np.where(T >= CHANGE, 1.0, 0.0)
ERROR = float(np.sqrt(1 / (WINDOWS - CHANGE) + 1 / CHANGE))  # of the step's size, in standard deviations


def pulses(period: int, length: int, height: float) -> FloatArray:
    """Rise at the change point, and at all whole periods before it."""
    return np.where((T - CHANGE) % period < length, height, 0.0)


SEASONS = {
    "daily waves of 15 %": 3.0 * np.sin(2 * np.pi * (T - CHANGE) / DAY)
    + 0.8 * np.sin(4 * np.pi * (T - CHANGE) / DAY),
    "two hours of each day": pulses(DAY, 2 * HOUR, 3.0),
    "eight hours of each day": pulses(DAY, 8 * HOUR, 1.5),
    "a day of each week, seen once before": pulses(WEEK, DAY, 3.0),
    "weekend": pulses(WEEK, 2 * DAY, 3.0),
    "day and weekend": np.sin(2 * np.pi * (T - CHANGE) / DAY) + pulses(WEEK, 2 * DAY, 3.0),
}


def noise(seed: int) -> FloatArray:
    return np.random.default_rng(seed).normal(0.0, 1.0, (ROWS, WINDOWS))


def judge(
    values: FloatArray,
    weights: FloatArray | None = None,
    *,
    rising: bool = True,
    extended_index: int = HISTORY + ANALYSIS,
) -> list[Decision]:
    return judge_seasonality(
        values,
        np.ones(values.shape[1]) if weights is None else weights,
        ChangeSpans(
            change_index=np.full(len(values), CHANGE),
            analysis_index=HISTORY,
            extended_index=extended_index,
            resolution_s=RESOLUTION_S,
            rising=rising,
        ),
    )


def passed(decisions: list[Decision]) -> int:
    return sum(decision.passed for decision in decisions)


@pytest.mark.parametrize("season", [pytest.param(s, id=name) for name, s in SEASONS.items()])
class TestSeasons:
    def test_a_seasonal_rise_is_dropped(self, season: FloatArray) -> None:
        decisions = judge(noise(1) + season)
        assert passed(decisions) <= 1  # a rise remains by chance once in 100 windows
        assert all(v.passed or v.statistic <= v.bound for v in decisions)

    def test_a_step_on_top_passes(self, season: FloatArray) -> None:
        assert (
            passed(judge(noise(2) + season + 10 * ERROR * STEP)) == ROWS
        )  # a week's estimate is a noisy one

    def test_so_does_a_seasonal_drop_where_a_drop_is_worse(self, season: FloatArray) -> None:
        up, down = judge(noise(1) + season), judge(-noise(1) - season, rising=False)
        assert [v.passed for v in down] == [v.passed for v in up]


def test_a_small_step_on_a_daily_cycle_passes() -> None:
    small = 5 * ERROR * STEP
    assert passed(judge(noise(3) + SEASONS["daily waves of 15 %"] + small)) >= ROWS - 1


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(noise(4), id="noise"),
        pytest.param(noise(5) + 5 * ERROR * STEP, id="small step"),
        pytest.param(noise(6) + 10.0 * STEP, id="large step"),
        pytest.param(noise(7) + pulses(10 * WEEK, 12, 5.0), id="first pulse of its kind"),
        pytest.param(np.zeros((ROWS, WINDOWS)) + STEP, id="step without noise"),
    ],
)
def test_without_a_season_all_pass(values: FloatArray) -> None:
    decisions = judge(values)
    assert passed(decisions) == ROWS
    assert {(v.statistic, v.bound) for v in decisions} == {(0.0, 0.0)}


def test_a_regression_of_a_week_ago_is_no_season() -> None:
    twice = np.where(T >= CHANGE - WEEK, 2.0, 0.0) + 2.0 * STEP
    assert passed(judge(noise(8) + twice)) == ROWS


def test_the_extended_window_alone_can_speak_for_a_regression() -> None:
    late = np.where(T >= HISTORY + ANALYSIS, 3.0, 0.0)
    assert passed(judge(noise(9) + SEASONS["eight hours of each day"] + late)) == ROWS
    assert passed(judge(noise(9) + SEASONS["eight hours of each day"])) <= 1


def test_without_an_extended_window() -> None:
    values = (noise(10) + SEASONS["daily waves of 15 %"])[:, : HISTORY + ANALYSIS]
    assert passed(judge(values)) <= 1
    assert passed(judge(values + 3.0 * STEP[: HISTORY + ANALYSIS])) == ROWS


def test_windows_without_data_count_for_nothing() -> None:
    values = noise(11) + SEASONS["two hours of each day"]
    weights = np.ones((ROWS, WINDOWS))
    weights[:, 500:560] = 0.0
    weights[:, ::11] = 0.0
    holes = np.where(weights > 0, values, np.nan)
    assert passed(judge(holes, weights)) <= 1
    weights[:, CHANGE:] = 0.0
    assert passed(judge(holes, weights)) == ROWS


def test_each_row_is_judged_as_if_alone() -> None:
    values = np.concatenate([noise(12)[:2] + season for season in SEASONS.values()])
    together = judge(values)
    assert together == [judge(row[None, :])[0] for row in values]


def test_no_unit_and_no_offset_changes_a_decision() -> None:
    values = noise(13) + SEASONS["daily waves of 15 %"] + 4 * ERROR * STEP
    plain, moved = judge(values), judge(values * 1e-6 + 3e-4)
    assert [v.passed for v in moved] == [v.passed for v in plain]
    np.testing.assert_allclose([v.statistic for v in moved], [v.statistic for v in plain], rtol=1e-3)
