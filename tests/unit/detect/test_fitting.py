"""Windows fitted to when a service has data."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.detect.fitting import history_start, known_windows, widening
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
