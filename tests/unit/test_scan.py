from __future__ import annotations

import numpy as np
import pytest

from pipeline.detect.scan import Windows, find_candidates
from pipeline.model import Direction, FloatArray, SeriesMatrix

WINDOWS = Windows(analysis=40, extended=60, end=70)
START = 1_700_000_000.0


def gcpu(levels: FloatArray, totals: FloatArray | None = None, seed: int = 1) -> SeriesMatrix:
    """Binomial counts of one subroutine with a share per window."""
    totals = np.full(len(levels), 2000.0) if totals is None else totals
    samples = np.random.default_rng(seed).binomial(totals.astype(np.int64), levels).astype(np.float64)
    return SeriesMatrix(START, 60.0, ("subroutine",), ("shop.work",), samples[None, :], totals)


def shares(before: float, after: float, at: int = 50) -> FloatArray:
    return np.where(np.arange(WINDOWS.end) >= at, after, before)


def test_a_rise_in_the_analysis_window_is_a_candidate() -> None:
    (candidate,) = find_candidates(gcpu(shares(0.10, 0.15)), WINDOWS)
    assert (candidate.metric_kind, candidate.metric, candidate.kind) == (
        "subroutine",
        "shop.work",
        "short_term",
    )
    assert candidate.change_time == pytest.approx(START + 50 * 60.0, abs=60.0)
    assert candidate.before == pytest.approx(0.10, abs=0.005)
    assert candidate.after == pytest.approx(0.15, abs=0.005)
    assert candidate.p_value < 1e-6


@pytest.mark.parametrize(
    ("levels", "direction"),
    [
        pytest.param(shares(0.10, 0.10), "up", id="nothing changed"),
        pytest.param(shares(0.15, 0.10), "up", id="an improvement"),
        pytest.param(shares(0.10, 0.15), "down", id="a rise where a drop is worse"),
    ],
)
def test_no_candidate(levels: FloatArray, direction: Direction) -> None:
    assert find_candidates(gcpu(levels), WINDOWS, direction=direction) == ()


def test_a_drop_is_a_candidate_where_a_drop_is_worse() -> None:
    (candidate,) = find_candidates(gcpu(shares(0.15, 0.10)), WINDOWS, direction="down")
    assert candidate.delta < 0


def test_a_change_in_the_extended_window_is_not_looked_for_yet() -> None:
    found = find_candidates(gcpu(shares(0.10, 0.15, at=62)), WINDOWS)
    assert all(candidate.change_time < START + 60 * 60.0 for candidate in found)


def test_the_extended_window_has_no_say_in_what_is_found() -> None:
    levels = shares(0.10, 0.20)
    later = levels.copy()
    later[60:] = 0.9
    assert find_candidates(gcpu(levels), WINDOWS)[0] == find_candidates(gcpu(later), WINDOWS)[0]
    quiet = shares(0.10, 0.10)
    quiet[60:] = 0.9
    assert find_candidates(gcpu(quiet), WINDOWS) == ()


def test_a_service_that_has_only_just_appeared_has_no_baseline() -> None:
    totals = np.full(WINDOWS.end, 2000.0)
    totals[:25] = 0.0
    assert find_candidates(gcpu(shares(0.10, 0.15), totals), WINDOWS) == ()
    assert len(find_candidates(gcpu(shares(0.10, 0.15), totals), WINDOWS, min_history=0.3)) == 1


def test_windows_without_samples_are_not_zeros() -> None:
    totals = np.full(WINDOWS.end, 2000.0)
    totals[45:48] = 0.0  # the agent was away
    assert find_candidates(gcpu(shares(0.10, 0.10), totals), WINDOWS) == ()


def test_a_new_subroutine_rises_from_nothing() -> None:
    (candidate,) = find_candidates(gcpu(shares(0.0, 0.05)), WINDOWS)
    assert candidate.before == 0.0
    assert candidate.relative == float("inf")


def test_a_service_level_metric_with_gaps() -> None:
    values = np.random.default_rng(2).normal(100.0, 1.0, (1, WINDOWS.end))
    values[0, 50:] -= 10.0
    values[0, ::9] = np.nan
    matrix = SeriesMatrix(START, 60.0, ("service",), ("throughput",), values, np.ones(WINDOWS.end))
    (candidate,) = find_candidates(matrix, WINDOWS, direction="down")
    assert candidate.before == pytest.approx(100.0, abs=1.0)
    assert candidate.after == pytest.approx(90.0, abs=1.0)


def test_a_service_without_series_has_no_candidates() -> None:
    empty = SeriesMatrix(START, 60.0, (), (), np.empty((0, WINDOWS.end)), np.zeros(WINDOWS.end))
    assert find_candidates(empty, WINDOWS) == ()
