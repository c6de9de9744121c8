from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.rootcause.onset import DeploymentConfig, RiseOnset, onset_density, weigh_deployments
from pipeline.model import BoolArray, FloatArray

WINDOWS = 120
EVERYWHERE: BoolArray = np.ones(WINDOWS, dtype=np.bool_)
WEIGHTS: FloatArray = np.ones(WINDOWS)


def step(at: int, size: float, noise: float = 1.0, seed: int = 1) -> FloatArray:
    values = np.random.default_rng(seed).normal(size=WINDOWS) * noise
    values[at:] += size
    return values


@pytest.mark.parametrize("size", [5.0, -5.0], ids=["rise", "fall"])
@pytest.mark.parametrize("at", [20, 60, 110])
def test_a_clear_step_is_dated_to_the_window(at: int, size: float) -> None:
    density = onset_density(step(at, size), WEIGHTS, EVERYWHERE)
    assert density.argmax() == at
    assert density[at - 1 : at + 2].sum() > 0.95


def test_a_small_step_leaves_doubt() -> None:
    clear, small = (onset_density(step(60, size), WEIGHTS, EVERYWHERE) for size in (5.0, 0.8))
    assert small.max() < 0.5 < clear.max()
    assert small[40:80].sum() > 0.8


@pytest.mark.parametrize("seed", range(5))
def test_small_steps_keep_the_truth_in_play(seed: int) -> None:
    density = onset_density(step(60, 1.5, seed=seed), WEIGHTS, EVERYWHERE)
    credible = np.argsort(-density)[: int(np.searchsorted(np.cumsum(np.sort(density)[::-1]), 0.99)) + 1]
    assert 60 in credible


def test_autocorrelation_leaves_more_doubt() -> None:
    noise = np.random.default_rng(2).normal(size=WINDOWS)
    slow = np.convolve(noise, np.ones(12) / np.sqrt(12), mode="same")
    plain, wandering = (part + 2.0 * (np.arange(WINDOWS) >= 60) for part in (noise, slow))
    found = [onset_density(values, WEIGHTS, EVERYWHERE) for values in (plain, wandering)]
    entropies = [-(d[d > 0] * np.log(d[d > 0])).sum() for d in found]
    assert entropies[0] < entropies[1]


def test_a_slow_rise_begins_where_it_begins() -> None:
    ramp = 6.0 * np.clip((np.arange(WINDOWS) - 40) / 60, 0, 1)
    values = ramp + np.random.default_rng(5).normal(size=WINDOWS)
    as_step = onset_density(values, WEIGHTS, EVERYWHERE)
    as_ramp = onset_density(values, WEIGHTS, EVERYWHERE, slow=True)
    assert as_step.argmax() > 55, "a step's best place is the middle"
    assert as_ramp[30:52].sum() > 0.8


def test_long_series_are_averaged() -> None:
    values = np.zeros(1500)
    values[700:] = 3.0
    values += np.random.default_rng(1).normal(size=1500)
    density = onset_density(values, np.ones(1500), np.ones(1500, dtype=np.bool_), slow=True)
    assert density.sum() == pytest.approx(1.0)
    assert abs(int(density.argmax()) - 700) <= 6


@pytest.mark.parametrize(
    ("values", "weights"),
    [
        pytest.param(np.zeros(WINDOWS), WEIGHTS, id="constant"),
        pytest.param(step(60, 5.0), np.zeros(WINDOWS), id="no data"),
        pytest.param(step(60, 5.0), (np.arange(WINDOWS) < 4) * 1.0, id="four windows"),
        pytest.param((np.arange(WINDOWS) >= 60) * 1.0, WEIGHTS, id="no noise at all"),
    ],
)
@pytest.mark.parametrize("slow", [False, True])
def test_without_noise_or_data_nothing_breaks(values: FloatArray, weights: FloatArray, slow: bool) -> None:
    density = onset_density(values, weights, EVERYWHERE, slow=slow)
    assert np.isfinite(density).all()
    assert density.sum() == pytest.approx(1.0)


def test_only_allowed_windows_count() -> None:
    allowed = (np.arange(WINDOWS) >= 70) & (np.arange(WINDOWS) < 90)
    density = onset_density(step(60, 5.0), WEIGHTS, allowed)
    assert density[~allowed].sum() == 0
    assert density.sum() == pytest.approx(1.0)
    assert onset_density(step(60, 5.0), WEIGHTS, ~EVERYWHERE).sum() == 0


def test_windows_without_data_are_passed_over() -> None:
    values, weights = step(60, 5.0), WEIGHTS.copy()
    values[50:58], weights[50:58] = 1e9, 0.0
    assert onset_density(values, weights, EVERYWHERE).argmax() == 60


# Deployments


def deployed(*positions: float, delay_s: float = 10.0, config: DeploymentConfig | None = None) -> FloatArray:
    """Return the evidence on deployments in windows of a second, of a rise that began in window 60."""
    density = np.zeros(WINDOWS)
    density[60] = 1.0
    return weigh_deployments(
        RiseOnset(density, 1000.0, 1.0),
        [1000.0 + p for p in positions],
        allowed=WINDOWS,
        delay_s=delay_s,
        config=config,
    ).evidence


def test_a_deployment_just_before_the_rise_speaks_most() -> None:
    late, at, before, long_before, never = deployed(63.5, 60.5, 58.5, 40.5, 0.5)
    assert at > 2
    assert before > 2
    assert before > long_before > never
    floor = float(np.log(DeploymentConfig().stray))
    assert late == pytest.approx(floor), "a bad fit is not the end"
    assert never == pytest.approx(floor, abs=0.2)


def test_evidence_of_time_is_fair() -> None:
    everywhere = deployed(*(np.arange(WINDOWS) + 0.5))
    assert np.exp(everywhere).mean() == pytest.approx(1.0, abs=0.02)


def test_recency_is_one_at_the_best_time() -> None:
    density = np.zeros(WINDOWS)
    density[60] = 1.0
    found = weigh_deployments(
        RiseOnset(density, 0.0, 1.0), [60.0, 30.0, 100.0], allowed=WINDOWS, delay_s=10.0
    )
    assert found.recency[0] == pytest.approx(1.0, abs=0.1)
    assert 0 < found.recency[1] < 0.1
    assert found.recency[2] == 0
