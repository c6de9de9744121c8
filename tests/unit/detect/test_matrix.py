"""Parts of a matrix of series."""

from __future__ import annotations

import numpy as np

from pipeline.detect.matrix import drop_windows, rows_by_series, select_rows, select_series
from pipeline.model import SeriesKey, SeriesMatrix

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
