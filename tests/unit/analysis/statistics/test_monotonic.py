from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.analysis.statistics.monotonic import mann_kendall, theil_sen
from pipeline.analysis.statistics.robust import row_quantiles


@pytest.mark.parametrize(
    ("values", "score"),
    [
        # By hand: S = 10 of 10 pairs, variance 5 · 4 · 15 / 18 = 50 / 3.
        pytest.param([1.0, 2.0, 3.0, 4.0, 5.0], 9 / np.sqrt(50 / 3), id="rising"),
        pytest.param([5.0, 4.0, 3.0, 2.0, 1.0], -9 / np.sqrt(50 / 3), id="falling"),
        # A tied pair: S = 5, variance (4 · 3 · 13 - 2 · 1 · 9) / 18 = 23 / 3.
        pytest.param([1.0, 2.0, 2.0, 3.0], 4 / np.sqrt(23 / 3), id="ties lower the variance"),
        pytest.param([1.0, np.nan, 2.0, np.nan, 3.0, 4.0, 5.0], 9 / np.sqrt(50 / 3), id="gaps"),
        pytest.param([2.0, 2.0, 2.0, 2.0], 0.0, id="constant"),
        pytest.param([1.0, 2.0], 0.0, id="two points are no trend"),
        pytest.param([np.nan, np.nan, np.nan], 0.0, id="no data"),
        pytest.param([1.0, 3.0, 2.0], 0.0, id="one more rising than falling: within the continuity"),
    ],
)
def test_mann_kendall(values: list[float], score: float) -> None:
    np.testing.assert_allclose(mann_kendall(np.array([values])), [score])


def test_mann_kendall_keeps_its_level_on_noise() -> None:
    scores = mann_kendall(np.random.default_rng(1).normal(size=(4000, 20)))
    assert (scores > stats.norm.isf(0.05)).mean() == pytest.approx(0.05, abs=0.01)
    assert (scores < -stats.norm.isf(0.05)).mean() == pytest.approx(0.05, abs=0.01)


def test_theil_sen_agrees_with_scipy() -> None:
    rows = np.random.default_rng(2).normal(size=(20, 15)) + 0.3 * np.arange(15)
    found = theil_sen(rows)
    np.testing.assert_allclose(found.slope, [stats.theilslopes(row).slope for row in rows])
    level = [np.median(row - s * np.arange(15)) for row, s in zip(rows, found.slope, strict=True)]
    np.testing.assert_allclose(found.intercept, level)


def test_theil_sen_ignores_outliers_and_gaps() -> None:
    line = theil_sen(np.array([[1.0, 3.0, np.nan, 7.0, 900.0, 11.0, 13.0]]))
    np.testing.assert_allclose([line.slope[0], line.intercept[0]], [2.0, 1.0])


@pytest.mark.parametrize("values", [[[np.nan, 4.0]], [[np.nan, np.nan]], [[]]])
def test_one_point_is_no_line(values: list[list[float]]) -> None:
    assert np.isnan(theil_sen(np.array(values)).slope).all()


def test_row_quantiles_look_at_what_is_known() -> None:
    rows = np.array([[4.0, np.nan, 1.0, 3.0, 2.0], [np.nan, np.nan, 5.0, np.nan, np.nan], [np.nan] * 5])
    found = row_quantiles(rows, (0.0, 0.5, 0.9))
    np.testing.assert_allclose(found, [[1.0, 5.0, np.nan], [2.5, 5.0, np.nan], [3.7, 5.0, np.nan]])


def test_no_rows() -> None:
    assert mann_kendall(np.zeros((0, 4))).shape == theil_sen(np.zeros((0, 4))).slope.shape == (0,)
