from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.statistics.long_run_noise.batch_means import long_run_variance

WINDOWS = 1440


def test_of_white_noise_it_is_the_variance_of_a_window() -> None:
    values = np.random.default_rng(1).normal(0.0, 2.0, (40, WINDOWS))
    variance, degrees = long_run_variance(values, np.ones(values.shape), longest=8)
    assert np.median(variance) == pytest.approx(4.0, rel=0.15)
    assert (degrees > 100).all()


def test_autocorrelation_makes_long_means_noisier() -> None:
    rng = np.random.default_rng(2)
    values = np.repeat(rng.normal(0.0, 1.0, (40, WINDOWS // 12)), 12, axis=1)
    variance, _ = long_run_variance(values, np.ones(values.shape), longest=48)
    assert np.median(variance) == pytest.approx(12.0, rel=0.4)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda time: 20.0 * (time > 700), id="a step"),
        pytest.param(lambda time: time / 100, id="a slope"),
        pytest.param(lambda time: 20.0 * (np.abs(time - 700) < 4), id="a transient"),
    ],
)
def test_changes_of_level_are_no_noise(change: object) -> None:
    assert callable(change)
    values = np.random.default_rng(3).normal(0.0, 1.0, (40, WINDOWS))
    plain, _ = long_run_variance(values, np.ones(values.shape), longest=8)
    changed, _ = long_run_variance(values + change(np.arange(WINDOWS)), np.ones(values.shape), longest=8)
    assert np.median(changed / plain) == pytest.approx(1.0, abs=0.3)


def test_a_weight_is_an_inverse_variance() -> None:
    rng = np.random.default_rng(4)
    weights = rng.choice([1.0, 9.0], (40, WINDOWS))
    values = rng.normal(0.0, 1.0, weights.shape) / np.sqrt(weights)
    assert np.median(long_run_variance(values, weights, longest=8)[0]) == pytest.approx(1.0, rel=0.15)
