"""Noise that grows with the load and goes on: what is new in each period."""

from __future__ import annotations

import numpy as np
import pytest

from loadgen.requests.simulate import PRESETS, simulate
from pipeline.analysis.statistics.fit import coefficients
from pipeline.analysis.statistics.long_run_noise.autoregression import Noise, estimate_noise, memory
from pipeline.model import FloatArray
from pipeline.releases.requests import compare_costs


def wandering(periods: int, goes_on: float, seed: int) -> FloatArray:
    found = np.random.default_rng(seed).standard_normal(periods)
    for period in range(1, periods):
        found[period] = goes_on * found[period - 1] + np.sqrt(1.0 - goes_on**2) * found[period]
    return found


def load(periods: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.lognormal(3.0, 0.4, (periods, 3))).astype(np.float64)


@pytest.mark.parametrize("goes_on", [0.5, 0.9])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_whitened_noise_is_equal_and_independent(power: float, goes_on: float) -> None:
    counts = load(1200, 1)
    columns = np.column_stack([np.ones(1200), counts])
    level = columns @ [0.1, 0.004, 0.002, 0.001]
    errors = 0.01 * level**power * wandering(1200, goes_on, 2)
    noise = estimate_noise(level + errors, columns, 700)
    new = noise.whiten(errors[:, None])[:, 0]
    assert memory((errors[:700], errors[700:])) > 1.5
    assert memory((new[:700], new[700:])) == 1.0
    slope = np.polyfit(np.log(level), np.log(np.abs(new)), 1)[0]
    assert abs(slope) < 0.2


def test_weights_are_those_of_the_autoregression_from_the_first_period_on() -> None:
    """Whitened, the exact covariance of an autoregression is the identity, but for a factor."""
    errors = wandering(20_000, 0.8, 3)
    noise = estimate_noise(1.0 + 0.0 * errors + errors, np.ones((20_000, 1)), 10_000)
    lags = np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    whitener = Noise(np.ones(40), 25, noise.weights).whiten(np.eye(40))
    # Of the two releases nothing goes on from one to the other.
    apart = (np.arange(40) < 25)[:, None] == (np.arange(40) < 25)[None]
    covariance = whitener @ (apart * 0.8**lags) @ whitener.T
    assert covariance / covariance[0, 0] == pytest.approx(np.eye(40), abs=0.05)


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(np.full(60, 3.0), id="constant"),
        pytest.param(np.r_[np.zeros(30), np.ones(30)], id="often nothing"),
        pytest.param(-1.0 - np.arange(60.0), id="negative"),
        pytest.param(np.arange(60.0) + 1.0, id="explained"),
    ],
)
def test_what_has_no_noise_is_whitened_all_the_same(metric: FloatArray) -> None:
    columns = np.column_stack([np.ones(60), np.arange(60.0)])
    noise = estimate_noise(metric, columns, 30)
    assert np.isfinite(noise.whiten(columns)).all()
    assert np.isfinite(noise.whiten(metric[:, None])).all()
    assert (noise.scale > 0.0).all()


def test_noise_that_does_not_last_is_left_as_it_is() -> None:
    columns = np.column_stack([np.ones(400), load(400, 4)])
    metric = columns @ [0.1, 0.004, 0.002, 0.001] + 0.01 * wandering(400, 0.0, 5)
    noise = estimate_noise(metric, columns, 200)
    assert len(noise.weights) == 1


def test_a_whitened_fit_is_closer_to_the_truth() -> None:
    costs = np.array([0.1, 0.004, 0.002, 0.001])
    squares = np.zeros(2)
    for seed in range(30):
        columns = np.column_stack([np.ones(300), load(300, seed)])
        metric = columns @ costs * (1.0 + 0.05 * wandering(300, 0.95, 100 + seed))
        noise = estimate_noise(metric, columns, 150)
        white = coefficients(noise.whiten(columns), noise.whiten(metric[:, None])[:, 0])
        for number, found in enumerate((white, coefficients(columns, metric))):
            squares[number] += np.square(found - costs)[1:].sum()
    assert squares[0] < 0.3 * squares[1]


@pytest.mark.slow
def test_slow_noise_hides_no_type() -> None:
    """Of twelve types one costs 5 % of the metric more, under noise of 5 % that lasts for ten periods."""
    first = 0
    for seed in range(12):
        case = simulate(PRESETS["background"], np.random.default_rng(seed), 0.05)
        compared = compare_costs(case.releases, np.random.default_rng(seed), draws=199)
        first += bool(compared.changes) and next(iter(compared.changes[0].likely)) == case.type
    assert first >= 10
