"""What counts as flat."""

from __future__ import annotations

import numpy as np
import pytest

from loadgen.bench.faults.check import Differences
from loadgen.bench.soak import ProcessCurve, Soak
from loadgen.bench.trend import trend
from pipeline.model import FloatArray

SECONDS = np.arange(0, 3600, 5.0)


def noise(seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).normal(0, 3, len(SECONDS))


@pytest.mark.parametrize(
    ("values", "flat"),
    [
        pytest.param(200 + noise(), True, id="steady"),
        pytest.param(200 + noise() + 20 * SECONDS / 3600, False, id="20 MB an hour"),
        pytest.param(200 - 20 * SECONDS / 3600 + noise(), True, id="falls"),
        pytest.param(200 + np.minimum(SECONDS / 10, 60) + noise(), True, id="rises in the warm-up alone"),
        pytest.param(200 + noise() + 500 * (np.arange(720) % 97 == 0), True, id="spikes"),
        pytest.param(200 + 0 * SECONDS, True, id="constant"),
        pytest.param(200 + 30 * (SECONDS > 2700), True, id="one step is no slope"),
    ],
)
def test_flat_or_not(values: FloatArray, flat: bool) -> None:
    assert trend(SECONDS, values, tolerance=4.0).flat is flat


def test_the_slope_is_per_hour() -> None:
    found = trend(SECONDS, 100 + 12 * SECONDS / 3600, tolerance=1.0)
    assert found.slope == pytest.approx(12, rel=0.02)
    assert found.low <= found.slope <= found.high
    assert not found.flat


def test_too_little_to_judge_says_nothing() -> None:
    found = trend(SECONDS[:10], np.arange(10.0), tolerance=1.0)
    assert (found.low, found.high) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("process", "passed"), [("aggregate-1", False), ("rootcause", False), ("store", True), ("broker-0", True)]
)
def test_workers_must_not_grow(process: str, passed: bool) -> None:
    steady = ProcessCurve("memory", "detect", SECONDS, 200 + noise())
    rising = ProcessCurve("memory", process, SECONDS, 200 + noise() + 20 * SECONDS / 3600)
    found = Soak("kafka", 60.0, 1, 1, 1, Differences(*[0] * 10), 0, {}, (steady, rising))
    assert found.passed is passed
    assert [curve["judged"] for curve in found.to_json()["curves"]] == [True, not passed]
