from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from pipeline.analysis.detect.short_term import ScanConfig, Windows, baseline_start, find_candidates
from pipeline.model import BoolArray, Candidate, Direction, FloatArray, SeriesMatrix

WINDOWS = Windows(analysis=240, extended=260, end=270)  # four hours, twenty and ten minutes
START = 1_700_000_000.0
POSITION = np.arange(WINDOWS.end)


def gcpu(levels: FloatArray, totals: FloatArray | None = None, seed: int = 1) -> SeriesMatrix:
    """Binomial counts of one subroutine with a share per window."""
    totals = np.full(len(levels), 2000.0) if totals is None else totals
    samples = np.random.default_rng(seed).binomial(totals.astype(np.int64), levels).astype(np.float64)
    return SeriesMatrix(START, 60.0, ("subroutine",), ("shop.work",), samples[None, :], totals)


def metric(values: FloatArray) -> SeriesMatrix:
    return SeriesMatrix(START, 60.0, ("service",), ("throughput",), values[None, :], np.ones(len(values)))


def levels_from(steps: Mapping[int, float]) -> FloatArray:
    """Return the level of every window, given the windows at which another level begins."""
    starts = np.array(list(steps))
    return np.array(list(steps.values()))[np.searchsorted(starts, POSITION, side="right") - 1]


def shares(before: float, after: float, at: int = 250) -> FloatArray:
    return levels_from({0: before, at: after})


@pytest.mark.parametrize(
    ("steps", "at", "before", "after"),
    [
        *(pytest.param({0: 0.1, at: 0.2}, at, 0.1, 0.2, id=f"at {at}") for at in (240, 241, 245, 258, 259)),
        pytest.param({0: 0.1, 250: 0.2, 260: 0.25}, 250, 0.1, 0.225, id="the level after goes on to the end"),
        pytest.param({0: 0.1, 250: 0.13, 260: 0.4}, 250, 0.1, 0.13, id="a second step beyond it"),
        pytest.param({0: 0.1, 120: 0.3, 250: 0.45}, 250, 0.3, 0.45, id="the newer of two steps"),
        pytest.param({0: 0.1, 200: 0.3, 250: 0.45}, 250, 0.3, 0.45, id="an older step in the baseline"),
        pytest.param({0: 0.1, 235: 0.3, 250: 0.45}, 250, 0.3, 0.45, id="an older step shortly before"),
        pytest.param({0: 0.15, 180: 0.05, 250: 0.15}, 250, 0.05, 0.15, id="a return to an older level"),
        pytest.param({0: 0.1, 160: 0.9, 162: 0.1, 250: 0.15}, 250, None, 0.15, id="a spike far back"),
        pytest.param({0: 0.1, 200: 0.9, 202: 0.1, 250: 0.15}, 250, None, 0.15, id="a spike in the baseline"),
        pytest.param({0: 0.1, 236: 0.9, 238: 0.1, 250: 0.15}, 250, None, 0.15, id="a spike shortly before"),
        pytest.param({0: 0.1, 150: 0.9, 170: 0.1, 250: 0.115}, 250, 0.1, 0.115, id="a spike lifts the mean"),
        pytest.param({0: 0.1, 230: 0.5, 236: 0.1, 250: 0.11}, 250, 0.1, 0.11, id="before a spike counts too"),
        pytest.param({0: 0.05, 180: 0.5, 190: 0.1, 250: 0.13}, 250, 0.1, 0.13, id="a spike between levels"),
        pytest.param({0: 0.0, 250: 0.05}, 250, 0.0, 0.05, id="a new subroutine"),
    ],
)  # fmt: skip
def test_the_step_in_the_analysis_window_is_found_between_its_levels(
    steps: Mapping[int, float], at: int, before: float | None, after: float
) -> None:
    (candidate,) = find_candidates(gcpu(levels_from(steps)), WINDOWS)
    assert window_of(candidate) == pytest.approx(at, abs=2)
    if before is not None:  # the two windows of a short spike may lie in the baseline
        assert candidate.before == pytest.approx(before, abs=0.002 + 0.07 * before)
    assert candidate.after == pytest.approx(after, abs=0.02)
    assert candidate.p_value < 1e-4
    assert np.isinf(candidate.relative) == (before == 0.0)
    (falling,) = find_candidates(gcpu(1 - levels_from(steps)), WINDOWS, direction="down")
    assert window_of(falling) == pytest.approx(at, abs=2)
    assert 1 - falling.after == pytest.approx(after, abs=0.02)


def window_of(candidate: Candidate) -> int:
    return round((candidate.change_time - START) / 60.0)


