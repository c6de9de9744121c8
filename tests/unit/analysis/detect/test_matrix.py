"""Parts of a matrix of series."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.matrix import (
    drop_windows,
    has_history,
    rows_by_series,
    select_rows,
    select_series,
)
from pipeline.model import BoolArray, SeriesKey, SeriesMatrix

MATRIX = SeriesMatrix(
    100.0,
    10.0,
    ("endpoint", "subroutine", "subroutine"),
    ("/a", "a", "b"),
    np.arange(12.0).reshape(3, 4),
    np.arange(4.0),
    share_factor=np.ones(4),
)


def test_rows_are_known_by_kind_and_name() -> None:
    assert rows_by_series(MATRIX) == {("endpoint", "/a"): 0, ("subroutine", "a"): 1, ("subroutine", "b"): 2}


def test_rows_are_chosen_in_the_order_given_and_series_in_that_of_the_matrix() -> None:
    assert select_rows(MATRIX, [2, 0]).names == ("b", "/a")
    assert select_rows(MATRIX, []).samples.shape == (0, 4)
    chosen = select_series(
        MATRIX, {SeriesKey("subroutine", "b"), SeriesKey("endpoint", "/a"), SeriesKey("endpoint", "b")}
    )
    assert chosen.names == ("/a", "b")
    np.testing.assert_array_equal(chosen.samples, MATRIX.samples[[0, 2]])
    np.testing.assert_array_equal(chosen.totals, MATRIX.totals)


def test_windows_are_dropped_from_everything() -> None:
    cut = drop_windows(MATRIX, 3)
    assert cut.start == 130.0
    assert (cut.samples.shape, cut.totals.tolist()) == ((3, 1), [3.0])
    assert cut.share_factor is not None
    assert len(cut.share_factor) == 1


DAYS = np.arange(240)  # ten days of hours


@pytest.mark.parametrize(
    ("known", "enough"),
    [
        pytest.param(np.ones(240), True, id="all the time"),
        pytest.param(DAYS >= 120, True, id="for half of it"),
        pytest.param(DAYS >= 130, False, id="starting up"),
        pytest.param(DAYS % 3 == 0, True, id="in one window of three"),
        pytest.param((DAYS % 3 == 0) & (DAYS >= 130), False, id="starting up, in one window of three"),
        pytest.param(DAYS % 24 >= 14, True, id="ten hours a day"),
        pytest.param((DAYS == 3) | (DAYS >= 200), False, id="starting up, but for a stray sample"),
        pytest.param(DAYS < 170, True, id="until a gap of three days"),
        pytest.param((DAYS >= 60) & (DAYS < 100), False, id="a trial, and nothing since"),
        pytest.param(np.zeros(240), False, id="never"),
    ],
)
def test_history_is_measured_by_what_is_usual(known: BoolArray, enough: bool) -> None:
    found = has_history(np.stack([known, np.ones(240)]).astype(np.bool_), 0.5)
    assert found.tolist() == [enough, True]
