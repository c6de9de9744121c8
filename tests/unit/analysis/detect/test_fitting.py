"""Windows fitted to when a service has data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.detect.fitting import history_start, known_windows, over_gaps, widening
from pipeline.analysis.detect.scan_config import WindowIndexes
from pipeline.model import BoolArray, SeriesMatrix

WINDOW = np.arange(120)


def gaps(*sizes: int) -> BoolArray:
    """Return windows with data that lie so far apart, over and over."""
    known = np.zeros(len(WINDOW), dtype=np.bool_)
    known[np.cumsum(np.resize(sizes, 30))[np.cumsum(np.resize(sizes, 30)) < len(WINDOW)]] = True
    return known


@pytest.mark.parametrize(
    ("known", "times"),
    [
        pytest.param(WINDOW >= 0, 1, id="in every window"),
        pytest.param(WINDOW % 2 == 0, 2, id="every two"),
        pytest.param((WINDOW % 2 == 0) & (WINDOW > 60), 2, id="every two, for some time"),
        pytest.param((WINDOW % 2 == 0) & ((WINDOW < 40) | (WINDOW > 90)), 2, id="every two, with an outage"),
        pytest.param(gaps(1, 2), 2, id="every one and a half"),
        pytest.param(gaps(1, 1, 1, 1, 1, 1, 2), 1, id="one missing now and then"),
        pytest.param(gaps(2, 2, 2, 2, 2, 2, 3), 2, id="one late now and then"),
        pytest.param(WINDOW % 12 == 0, 10, id="less often than windows may widen"),
        pytest.param(WINDOW % 20 == 0, 1, id="too few to say"),
        pytest.param(WINDOW < 0, 1, id="never"),
    ],
)
def test_windows_widen_to_the_interval_of_the_data(known: BoolArray, times: int) -> None:
    assert widening(known, 10) == times
    assert widening(known, 1) == 1


@pytest.mark.parametrize(
    ("known", "first"),
    [(WINDOW >= 0, 0), (WINDOW > 40, 41), (WINDOW > 110, 90), (WINDOW < 0, 90), (WINDOW == 7, 7)],
    ids=["data throughout", "a young service", "younger than the least", "no data", "one window"],
)
def test_a_history_begins_with_the_data(known: BoolArray, first: int) -> None:
    assert history_start(known, 90) == first


def test_where_there_is_data() -> None:
    counts = SeriesMatrix(0.0, 1.0, (), (), np.zeros((0, 3)), np.array([5.0, 0.0, 1.0]))
    assert known_windows(counts).tolist() == [True, False, True]
    values = np.array([[1.0, np.nan, np.nan], [np.nan, np.nan, 2.0]])
    metrics = SeriesMatrix(0.0, 1.0, ("service",) * 2, ("a", "b"), values, np.ones(3))
    assert known_windows(metrics).tolist() == [True, False, True]


def without(start: int, end: int) -> BoolArray:
    return (start > WINDOW) | (end <= WINDOW)


@pytest.mark.parametrize(
    ("known", "analysis", "extended"),
    [
        pytest.param(WINDOW >= 0, 80, 100, id="data throughout"),
        pytest.param(without(84, 99), 65, 100, id="a gap in the analysis window"),
        pytest.param(without(99, 111), 68, 88, id="a gap in the extended window"),
        pytest.param(without(114, 120), 74, 94, id="silent at the end"),
        pytest.param(without(100, 108) & without(84, 90), 66, 92, id="two gaps"),
        pytest.param(WINDOW % 3 == 0, 80, 100, id="one window of three"),
        pytest.param((WINDOW % 3 == 0) & without(90, 110), 59, 79, id="one of three, and a gap"),
        pytest.param(WINDOW >= 60, 80, 100, id="a young service"),
        pytest.param(WINDOW < 50, 80, 100, id="a gap that would take half of the history"),
        pytest.param(WINDOW < 0, 80, 100, id="no data"),
    ],
)
def test_windows_are_long_by_the_time_with_data(known: BoolArray, analysis: int, extended: int) -> None:
    found = over_gaps(WindowIndexes(80, 100, 120), known)
    assert (found.analysis, found.extended, found.end, found.history) == (analysis, extended, 120, 0)


def test_without_an_extended_window_there_is_none_after_a_gap() -> None:
    assert over_gaps(WindowIndexes(80, 120, 120), without(90, 110)) == WindowIndexes(60, 120, 120)


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=120, max_size=120), st.integers(1, 118), st.integers(0, 60))
def test_windows_only_grow_and_keep_their_order(data: list[bool], analysis: int, length: int) -> None:
    windows = WindowIndexes(analysis, min(analysis + length, 120), 120)
    found = over_gaps(windows, np.array(data))
    assert 0 <= found.analysis <= found.extended <= found.end == 120
    assert found.analysis <= windows.analysis
    assert found.extended <= windows.extended
    assert found.analysis >= analysis / 2
