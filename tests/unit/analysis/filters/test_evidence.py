"""Candidates judged by their series: where these lie in a scan, and what is taken out of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.detect.matrix import select_series
from pipeline.analysis.detect.share_normalisation import share_factor
from pipeline.analysis.filters import Filter, FilterCase, FilterConfig, FilterEvidence, seasonality, went_away
from pipeline.analysis.filters.evidence import open_case
from pipeline.analysis.filters.same_regression import recent_level, rises_since
from pipeline.model import Candidate, FloatArray, MetricKind, Scan, SeriesMatrix
from tests.support.builders import build_candidate

START = 1_700_000_000.0 // 86_400 * 86_400
RESOLUTION_S = 1800.0
HISTORY, ANALYSIS, END = 480, 528, 552  # ten days, a day, half a day
CHANGE = 500
POSITION = np.arange(END)
TOTAL = 50_000.0


CONFIG = FilterConfig(RESOLUTION_S, 86_400.0, relative=0.05)


def counted(levels: dict[str, FloatArray], totals: FloatArray | None = None) -> SeriesMatrix:
    totals = np.full(END, TOTAL) if totals is None else totals
    rng = np.random.default_rng(3)
    samples = [rng.binomial(totals.astype(np.int64), level) for level in levels.values()]
    subroutine: MetricKind = "subroutine"
    return SeriesMatrix(
        START,
        RESOLUTION_S,
        (subroutine,) * len(levels),
        tuple(levels),
        np.array(samples, dtype=np.float64),
        totals,
    )


def a_candidate(name: str, *, at: int = CHANGE, before: float = 0.1, after: float = 0.2) -> Candidate:
    return build_candidate(name, before=before, after=after, change_time=START + at * RESOLUTION_S)


def case(matrix: SeriesMatrix, *candidates: Candidate, direction: str = "up") -> FilterCase:
    """What filters decide on, of a scan that read this matrix."""
    positions = (0, HISTORY, ANALYSIS, END)
    start, analysis, extended, end = (START + position * RESOLUTION_S for position in positions)
    scan = Scan("shop", "half-hours", start, analysis, extended, end, len(matrix.names), candidates)
    matrix = replace(matrix, share_factor=share_factor(matrix, history=HISTORY))
    series = select_series(matrix, {c.series for c in candidates})
    return open_case(FilterEvidence(scan, series), replace(CONFIG, rising=direction == "up"))


STEP = np.where(POSITION >= CHANGE, 0.2, 0.1)
GONE = np.where((POSITION >= CHANGE) & (POSITION < 515), 0.2, 0.1)
WAVE = 0.1 * (1 + 0.5 * np.sin(2 * np.pi * POSITION / 48))


def test_each_candidate_is_judged_by_its_own_series_in_any_order() -> None:
    candidates = [a_candidate("gone"), a_candidate("stays"), a_candidate("gone, too")]
    matrix = counted({"stays": STEP, "other": STEP, "gone": GONE, "gone, too": GONE})
    series = case(matrix, *candidates)
    for order in ([0, 1, 2], [2, 1, 0], [1], [0, 2]):
        asked = [candidates[position] for position in order]
        assert [v.passed for v in went_away.decide(asked, series)] == [c.metric == "stays" for c in asked]


def test_a_fall_is_judged_where_a_fall_is_worse() -> None:
    fallen = a_candidate("stays", before=0.2, after=0.1)
    gone = a_candidate("gone", before=0.2, after=0.1)
    series = case(counted({"stays": 0.3 - STEP, "gone": 0.3 - GONE}), fallen, gone, direction="down")
    assert [decision.passed for decision in went_away.decide([fallen, gone], series)] == [True, False]


def test_what_comes_back_every_day_is_seasonal() -> None:
    morning = a_candidate("wave", at=CHANGE + 10)
    step = a_candidate("step")
    series = case(counted({"wave": WAVE, "step": STEP}), morning, step)
    assert [decision.passed for decision in seasonality.decide([morning, step], series)] == [False, True]


@pytest.mark.parametrize("decide", [went_away.decide, seasonality.decide])
def test_what_the_store_no_longer_holds_is_dropped_with_a_reason(decide: Filter) -> None:
    series = case(counted({"a": STEP}), a_candidate("a"), a_candidate("vanished"))
    kept, gone = decide([a_candidate("a"), a_candidate("vanished")], series)
    assert (kept.passed, gone.passed) == (True, False)
    assert gone.code == "no_series"


@pytest.mark.parametrize("decide", [went_away.decide, seasonality.decide])
def test_nothing_to_judge(decide: Filter) -> None:
    series = case(counted({"a": STEP}))
    assert decide([], series) == []


def test_series_of_one_name_and_two_kinds_are_two() -> None:
    matrix = counted({"work": GONE, "other": STEP})
    both = SeriesMatrix(
        START, RESOLUTION_S, ("endpoint", "subroutine"), ("work", "work"), matrix.samples, matrix.totals
    )
    series = case(both, a_candidate("work"))
    assert recent_level(a_candidate("work", at=END), series) == pytest.approx(0.2, abs=0.005)


def test_recent_is_the_level_over_an_analysis_window_before_the_change() -> None:
    levels = np.where(POSITION >= CHANGE - 48, 0.15, 0.1)
    levels[CHANGE:] = 0.3
    series = case(counted({"a": levels}), a_candidate("a"))
    assert recent_level(a_candidate("a"), series) == pytest.approx(0.15, abs=0.002)
    assert recent_level(a_candidate("a", at=CHANGE - 24), series) == pytest.approx(0.125, abs=0.002)


def test_recent_takes_the_daily_cycle_out() -> None:
    series = case(counted({"a": WAVE}), a_candidate("a"))
    for at in (CHANGE, CHANGE + 12, CHANGE + 24):
        assert recent_level(a_candidate("a", at=at), series) == pytest.approx(0.1, rel=0.03)


def test_recent_without_data_is_the_level_before() -> None:
    totals = np.where((POSITION >= CHANGE - 60) & (POSITION < CHANGE), 0.0, TOTAL)
    series = case(counted({"a": STEP}, totals), a_candidate("a"))
    assert recent_level(a_candidate("a", before=0.123), series) == 0.123
    assert recent_level(a_candidate("vanished", before=0.123), series) == 0.123
    assert recent_level(a_candidate("a", at=0, before=0.123), series) == 0.123


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param(0.1 + 0.1 * np.clip((POSITION - 400) / 150, 0, 1), True, id="a ramp since then"),
        pytest.param(STEP, False, id="a step at the candidate's change"),
    ],
)
def test_growth_since_an_earlier_regression(levels: FloatArray, expected: bool) -> None:
    series = case(counted({"a": levels}), a_candidate("a"))
    assert rises_since(a_candidate("a"), series.levels, START + 400 * RESOLUTION_S) is expected
    assert rises_since(a_candidate("vanished"), series.levels, START) is False
    long_ago, first = (
        rises_since(a_candidate("a"), series.levels, time) for time in (START - 30 * 86_400.0, START)
    )
    assert long_ago is first


def test_a_change_of_the_whole_is_taken_out_of_a_series() -> None:
    # An improvement of 30 % elsewhere raises all shares; the candidate's own level is what it was.
    raised = {f"s{row}": np.where(POSITION >= CHANGE - 100, 0.004 / 0.7, 0.004) for row in range(150)}
    series = case(counted(raised), a_candidate("s3"))
    assert recent_level(a_candidate("s3"), series) == pytest.approx(0.004, rel=0.1)
    assert recent_level(a_candidate("s3", at=CHANGE - 200), series) == pytest.approx(0.004, rel=0.1)
