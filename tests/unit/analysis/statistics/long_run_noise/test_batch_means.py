from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from scipy.signal import lfilter

from pipeline.analysis.statistics.long_run_noise.batch_means import NoiseConfig, unit_variance
from pipeline.model import FloatArray

SERIES, HISTORY = 300, 1440
ONES = np.ones((1, HISTORY))


def estimate(
    observed: FloatArray,
    exposure: FloatArray | None = None,
    *,
    longest: int = 60,
    apart: int = 170,
    counts: bool = False,
) -> tuple[float, float]:
    """Return the mean over all series of what is estimated for each: variance and degrees of freedom."""
    exposure = np.ones(observed.shape) if exposure is None else np.broadcast_to(exposure, observed.shape)
    variance, degrees_of_freedom = unit_variance(
        observed, exposure, longest=longest, apart=apart, counts=counts
    )
    assert variance.shape == degrees_of_freedom.shape == (len(observed),)
    return float(variance.mean()), float(degrees_of_freedom.mean())


def autocorrelated(factor: float) -> FloatArray:
    shocks = np.random.default_rng(2).standard_normal((SERIES, HISTORY + 500)) * np.sqrt(1 - factor**2)
    found: FloatArray = lfilter([1], [1, -factor], shocks, axis=1)[:, 500:]
    return found


def white(rng: Generator) -> FloatArray:
    return rng.standard_normal((SERIES, HISTORY))


@pytest.mark.parametrize("history", [30, 48, 240, 1440, 2880])
@pytest.mark.parametrize("longest", [1, 20, 216])
def test_independent_noise_has_the_variance_of_one_window(history: int, longest: int) -> None:
    values = 3.0 * np.random.default_rng(1).standard_normal((SERIES, history))
    variance, degrees_of_freedom = unit_variance(
        values, np.ones(values.shape), longest=longest, apart=history // 2, counts=False
    )
    assert (
        0.8 * 9.0 <= np.median(variance) <= 1.6 * 9.0
    )  # the largest of several estimates is rather too large
    assert degrees_of_freedom.min() >= 8


@pytest.mark.parametrize("factor", [0.5, 0.85, 0.95])
def test_autocorrelated_noise_has_the_variance_of_long_means(factor: float) -> None:
    variance, _ = estimate(autocorrelated(factor))
    means = autocorrelated(factor).reshape(SERIES, -1, 60).mean(axis=2)
    assert variance == pytest.approx(60 * means.var(), rel=0.3)


def test_it_is_what_the_means_of_spans_that_long_differ_by() -> None:
    # Nothing is said of spans longer than those compared: there even a random walk is nearly white.
    walk = np.cumsum(np.random.default_rng(4).standard_normal((SERIES, HISTORY)), axis=1)
    short, long = estimate(walk, longest=2, apart=2)[0], estimate(walk, longest=60, apart=60)[0]
    assert long > 100 * short


@pytest.mark.parametrize("longest", [100, 400])
def test_means_longer_than_the_history_allows_are_extrapolated(longest: int) -> None:
    variance, _ = estimate(autocorrelated(0.99)[:, :240], longest=longest, apart=longest)
    shorter, _ = estimate(autocorrelated(0.99)[:, :240], longest=10, apart=longest)
    assert 1 < variance / shorter <= longest / 10 * 1.001  # no faster than a random walk's


@pytest.mark.parametrize(
    ("draw", "dispersion"),
    [
        pytest.param(lambda rng: rng.poisson(40.0, (SERIES, HISTORY)), 1.0, id="Poisson"),
        pytest.param(lambda rng: rng.poisson(0.02, (SERIES, HISTORY)), 1.0, id="few samples a day"),
        pytest.param(lambda rng: rng.binomial(100, 0.9, (SERIES, HISTORY)), 0.1, id="binomial of 0.9"),
        pytest.param(
            lambda rng: rng.poisson(rng.gamma(20.0, 2.0, (SERIES, HISTORY))), 3.0, id="negative binomial"
        ),
    ],
)
def test_of_counts_it_is_the_dispersion(draw: Callable[[Generator], FloatArray], dispersion: float) -> None:
    counts = np.asarray(draw(np.random.default_rng(5)), dtype=np.float64)
    expected = np.full(counts.shape, counts.mean())
    assert 0.8 * dispersion <= estimate(counts, expected, counts=True)[0] <= 1.5 * dispersion