def test_a_rise_in_the_analysis_window_is_a_candidate() -> None:
    (candidate,) = find_candidates(gcpu(shares(0.10, 0.15)), WINDOWS)
    assert (candidate.metric_kind, candidate.metric, candidate.kind) == (
        "subroutine",
        "shop.work",
        "short_term",
    )
    assert window_of(candidate) == pytest.approx(250, abs=1)
    assert candidate.before == pytest.approx(0.10, abs=0.005)
    assert candidate.after == pytest.approx(0.15, abs=0.005)
    assert candidate.p_value < 1e-6
    assert candidate.statistic > 24  # the chi-squared value of that


@pytest.mark.parametrize(
    ("levels", "direction"),
    [
        pytest.param(shares(0.10, 0.10), "up", id="nothing changed"),
        pytest.param(shares(0.15, 0.10), "up", id="an improvement"),
        pytest.param(shares(0.10, 0.15), "down", id="a rise where a drop is worse"),
        pytest.param(shares(0.0, 0.0), "up", id="nothing was seen"),
        pytest.param(shares(1.0, 1.0), "up", id="every sample"),
        pytest.param(shares(0.10, 0.15, at=265), "up", id="a rise in the extended window"),
        pytest.param(shares(0.10, 0.90, at=262), "up", id="a large rise in the extended window"),
        pytest.param(shares(0.10, 0.15, at=100), "up", id="a rise in the history"),
        pytest.param(shares(0.10, 0.15, at=230), "up", id="a rise late in the history"),
        pytest.param(
            np.where((POSITION >= 230) & (POSITION < 233), 0.5, 0.1),
            "up",
            id="a trouble before the analysis window",
        ),
    ],
)
def test_no_candidate(levels: FloatArray, direction: Direction) -> None:
    assert find_candidates(gcpu(levels), WINDOWS, direction=direction) == ()


def test_what_is_likelier_in_the_extended_window_is_left_to_a_later_scan() -> None:
    # A weak step just after the analysis window, whose end is hardly less likely.
    share = np.where(POSITION >= 261, 0.115, 0.1)
    samples = np.random.default_rng(5).binomial(2000, share, (300, WINDOWS.end)).astype(np.float64)
    names = tuple(map(str, range(300)))
    matrix = SeriesMatrix(START, 60.0, ("subroutine",) * 300, names, samples, np.full(WINDOWS.end, 2000.0))
    assert len(find_candidates(matrix, Windows(analysis=245, extended=265, end=WINDOWS.end))) >= 270
    assert len(find_candidates(matrix, WINDOWS)) <= 30


@pytest.mark.parametrize("part", [0.02, 0.05, 0.1, 0.5, 0.95])
def test_the_window_in_which_a_later_step_begins_is_no_change_before_it(part: float) -> None:
    levels = shares(0.10, 0.90, at=261)
    levels[260] = 0.10 + 0.80 * part
    assert find_candidates(gcpu(levels, np.full(WINDOWS.end, 2e6)), WINDOWS) == ()


def test_a_change_that_the_extended_window_takes_back_is_weaker() -> None:
    levels = shares(0.10, 0.13)
    (lasting,) = find_candidates(gcpu(levels), WINDOWS)
    levels[260:] = 0.115
    (fading,) = find_candidates(gcpu(levels), WINDOWS)
    assert fading.after < lasting.after
    assert fading.p_value > lasting.p_value


def test_a_weak_step_at_the_edge_of_the_analysis_window_is_placed_where_it_is_likeliest() -> None:
    # An earlier scan had too little of it; to cut the baseline there, it is not clear enough.
    totals = np.full(WINDOWS.end, 2000.0)
    share = np.where(POSITION >= 234, 0.108, 0.1)
    samples = np.random.default_rng(5).binomial(2000, share, (300, WINDOWS.end)).astype(np.float64)
    names = tuple(map(str, range(300)))
    matrix = SeriesMatrix(START, 60.0, ("subroutine",) * 300, names, samples, totals)
    positions = np.array([window_of(candidate) for candidate in find_candidates(matrix, WINDOWS)])
    assert len(positions) >= 100
    assert np.abs(positions - 234).mean() <= 4


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(POSITION % 3 == 0, id="in one window of three"),
        pytest.param(POSITION % 5 < 2, id="in two of five"),
    ],
)
def test_a_service_that_seldom_has_data_is_judged(runs: BoolArray) -> None:
    totals = np.where(runs, 6000.0, 0.0)
    (candidate,) = find_candidates(gcpu(shares(0.10, 0.13), totals), WINDOWS)
    assert (candidate.before, candidate.after) == pytest.approx((0.10, 0.13), abs=0.005)
    assert find_candidates(gcpu(shares(0.10, 0.10), totals), WINDOWS) == ()


def test_a_service_that_has_only_just_appeared_has_no_baseline() -> None:
    totals = np.full(WINDOWS.end, 2000.0)
    totals[:150] = 0.0
    young = gcpu(shares(0.10, 0.15), totals)
    assert find_candidates(young, WINDOWS) == ()
    assert len(find_candidates(young, WINDOWS, config=ScanConfig(min_history=0.3))) == 1


