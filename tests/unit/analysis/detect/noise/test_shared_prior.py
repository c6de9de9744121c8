from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import Generator

from pipeline.analysis.detect.noise.shared_prior import fit_shared_prior, moderated
from pipeline.analysis.detect.service_noise import with_shared_prior
from pipeline.analysis.detect.short_term import WindowIndexes, find_candidates
from pipeline.model import FloatArray, MetricKind, SeriesMatrix, SharedVariancePrior

SERIES, OWN = 400, 31.0
WINDOWS = WindowIndexes(analysis=1440, extended=1464, end=1500)
CHANGE = 1450
TOTAL = 100_000.0


def estimates(rng: Generator, *, prior: float = np.inf) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Levels, estimates and degrees of freedom; true variances rise from 1 to 10 and scatter by the prior."""
    level = np.exp(np.linspace(np.log(1e-5), np.log(1e-2), SERIES))
    true = 10.0 ** (np.arange(SERIES) / (SERIES - 1))
    if np.isfinite(prior):
        true = true * prior / rng.chisquare(prior, SERIES)
    return level, true * rng.chisquare(OWN, SERIES) / OWN, np.full(SERIES, OWN)


def fit(level: FloatArray, variance: FloatArray, degrees_of_freedom: FloatArray) -> SharedVariancePrior:
    common = fit_shared_prior(level, variance, degrees_of_freedom)
    assert common is not None
    return common


@pytest.mark.parametrize(
    ("prior", "least", "most"), [(4.0, 2.5, 6.0), (20.0, 10.0, 40.0), (np.inf, 60.0, 1000.0)]
)
def test_others_are_worth_their_similarity(prior: float, least: float, most: float) -> None:
    worth = [
        fit(*estimates(np.random.default_rng(seed), prior=prior)).degrees_of_freedom for seed in range(20)
    ]
    assert least <= np.median(worth) <= most


def test_noise_is_expected_by_the_level() -> None:
    common = fit(*estimates(np.random.default_rng(1)))
    found = np.exp(np.interp(np.log([1e-5, 3.16e-4, 1e-2]), common.log_levels, common.log_variances))
    np.testing.assert_allclose(found, [1.0, 3.16, 10.0], rtol=0.35)


def test_estimates_come_nearer_to_the_truth() -> None:
    level, variance, degrees_of_freedom = estimates(np.random.default_rng(2))
    shared, total = moderated(fit(level, variance, degrees_of_freedom), level, variance, degrees_of_freedom)
    true = 10.0 ** (np.arange(SERIES) / (SERIES - 1))
    assert np.std(np.log(shared / true)) < 0.6 * np.std(np.log(variance / true))
    assert (total > degrees_of_freedom).mean() >= 0.97


def test_a_series_noisier_than_others_account_for_keeps_its_own_noise() -> None:
    level, variance, degrees_of_freedom = estimates(np.random.default_rng(3))
    common = fit(level, variance, degrees_of_freedom)
    variance[200] *= 10
    shared, total = moderated(common, level, variance, degrees_of_freedom)
    assert (shared[200], total[200]) == (variance[200], OWN)


def test_a_quiet_series_among_noisy_ones_is_not_taken_for_as_quiet() -> None:
    level, variance, degrees_of_freedom = estimates(np.random.default_rng(3))
    common = fit(level, variance, degrees_of_freedom)
    variance[200] /= 10
    assert moderated(common, level, variance, degrees_of_freedom)[0][200] > 3 * variance[200]


def test_under_the_levels_looked_at_nothing_is_assumed() -> None:
    common = fit(*estimates(np.random.default_rng(3)))
    one = np.array([1e-7, 0.0]), np.array([2.0, 3.0]), np.array([OWN, OWN])
    shared, total = moderated(common, *one)
    assert (shared.tolist(), total.tolist()) == ([2.0, 3.0], [OWN, OWN])


@pytest.mark.parametrize("series", [0, 1, 99])
def test_few_series_have_nothing_in_common(series: int) -> None:
    level, variance, degrees_of_freedom = (values[:series] for values in estimates(np.random.default_rng(4)))
    assert fit_shared_prior(level, variance, degrees_of_freedom) is None


def test_series_that_are_not_similar_say_nothing_of_each_other() -> None:
    level, variance, degrees_of_freedom = estimates(np.random.default_rng(5))
    variance *= np.exp(np.random.default_rng(6).normal(0, 4, SERIES))
    assert fit_shared_prior(level, variance, degrees_of_freedom) is None


def service(
    rng: Generator, series: int = 300, *, over: float = 1.0, kind: MetricKind = "subroutine"
) -> SeriesMatrix:
    """Steady subroutines whose counts vary ``over`` times as sampling alone more than that."""
    level = np.exp(rng.uniform(np.log(2e-5), np.log(2e-3), series))
    rate = rng.gamma(level[:, None] * TOTAL / over, over, (series, WINDOWS.end))
    counts = rng.poisson(rate).astype(np.float64)
    names = tuple(f"s{row:04}" for row in range(series))
    return SeriesMatrix(1.7e9, 600.0, (kind,) * series, names, counts, np.full(WINDOWS.end, TOTAL))


def test_what_a_service_has_in_common_does_not_depend_on_the_order_of_its_series() -> None:
    matrix = service(np.random.default_rng(7), 600)
    order = np.random.default_rng(8).permutation(600)
    mixed = replace(matrix, names=tuple(matrix.names[i] for i in order), samples=matrix.samples[order])
    one, other = with_shared_prior(matrix, WINDOWS).noise, with_shared_prior(mixed, WINDOWS).noise
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.log_levels, other.log_levels)
    np.testing.assert_array_equal(one.log_variances, other.log_variances)
    assert one.degrees_of_freedom == other.degrees_of_freedom


def test_what_comes_after_a_scan_has_no_say() -> None:
    matrix = service(np.random.default_rng(9))
    more = replace(
        matrix,
        samples=np.hstack([matrix.samples, 50.0 * matrix.samples[:, :100]]),
        totals=np.append(matrix.totals, matrix.totals[:100]),
    )
    one, other = with_shared_prior(matrix, WINDOWS).noise, with_shared_prior(more, WINDOWS).noise
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.log_variances, other.log_variances)


@pytest.mark.parametrize("kind", ["service", "endpoint"])
def test_only_subroutines_are_asked(kind: MetricKind) -> None:
    matrix = service(np.random.default_rng(9), kind=kind)
    assert with_shared_prior(matrix, WINDOWS).noise is None


def test_a_batch_with_a_shared_prior_equals_one_by_one() -> None:
    matrix = with_shared_prior(stepped(service(np.random.default_rng(10)), 7.0), WINDOWS)
    alone = tuple(
        candidate
        for row in range(0, 300, 7)
        for candidate in find_candidates(
            replace(
                matrix,
                kinds=matrix.kinds[row : row + 1],
                names=matrix.names[row : row + 1],
                samples=matrix.samples[row : row + 1],
            ),
            WINDOWS,
        )
    )
    wanted = {matrix.names[row] for row in range(0, 300, 7)}
    assert alone
    assert alone == tuple(c for c in find_candidates(matrix, WINDOWS) if c.metric in wanted)


def stepped(matrix: SeriesMatrix, errors: float) -> SeriesMatrix:
    """Every series steps up by so many standard errors of sampling of what is compared."""
    level = matrix.samples.sum(axis=1) / matrix.totals.sum()
    after, before = (WINDOWS.end - CHANGE) * TOTAL, 5 * (WINDOWS.end - CHANGE) * TOTAL
    size = errors * np.sqrt(level * (1 / after + 1 / before))
    more = np.random.default_rng(11).poisson(size[:, None] * TOTAL, (len(level), WINDOWS.end - CHANGE))
    samples = matrix.samples.copy()
    samples[:, CHANGE:] += more
    return replace(matrix, samples=samples)


def sure(matrix: SeriesMatrix) -> int:
    """Count the candidates that a scan of a thousand series would believe."""
    return sum(candidate.p_value < 1e-5 for candidate in find_candidates(matrix, WINDOWS))


@pytest.mark.slow
def test_steps_are_surer_with_a_shared_prior_and_steady_series_no_more_often_candidates() -> None:
    steady = service(np.random.default_rng(12), 1500)
    common = with_shared_prior(steady, WINDOWS).noise
    assert common is not None
    # Half of 1 % rise by chance: 17 or more would happen to one test in a thousand.
    assert len(find_candidates(replace(steady, noise=common), WINDOWS)) <= 16
    assert sure(replace(steady, noise=common)) == 0
    matrix = stepped(service(np.random.default_rng(13)), 9.0)
    assert sure(replace(matrix, noise=common)) >= sure(matrix) + 15
