"""Set-up metrics against steps of changes: which of them a series follows."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.rootcause.explanation import Fit, fit_metric
from pipeline.model import FloatArray

WINDOWS, SPLIT = 600, 500
RNG = np.random.default_rng(11)
STEP = (np.arange(WINDOWS) >= SPLIT).astype(np.float64)
WANDER = np.convolve(RNG.normal(0, 1, WINDOWS + 20), np.ones(21) / np.sqrt(21), "valid")
NOISE = RNG.normal(0, 1, WINDOWS)
MISSES = STEP + 0.2 * WANDER
FOLLOWS = 5.0 + 2.0 * MISSES + 0.3 * NOISE
STEPS = 5.0 + 2.0 * STEP + 0.3 * NOISE


def fit(values: FloatArray, metric: FloatArray, *deployed: float, tried: int = 4) -> Fit | None:
    return fit_metric(
        values, np.ones(WINDOWS), metric, split=SPLIT, deployed=deployed or (SPLIT,), tried=tried
    )


@pytest.mark.parametrize(
    ("found", "explains"),
    [
        pytest.param(fit(FOLLOWS, 0.9 - 0.2 * MISSES), True, id="follows a hit ratio in all it does"),
        pytest.param(fit(FOLLOWS, MISSES, 480, 490, 500, 503), True, id="whatever was deployed"),
        pytest.param(fit(STEPS, MISSES), False, id="steps as a change, whatever the metric does besides"),
        pytest.param(fit(STEPS, STEP), False, id="a metric that a change opened"),
        pytest.param(fit(STEPS, STEP, 460), True, id="a metric at the step, a change before it"),
        pytest.param(
            fit(STEPS, np.where(STEP > 0, 1.0, 0.02 * WANDER)),
            False,
            id="a noisy metric that steps too",
        ),
        pytest.param(fit(FOLLOWS + 3 * STEP, MISSES), False, id="more than the metric makes"),
        pytest.param(fit(FOLLOWS, WANDER), False, id="moves along, but for the step"),
        pytest.param(fit(FOLLOWS, np.ones(WINDOWS)), False, id="does not move"),
        pytest.param(fit(FOLLOWS, np.full(WINDOWS, np.nan)), False, id="no data"),
        pytest.param(fit(np.ones(WINDOWS), MISSES), False, id="no regression"),
    ],
)
def test_what_explains(found: Fit | None, explains: bool) -> None:
    assert (found is not None and found.explains(0.0)) is explains


def test_a_named_change_takes_more_evidence() -> None:
    found = Fit(evidence=8.0, correlation=0.8, explained=1.0)
    assert found.explains(0.0)
    assert not found.explains(0.9)
    assert Fit(evidence=20.0, correlation=0.8, explained=1.0).explains(0.9)


def test_more_metrics_take_more_evidence() -> None:
    few, many = fit(FOLLOWS, MISSES, tried=1), fit(FOLLOWS, MISSES, tried=1000)
    assert few is not None
    assert many is not None
    assert few.evidence - many.evidence == pytest.approx(2 * np.log(1000))


def test_chance_seldom_explains() -> None:
    """A step that a change made, and a metric that steps in the same window and wanders besides."""
    rng = np.random.default_rng(12)
    wrong = 0
    for _ in range(500):
        series = 2.0 * STEP + np.convolve(rng.normal(0, 1, WINDOWS + 5), np.ones(6) / 6, "valid")
        metric = STEP + 0.1 * np.cumsum(rng.normal(0, 0.3, WINDOWS))
        found = fit(series, metric, tried=1)
        wrong += found is not None and found.explains(0.0)
    assert wrong <= 5