@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param(244, 248, id="in the analysis window"),
        pytest.param(262, 270, id="at the end"),
        pytest.param(230, 240, id="before the analysis window"),
    ],
)
def test_windows_without_samples_are_not_zeros(first: int, last: int) -> None:
    totals = np.full(WINDOWS.end, 2000.0)
    totals[first:last] = 0.0  # the agent was away
    assert find_candidates(gcpu(shares(0.10, 0.10), totals), WINDOWS) == ()
    assert find_candidates(gcpu(shares(0.10, 0.10), totals), WINDOWS, direction="down") == ()


def test_a_gap_at_the_change_leaves_its_position_open() -> None:
    totals = np.full(WINDOWS.end, 2000.0)
    totals[246:254] = 0.0
    (candidate,) = find_candidates(gcpu(shares(0.10, 0.15), totals), WINDOWS)
    assert 246 <= window_of(candidate) <= 254
    assert candidate.after == pytest.approx(0.15, abs=0.005)


def test_what_may_have_come_in_a_long_gap_is_dated_to_its_end() -> None:
    # Ten noisy windows before the gap are as many moments, the gap is fifty.
    windows, totals = Windows(analysis=180, extended=260, end=270), np.full(WINDOWS.end, 2000.0)
    totals[200:250] = 0.0
    found = [
        window_of(candidate)
        for seed in range(60)
        for candidate in find_candidates(gcpu(shares(0.10, 0.13), totals, seed), windows)
    ]
    assert len(found) == 60
    assert found.count(250) >= 57
    early = [
        window_of(candidate)
        for seed in range(60)
        for candidate in find_candidates(gcpu(shares(0.10, 0.13, at=190), totals, seed), windows)
    ]
    assert early.count(250) == 0


def test_a_few_samples_of_a_new_subroutine_are_enough() -> None:
    samples = np.zeros((1, WINDOWS.end))
    samples[0, [251, 253, 254, 258, 260, 261, 264, 268]] = 1.0
    matrix = SeriesMatrix(START, 60.0, ("subroutine",), ("new",), samples, np.full(WINDOWS.end, 2000.0))
    (candidate,) = find_candidates(matrix, WINDOWS)
    assert window_of(candidate) == pytest.approx(251, abs=1)


