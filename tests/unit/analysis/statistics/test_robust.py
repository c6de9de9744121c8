from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.analysis.statistics import robust

NORMAL = np.random.default_rng(1).normal(0.0, 2.0, (4, 4000))


def test_row_medians_leave_out_what_is_missing() -> None:
    values = np.array([[1.0, 2.0, 9.0], [1.0, np.nan, 3.0], [np.nan] * 3])
    assert robust.row_medians(values) == pytest.approx([2.0, 2.0, np.nan], nan_ok=True)
    assert robust.row_medians(values[:1]).tolist() == [2.0]
    assert np.isnan(robust.row_medians(np.zeros((2, 0)))).all()


@pytest.mark.parametrize("windows", [1, 2, 7, 440])
@pytest.mark.parametrize("times", [0.5, 3.0, 18.0])
def test_no_row_above_its_median_is_missed(windows: int, times: float) -> None:
    rng = np.random.default_rng(windows)
    values = rng.chisquare(1, (300, windows)) * (rng.random((300, windows)) < rng.random((300, 1)))
    above = values.max(axis=1) > times * np.median(values, axis=1)
    found = robust.may_exceed_median(values, times)
    assert not (above & ~found).any()
    if windows == 440:
        assert (found & ~above).mean() < 0.02


def test_rows_of_equal_values_or_of_nothing_exceed_no_median() -> None:
    assert robust.may_exceed_median(np.ones((2, 9)), 2.0).tolist() == [False, False]
    assert robust.may_exceed_median(np.zeros((1, 9)), 2.0).tolist() == [False]


@pytest.mark.parametrize(
    "estimate",
    [
        pytest.param(lambda rows: robust.typical_deviation(np.abs(rows)), id="of deviations"),
        pytest.param(lambda rows: [robust.quantile_deviation(row) for row in rows], id="of quantiles"),
        pytest.param(
            lambda rows: [robust.MAD_TO_DEVIATION * np.median(np.abs(row)) for row in rows], id="of a median"
        ),
        pytest.param(
            lambda rows: [np.median(np.abs(row)) / robust.NORMAL_QUARTILE for row in rows], id="of a quartile"
        ),
    ],
)
def test_estimates_of_normal_noise(estimate: object) -> None:
    assert callable(estimate)
    assert estimate(NORMAL) == pytest.approx([2.0] * 4, rel=0.06)


def test_a_median_of_zero_is_no_deviation_of_zero() -> None:
    rare = np.array([[0.0] * 7 + [1.0] * 3])
    assert robust.typical_deviation(rare)[0] == pytest.approx(1.2533 * 0.3)
    assert robust.quantile_deviation(rare[0]) == pytest.approx(1 / 1.2816)
    assert robust.quantile_deviation(np.array([0.0] * 9 + [1.0])) == pytest.approx(0.1**0.5)


def test_overdispersion_is_that_of_most_and_one_at_least() -> None:
    squares = np.random.default_rng(2).chisquare(1, 5000)
    assert pytest.approx(stats.chi2.median(1)) == robust.MEDIAN_SQUARE
    assert robust.overdispersion(4 * squares) == pytest.approx(4.0, rel=0.1)
    assert robust.overdispersion(np.concatenate([4 * squares, np.full(50, 1e6)])) == pytest.approx(
        4.0, rel=0.1
    )
    assert robust.overdispersion(squares / 9) == 1.0