@pytest.mark.parametrize(
    ("distort", "most"),
    [
        pytest.param(
            lambda x: np.where(np.arange(HISTORY) >= 700, x + 5, x), 2.0, id="a step of 39 standard errors"
        ),
        pytest.param(
            lambda x: x + 5 * (np.searchsorted([400, 700, 1000], np.arange(HISTORY), side="right") % 2),
            2.0,
            id="three steps",
        ),
        pytest.param(
            lambda x: x - 30 * (np.arange(HISTORY) >= 500) + 20 * (np.arange(HISTORY) // 24 == 38),
            2.0,
            id="a fall that lasts, and a spike",
        ),
        pytest.param(
            lambda x: np.where(np.arange(HISTORY) // 6 == 100, x + 30, x), 1.3, id="an hour's trouble"
        ),
        pytest.param(
            lambda x: np.where(np.arange(HISTORY) % 500 == 0, x + 30, x), 2.0, id="three odd windows"
        ),
        pytest.param(lambda x: x + np.linspace(0, 1, HISTORY), 1.4, id="a drift of a deviation"),
    ],
)
def test_a_history_with_troubles_is_hardly_noisier(
    distort: Callable[[FloatArray], FloatArray], most: float
) -> None:
    values = white(np.random.default_rng(6))
    steady = estimate(values)[0]
    assert 0.8 * steady <= estimate(distort(values))[0] <= most * steady


def test_jumps_that_come_every_day_are_noise() -> None:
    values = white(np.random.default_rng(6)) + 10 * (np.arange(HISTORY) % 144 < 12)
    means = values.reshape(SERIES, -1, 60).mean(axis=2)
    assert estimate(values)[0] >= 60 * means.var()


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param(np.random.default_rng(1).random(HISTORY) < 0.3, id="single windows"),
        pytest.param(np.arange(HISTORY) // 36 % 5 == 0, id="six hours of each thirty"),
        pytest.param(np.arange(HISTORY) < 700, id="the first half"),
    ],
)
def test_no_data_is_neither_noise_nor_quiet(missing: FloatArray) -> None:
    values = np.where(missing, 0.0, white(np.random.default_rng(7)))
    variance, degrees_of_freedom = estimate(values, np.where(missing, 0.0, ONES))
    assert variance == pytest.approx(1.2, abs=0.3)
    assert degrees_of_freedom < estimate(white(np.random.default_rng(7)))[1]


HOURS = np.arange(HISTORY) / 6
PATTERNS = [
    pytest.param(np.arange(HISTORY) % 3 == 0, id="every third window"),
    pytest.param(np.arange(HISTORY) % 12 < 5, id="five of twelve"),
    pytest.param(np.arange(HISTORY) % 29 < 3, id="three of 29"),
    pytest.param((HOURS % 24 >= 8) & (HOURS % 24 < 18), id="ten hours a day"),
    pytest.param((HOURS % 24 >= 8) & (HOURS % 24 < 10), id="two hours a day"),
    pytest.param((HOURS < 100) | (HOURS >= 107), id="one gap of seven hours"),
]


@pytest.mark.parametrize("apart", [170, 174, 180])
@pytest.mark.parametrize("known", PATTERNS)
def test_a_pattern_of_data_hides_no_noise(known: FloatArray, apart: int) -> None:
    values = np.where(known, white(np.random.default_rng(14)), 0.0)
    exposure = np.where(known, ONES, 0.0)
    variance, degrees_of_freedom = unit_variance(values, exposure, longest=60, apart=apart, counts=False)
    assert variance.mean() == pytest.approx(1.2, abs=0.3)
    assert degrees_of_freedom.min() >= 4


@pytest.mark.parametrize("known", PATTERNS)
def test_noise_that_wanders_is_that_of_means_with_the_same_pattern(known: FloatArray) -> None:
    values = np.where(known, autocorrelated(0.95), 0.0)
    variance, _ = estimate(values, np.where(known, ONES, 0.0), longest=144, apart=174)
    days, windows = values.reshape(SERIES, -1, 144).sum(axis=2), known.reshape(-1, 144).sum(axis=1)
    of_a_day = windows.mean() * (days / np.maximum(windows, 1))[:, windows > 0].var()
    assert 0.6 * of_a_day <= variance <= 3 * of_a_day


@pytest.mark.parametrize("counts", [False, True])
def test_without_data_nothing_varies(counts: bool) -> None:
    nothing = np.zeros((2, 50))
    variance, degrees_of_freedom = unit_variance(nothing, nothing, longest=9, apart=9, counts=counts)
    assert variance.tolist() == [0.0, 0.0]
    assert (degrees_of_freedom >= 1).all()


@pytest.mark.parametrize("history", [1, 2, 5])
def test_hardly_any_history_says_little(history: int) -> None:
    variance, degrees_of_freedom = unit_variance(
        np.ones((3, history)), np.ones((3, history)), longest=20, apart=20, counts=False
    )
    assert variance.tolist() == [0.0] * 3
    assert (degrees_of_freedom < 4).all()


def test_units() -> None:
    values = white(np.random.default_rng(8))
    weights = np.random.default_rng(8).uniform(0.5, 2.0, (1, HISTORY))
    plain = estimate(values * weights, weights)[0]
    assert estimate(10 * values * weights, weights)[0] == pytest.approx(100 * plain)
    assert estimate(4 * values * weights, 4 * weights)[0] == pytest.approx(4 * plain)


def test_one_exposure_for_all_series_is_as_good_as_one_each() -> None:
    values = white(np.random.default_rng(9))[:5]
    shared = unit_variance(values, ONES, longest=60, apart=170, counts=False)
    each = unit_variance(values, np.ones(values.shape), longest=60, apart=170, counts=False)
    np.testing.assert_array_equal(shared, each)


def test_series_are_estimated_by_themselves() -> None:
    values = white(np.random.default_rng(10))[:6] * np.array([[1.0, 5.0, 1e-6, 1e6, 0.0, 2.0]]).T
    values[3, 100] *= 50
    together = unit_variance(values, np.ones(values.shape), longest=60, apart=170, counts=False)
    for row in range(6):
        alone = unit_variance(values[row : row + 1], ONES, longest=60, apart=170, counts=False)
        np.testing.assert_allclose(np.ravel(alone), np.array(together)[:, row], rtol=1e-12)


def test_a_metric_that_is_mostly_zero_is_not_without_noise() -> None:
    rng = np.random.default_rng(11)
    errors = np.where(rng.random((SERIES, 400)) < 0.05, rng.exponential(1.0, (SERIES, 400)), 0.0)
    variance, _ = unit_variance(errors, np.ones(errors.shape), longest=10, apart=50, counts=False)
    assert (variance > errors.var() / 10).mean() > 0.95


def test_the_settings_can_be_given() -> None:
    values = white(np.random.default_rng(12))
    few = NoiseConfig(min_blocks=8)
    _, degrees_of_freedom = unit_variance(
        values, np.ones(values.shape), longest=180, apart=180, counts=False, config=few
    )
    _, usual = unit_variance(values, np.ones(values.shape), longest=180, apart=180, counts=False)
    assert degrees_of_freedom.min() < usual.min()