def test_a_service_level_metric_with_gaps() -> None:
    values = np.random.default_rng(2).normal(100.0, 1.0, WINDOWS.end)
    values[250:] -= 10.0
    values[::9] = np.nan
    (candidate,) = find_candidates(metric(values), WINDOWS, direction="down")
    assert candidate.before == pytest.approx(100.0, abs=1.0)
    assert candidate.after == pytest.approx(90.0, abs=1.0)
    assert window_of(candidate) == pytest.approx(250, abs=1)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.full(WINDOWS.end, 0.1), id="constant that has no exact float"),
        pytest.param(np.full(WINDOWS.end, 1e15) / 3, id="large constant"),
        pytest.param(np.zeros(WINDOWS.end), id="zeros"),
        pytest.param(np.full(WINDOWS.end, np.nan), id="no data"),
        pytest.param(np.where(POSITION < 245, np.nan, 1.0), id="no history"),
        pytest.param(np.where(POSITION < 240, 1.0 + 0.1 * (POSITION % 2), np.nan), id="no data since"),
        pytest.param(np.where(POSITION == 250, 1.0, np.nan), id="one point"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_series_that_say_nothing(values: FloatArray) -> None:
    for direction in ("up", "down"):
        assert find_candidates(metric(values), WINDOWS, direction=direction) == ()


def test_a_step_without_noise_is_certain() -> None:
    (candidate,) = find_candidates(metric(shares(1.0, 2.0)), WINDOWS)
    assert candidate.p_value < 1e-20
    assert np.isfinite(candidate.statistic)
    assert (candidate.before, candidate.after) == pytest.approx((1.0, 2.0))


@pytest.mark.parametrize("windows", [Windows(30, 45, 50), Windows(30, 45, 45), Windows(48, 54, 54)], ids=str)
def test_a_short_history_will_do(windows: Windows) -> None:
    position = np.arange(windows.end)
    at = windows.analysis + 2
    (candidate,) = find_candidates(gcpu(np.where(position >= at, 0.2, 0.1)), windows)
    assert window_of(candidate) == pytest.approx(at, abs=1)


@pytest.mark.parametrize(
    "windows",
    [Windows(3, 4, 5), Windows(1, 2, 2), Windows(5, 5, 5), Windows(6, 6, 9)],
    ids=["three", "one", "no windows after the history", "no analysis window"],
)
def test_too_few_windows_for_any_change(windows: Windows) -> None:
    assert find_candidates(gcpu(np.where(np.arange(windows.end) >= 3, 0.9, 0.1)), windows) == ()


def test_a_service_without_series_has_no_candidates() -> None:
    empty = SeriesMatrix(START, 60.0, (), (), np.empty((0, WINDOWS.end)), np.zeros(WINDOWS.end))
    assert find_candidates(empty, WINDOWS) == ()


def test_what_happens_every_week_at_this_time_is_no_change() -> None:
    # Thirteen days of half hours; a backup of half a day every seventh one.
    windows = Windows(analysis=560, extended=608, end=620)
    position = np.arange(windows.end)
    values = np.random.default_rng(5).standard_normal(windows.end)
    backup = ((position - 580) % 336) < 24
    matrix = SeriesMatrix(START, 1800.0, ("service",), ("load",), (values + 4 * backup)[None], np.ones(620))
    assert find_candidates(matrix, windows) == ()
    only_now = SeriesMatrix(
        START, 1800.0, ("service",), ("load",), (values + 4 * backup * (position >= 580))[None], np.ones(620)
    )
    assert len(find_candidates(only_now, windows)) == 1


@pytest.mark.parametrize("height", [0.0, 9.0], ids=["steady", "higher at first"])
def test_what_happened_last_week_before_the_data_begin_is_no_change(height: float) -> None:
    # The day of a weekly job had begun before the first window; its first hours are the most expensive.
    windows = Windows(analysis=480, extended=496, end=504)
    position = np.arange(windows.end)
    job, first = position >= 490, (position >= 490) & (position < 496)
    values = np.random.default_rng(5).standard_normal(windows.end) + 5.0 * job + height * first
    values[160:178] += 5.0
    values[:160] = np.nan
    matrix = SeriesMatrix(START, 1800.0, ("service",), ("load",), values[None], np.ones(windows.end))
    assert find_candidates(matrix, windows) == ()


@pytest.mark.parametrize("hours", [-24, -4, 0, 4], ids=str)
def test_a_second_regression_a_week_after_the_first_is_found(hours: int) -> None:
    # Releases go out at the same time every week; the windows are those of frontfaas-small.
    windows = Windows(analysis=1440, extended=1464, end=1500)
    position = np.arange(windows.end)
    values = np.random.default_rng(6).standard_normal(windows.end)
    values += 3.0 * (position >= 1450 - 1008 + 6 * hours) + 2.0 * (position >= 1450)
    matrix = SeriesMatrix(START, 600.0, ("service",), ("latency",), values[None], np.ones(windows.end))
    (candidate,) = find_candidates(matrix, windows)
    assert round((candidate.change_time - START) / 600.0) == pytest.approx(1450, abs=6)


@pytest.mark.parametrize("seed", [2, 3, 4, 5], ids=str)
def test_what_happened_a_week_ago_moves_no_change_point(seed: int) -> None:
    windows = Windows(analysis=1440, extended=1464, end=1500)
    position = np.arange(windows.end)
    trouble = (position >= 1457 - 1008) & (position < 1470 - 1008)
    values = (
        np.random.default_rng(seed).standard_normal(windows.end) + 1.5 * (position >= 1457) + 2.0 * trouble
    )
    matrix = SeriesMatrix(START, 600.0, ("service",), ("latency",), values[None], np.ones(windows.end))
    (candidate,) = find_candidates(matrix, windows)
    assert round((candidate.change_time - START) / 600.0) == pytest.approx(1457, abs=1)


def test_a_gap_a_week_ago_hides_no_regression() -> None:
    windows = Windows(analysis=480, extended=496, end=504)
    position = np.arange(windows.end)
    totals = np.full(windows.end, 2000.0)
    totals[480 - 336 : 504 - 336] = 0.0
    samples = np.random.default_rng(1).binomial(totals.astype(np.int64), np.where(position >= 490, 0.3, 0.1))
    matrix = SeriesMatrix(START, 1800.0, ("subroutine",), ("work",), samples[None].astype(np.float64), totals)
    assert len(find_candidates(matrix, windows)) == 1


@pytest.mark.parametrize(
    ("windows", "resolution_s", "first"),
    [
        pytest.param(Windows(1440, 1464, 1500), 600.0, 1440 - 288, id="four times ten hours, in whole days"),
        pytest.param(Windows(2880, 2916, 2916), 300.0, 2880 - 144, id="four times three hours"),
        pytest.param(Windows(30, 45, 50), 1.0, 0, id="all of a short history"),
        pytest.param(Windows(384, 600, 600), 3600.0, 168, id="last week's has to be as long"),
    ],
)
def test_the_baseline_is_four_times_what_follows(windows: Windows, resolution_s: float, first: int) -> None:
    assert baseline_start(windows, resolution_s, ScanConfig()) == first
