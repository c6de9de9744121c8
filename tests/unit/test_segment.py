"""Change points of single series: signals with ids, rates over many seeds, and a real series."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from pipeline.detect.segment import segment
from pipeline.model import FloatArray

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "series" / "tigerbeetle.json"


def levels(*parts: tuple[int, float]) -> FloatArray:
    return np.concatenate([np.full(points, level) for points, level in parts])


def noise(points: int, seed: int, correlation: float = 0.0) -> FloatArray:
    white = np.random.default_rng(seed).standard_normal(points + 200)
    found: FloatArray = lfilter([np.sqrt(1 - correlation**2)], [1, -correlation], white)[200:]
    return found


SIGNALS = {
    "one rise": (levels((60, 0), (60, 3)), [60]),
    "one drop": (levels((60, 3), (60, 0)), [60]),
    "up and down again": (levels((50, 0), (30, 4), (60, 0)), [50, 80]),
    "a staircase": (levels((40, 0), (40, 3), (40, 6), (40, 9)), [40, 80, 120]),
    "an odd point": (levels((50, 0), (1, 40), (50, 0)), []),
    "three odd points": (levels((50, 0), (3, 40), (50, 0)), []),
    "an odd first and last point": (levels((1, 40), (100, 0), (1, -40)), []),
    "an odd point next to a step": (levels((50, 0), (1, 40), (50, 4)), [51]),
    "five points at the end": (levels((95, 0), (5, 6)), [95]),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("signal", "wanted"), SIGNALS.values(), ids=SIGNALS.keys())
def test_changes_of_level_are_found(signal: FloatArray, wanted: list[int], seed: int) -> None:
    found = segment(signal + 0.5 * noise(len(signal), seed))
    assert [shift.index for shift in found] == pytest.approx(wanted, abs=1)
    for shift in found:
        assert 0 <= shift.p_value < 0.001


def test_levels_are_told_on_both_sides() -> None:
    (shift,) = segment(levels((100, 10), (100, 12)) + 0.5 * noise(200, 1))
    assert (shift.before, shift.after) == pytest.approx((10, 12), abs=0.2)


@pytest.mark.parametrize(
    "values", [[], [1.0], [5.0] * 100, [1.0, 2.0] * 3], ids=["none", "one", "constant", "short"]
)
def test_what_holds_no_change(values: list[float]) -> None:
    assert segment(np.array(values)) == ()


def test_a_step_without_noise_is_found() -> None:
    (shift,) = segment(levels((30, 1), (30, 2)))
    assert shift.index == 30
    assert (shift.before, shift.after) == pytest.approx((1, 2))


NOISES = {
    "white": lambda n, seed: noise(n, seed),
    "autocorrelated": lambda n, seed: noise(n, seed, 0.5),
    "heavy-tailed": lambda n, seed: np.random.default_rng(seed).standard_t(3, n),
    "rare counts": lambda n, seed: 1.0 * np.random.default_rng(seed).poisson(0.5, (n,)),
    "skewed": lambda n, seed: np.exp(0.8 * noise(n, seed)),
    "outliers": lambda n, seed: noise(n, seed) + 20 * (np.random.default_rng(seed + 1).random(n) < 0.02),
    "noisier by half": lambda n, seed: noise(n, seed) * np.where(np.arange(n) < n // 2, 1, 3),
}


@pytest.mark.parametrize("points", [40, 300])
@pytest.mark.parametrize("draw", NOISES.values(), ids=NOISES.keys())
def test_steady_series_are_silent(draw, points: int) -> None:  # type: ignore[no-untyped-def]
    alarms = sum(bool(segment(draw(points, seed))) for seed in range(150))
    assert alarms <= 7  # 5 %


@given(scale=st.floats(1e-6, 1e6), offset=st.floats(-1e3, 1e3), seed=st.integers(0, 3))
def test_units_and_offsets_change_nothing(scale: float, offset: float, seed: int) -> None:
    values = levels((40, 0), (40, 3)) + 0.5 * noise(80, seed)
    moved = segment(scale * (values + offset))
    assert [shift.index for shift in moved] == [shift.index for shift in segment(values)]


def test_a_long_series_takes_no_long_time() -> None:
    values = levels((30_000, 0), (20_011, 1)) + noise(50_011, 1)
    (shift,) = segment(values)
    assert shift.index == pytest.approx(30_000, abs=10)


@pytest.mark.skipif(not REAL.exists(), reason="the folder with real series is not here")
def test_a_real_series_of_a_continuous_benchmark() -> None:
    runs = sorted(json.loads(REAL.read_text()), key=lambda run: run["timestamp"])
    values = [m["value"] for run in runs for m in run["metrics"] if m["name"] == "transfer_p50"]
    found = [shift.index for shift in segment(np.array(values, dtype=np.float64))]
    assert found == [11, 15, 61, 71, 131, 192]
    assert 10 not in found  # an outlier
