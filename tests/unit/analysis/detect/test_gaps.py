"""A step beside a gap, or in a young service: judged by a scan or waiting for one, never lost."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.matrix import drop_windows, first_windows
from pipeline.analysis.detect.search import SearchConfig, find_change_points
from pipeline.analysis.detect.short_term import Windows
from pipeline.model import BoolArray, SeriesMatrix
from tests.support.calibration import calibrated

HISTORY, ANALYSIS, EXTENDED, RERUN = 240, 24, 12, 12
WINDOWS = Windows(HISTORY, HISTORY + ANALYSIS, HISTORY + ANALYSIS + EXTENDED)
SPAN = WINDOWS.end
LENGTH = 3 * SPAN
WINDOW = np.arange(LENGTH)
CONFIG = SearchConfig(("short_term",), absolute=0.001)


def service(known: BoolArray, step: int) -> SeriesMatrix:
    totals = np.where(known, 4000.0, 0.0)
    levels = np.where(step <= WINDOW, 0.14, 0.10)
    samples = np.random.default_rng(5).binomial(totals.astype(int), levels)[None].astype(np.float64)
    return SeriesMatrix(0.0, 60.0, ("subroutine",), ("a",), samples, totals)


def scans(matrix: SeriesMatrix) -> tuple[list[int], list[str]]:
    """Return at which windows the scans of a service date a step, and the codes of the others."""
    dated, unjudged = [], []
    for end in range(SPAN, LENGTH + 1, RERUN):
        part = drop_windows(first_windows(matrix, end), end - SPAN)
        found = find_change_points(part, WINDOWS, CONFIG)
        dated += [round(candidate.change_time / 60.0) for candidate in found.candidates]
        unjudged += [one.code for one in found.unjudged]
    return dated, unjudged


def offsets(dated: list[int], known: BoolArray, step: int) -> list[int]:
    """Return by how many windows with data each date is off the first with the new level."""
    assert all(known[window] for window in dated)
    counted = np.cumsum(known)
    first = int(np.flatnonzero(known & (step <= WINDOW))[0])
    return [int(counted[window] - counted[first]) for window in dated]


@pytest.mark.parametrize("length", calibrated([3, 12, 30, 60], (12).__eq__))
@pytest.mark.parametrize("into", [-20, -6, -1, 0, 1, 0.5, 1.0])
def test_a_step_beside_a_gap_is_dated_where_there_is_data(length: int, into: float) -> None:
    """``into`` is windows from the gap's begin, or a share of it."""
    gap = 400
    step = gap + (round(into * length) if isinstance(into, float) else min(int(into), length))
    known = (gap > WINDOW) | (gap + length <= WINDOW)
    dated, _ = scans(service(known, step))
    assert dated, "lost"
    assert all(abs(off) <= 2 for off in offsets(dated, known, step))  # of three that a level takes


@pytest.mark.parametrize("night", [0, 4, 9])
def test_a_step_over_night_is_dated_into_the_morning(night: int) -> None:
    known = WINDOW % 24 >= 10
    dated, unjudged = scans(service(known, 18 * 24 + night))
    assert dated[-1] == 18 * 24 + 10
    # A scan that has seen two windows of the morning needs a third, that of the evening.
    assert set(offsets(dated, known, 18 * 24 + night)) <= {-1, 0}
    assert unjudged == []


@pytest.mark.parametrize("age", [20, 60, 100, 130, 160, 200, 260])
def test_a_step_of_a_young_service_is_judged_or_the_scan_says_that_it_could_not(age: int) -> None:
    born = SPAN
    dated, unjudged = scans(service(born <= WINDOW, born + age))
    first_scans = [code for code in unjudged if code == "no_history"]
    assert first_scans, "a scan of a young service was silent"
    # The history is old enough once half of it has data, by how often there is data of late.
    if age >= HISTORY // 2 + ANALYSIS:
        assert dated
        assert all(abs(window - born - age) <= 1 for window in dated)
    else:
        assert all(window >= born for window in dated)
