"""Descriptions of segments: fits by hand, against plain generalised least squares, and their nats."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.offline.lengths import Fits, describe, fit_segments, running_sums
from pipeline.model import FloatArray

TIME = np.arange(4) / 4 - 0.5


def squares_by_matrix(values: FloatArray, degree: int, correlation: float) -> float:
    """What a polynomial leaves of values under AR(1) noise, with the whole inverse covariance."""
    points = len(values)
    inverse = np.eye(points) * (1 + correlation**2) - correlation * (
        np.eye(points, k=1) + np.eye(points, k=-1)
    )
    inverse[0, 0] = inverse[-1, -1] = 1.0
    shape = np.vander(np.linspace(-1, 1, points), degree + 1)
    weights = np.linalg.solve(shape.T @ inverse @ shape, shape.T @ inverse @ values)
    left = values - shape @ weights
    return float(left @ inverse @ left)


def fit(values: FloatArray, time: FloatArray, first: int, end: int, correlation: float = 0.0) -> Fits:
    sums = running_sums(values, time)
    return fit_segments(sums, np.array([first]), np.array([end]), np.array([correlation]))


def test_running_sums_of_a_level_and_values() -> None:
    sums = running_sums(np.array([1.0, 2.0, 3.0]), np.array([-0.5, 0.0, 0.5]))
    products = {
        name: row for row, name in enumerate(("1t", "tt", "1tt", "ttt", "tttt", "1y", "ty", "tty", "yy"))
    }
    assert sums.whole[products["1y"]].tolist() == [0, 1, 3, 6]
    assert sums.lagged[products["1y"]].tolist() == [0, 3, 8]
    assert sums.whole[products["yy"]].tolist() == [0, 1, 5, 14]
    assert sums.lagged[products["yy"]].tolist() == [0, 4, 16]
    assert sums.whole[products["ty"]].tolist() == [0, -0.5, -0.5, 1]


def test_what_level_line_and_parabola_leave() -> None:
    # Around 3: 4 + 1 + 0 + 9. The line takes 8² / 5, and of a cubic part (-1, 3, -3, 1) are left 2² / 20.
    fits = fit(np.array([1.0, 2.0, 3.0, 6.0]), TIME, 0, 4)
    assert fits.level == pytest.approx(14.0)
    assert fits.line == pytest.approx(1.2)
    assert fits.curve == pytest.approx(0.2)


def test_a_level_under_correlated_noise() -> None:
    # Innovations of (1, 2, 4) with half of the value before: 0.75 · 1² + 1.5² + 3² = 12, and with the level
    # 3, whose own are 1.25: 12 − 3² / 1.25.
    assert fit(np.array([1.0, 2.0, 4.0]), TIME[:3], 0, 3, 0.5).level == pytest.approx(4.8)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9, 0.98])
@pytest.mark.parametrize(("first", "end"), [(0, 30), (0, 3), (7, 12), (27, 30)])
def test_any_segment_is_fitted_as_by_the_whole_covariance(first: int, end: int, correlation: float) -> None:
    values = np.random.default_rng(1).standard_normal(30)
    fits = fit(values, np.arange(30) / 30 - 0.5, first, end, correlation)
    for degree, left in enumerate((fits.level, fits.line, fits.curve)):
        wanted = squares_by_matrix(values[first:end], degree, correlation)
        assert float(left[0, 0]) == pytest.approx(wanted, rel=1e-6, abs=1e-9)


HALF_LOG = 0.5 * np.log(4)  # of four points: what a parameter takes
DENSITY = 2 * np.log(2 * np.pi)  # of four points with variance 1


@pytest.mark.parametrize(
    ("left", "flat", "nats", "parameters"),
    [
        pytest.param((14.0, 1.2, 0.2), True, 7 + HALF_LOG + DENSITY, 1, id="levels alone"),
        pytest.param((14.0, 1.2, 0.2), False, 0.6 + 2 * HALF_LOG + DENSITY, 2, id="a line is shortest"),
        pytest.param((1.0, 0.9, 0.8), False, 0.5 + HALF_LOG + DENSITY, 1, id="a line takes too much"),
        pytest.param(
            (90.0, 80.0, 2.0), False, 1 + 4 * HALF_LOG + DENSITY, 3, id="a parabola, charged as three"
        ),
    ],
)
def test_the_shape_that_makes_the_description_shortest(
    left: tuple[float, float, float], flat: bool, nats: float, parameters: int
) -> None:
    fits = Fits(*(np.array([[one]]) for one in left))
    found = describe(fits, np.array([4]), np.zeros(1), np.ones(1), flat=flat)
    assert float(found.nats[0, 0]) == pytest.approx(nats)
    assert int(found.parameters[0, 0]) == parameters
    assert float(found.squares[0, 0]) == left[parameters - 1]


def test_a_correlation_of_the_noise_and_its_variance_in_nats() -> None:
    fits = Fits(*(np.array([[8.0], [8.0]]) for _ in range(3)))
    found = describe(fits, np.array([4]), np.array([0.0, 0.6]), np.array([2.0, 2.0]), flat=True)
    white, correlated = found.nats[:, 0].tolist()
    assert white == pytest.approx(8 / 4 + HALF_LOG + DENSITY + 2 * np.log(2))
    assert correlated - white == pytest.approx(-0.5 * np.log(0.64))  # the first point varies more
