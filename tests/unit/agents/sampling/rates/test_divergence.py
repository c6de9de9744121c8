"""Divergence of samples: no change is judged right however few they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agents.sampling.rates import compare_samples, expected_divergence, js_divergence, top_divergence

SHARES = np.array([0.3, 0.2, 0.15, 0.1, 0.08, 0.05, 0.04, 0.03, 0.02, 0.02, 0.01])


@pytest.mark.parametrize(
    ("first", "second", "bits"),
    [
        pytest.param([0.5, 0.5], [0.5, 0.5], 0.0, id="equal"),
        pytest.param([1.0, 0.0], [0.0, 1.0], 1.0, id="nothing in common"),
        pytest.param([1.0, 0.0], [0.5, 0.5], 0.3112781, id="half in common"),
    ],
)
def test_divergence_of_distributions(first: list[float], second: list[float], bits: float) -> None:
    assert js_divergence(np.array(first), np.array(second)) == pytest.approx(bits, abs=1e-6)


def test_functions_that_are_new_stand_at_the_end() -> None:
    assert top_divergence(np.array([10.0]), np.array([0.0, 10.0])) == pytest.approx(1.0)
    assert top_divergence(np.zeros(0), np.array([10.0])) == 0.0


@pytest.mark.parametrize("samples", [(100, 100), (100, 10_000), (1000, 50_000), (20_000, 20_000)])
def test_samples_of_one_profile_do_not_diverge(samples: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    first, second = (rng.multinomial(n, SHARES, 2000).astype(float) for n in samples)
    found = [compare_samples(*pair) for pair in zip(first, second, strict=True)]
    corrected = np.array([one.corrected for one in found])
    measured = float(np.mean([one.measured for one in found]))
    assert abs(corrected.mean()) < 4 * corrected.std() / math.sqrt(len(found)) + 0.05 * measured
    p_values = np.array([one.p_value for one in found])
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.025)
    assert np.mean(p_values < 0.001) < 0.006


def test_a_change_keeps_its_size_at_few_samples() -> None:
    rng = np.random.default_rng(2)
    moved = SHARES.copy()
    moved[[0, 3]] += [-0.1, 0.1]
    found = [
        compare_samples(
            rng.multinomial(5000, SHARES).astype(float), rng.multinomial(300, moved).astype(float)
        )
        for _ in range(1000)
    ]
    assert np.mean([one.corrected for one in found]) == pytest.approx(js_divergence(SHARES, moved), rel=0.1)


def test_nothing_is_said_of_nothing() -> None:
    assert compare_samples(np.zeros(3), np.ones(3)).p_value == 1.0
    assert compare_samples(np.ones(1), np.ones(1)).p_value == 1.0


def test_noise_of_so_many_samples() -> None:
    rng = np.random.default_rng(3)
    samples = 2000
    found = [js_divergence(rng.multinomial(samples, SHARES) / samples, SHARES) for _ in range(500)]
    assert expected_divergence(samples) == pytest.approx(np.mean(found), rel=0.05)
