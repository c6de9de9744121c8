"""Change points of single series: signals with ids, rates over many seeds, and a real series."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.signal import lfilter

from loadgen.bench.zoo import draw
from pipeline.analysis.detect.offline.segment import segment
from pipeline.model import FloatArray
from tests.support.calibration import calibrated
from tests.support.paths import REAL_DATA

REAL = REAL_DATA / "series" / "tigerbeetle.json"


def levels(*parts: tuple[int, float]) -> FloatArray:
    return np.concatenate([np.full(points, level) for points, level in parts])


def noise(points: int, seed: int, correlation: float = 0.0) -> FloatArray:
    white = np.random.default_rng(seed).standard_normal(points + 200)
    found: FloatArray = lfilter([np.sqrt(1 - correlation**2)], [1, -correlation], white)[200:]
    return found


def slopes(*parts: tuple[int, float]) -> FloatArray:
    """A line that goes on from where the last one ended, by so much a point."""
    return np.cumsum(levels(*parts))


TIME = np.arange(240)

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
    "three points at the end": (levels((97, 0), (3, 6)), []),
    "a short transient": (levels((200, 0), (7, 6), (193, 0)), []),
    "a short level far away": (levels((600, 0), (11, 10), (389, 0)), [600, 611]),
    "as short, and not as far": (levels((600, 0), (11, 3), (389, 0)), []),
    "as far, and shorter": (levels((600, 0), (3, 10), (397, 0)), []),
    "a short stretch without a level": (
        np.concatenate([np.zeros(600), np.resize([9.0, 30.0, 5.0, 70.0], 11), np.zeros(389)]),
        [],
    ),
    "two steps in a short series": (levels((9, 0), (7, 6), (12, -4)), [9, 16]),
    "a slope": (slopes((120, 0.2)), []),
    "a step on a slope": (slopes((120, 0.05)) + levels((70, 0), (50, 5)), [70]),
    "a bend": (slopes((50, 1), (50, -1)), [50]),
    "a wave": (4 * np.sin(TIME / 6), []),
    "a step in a wave": (4 * np.sin(TIME / 4) + levels((90, 0), (150, 5)), [90]),
    "months": (np.resize(levels((3, 0), (1, 7), (6, 2), (2, -4)), 240), []),
    "a step in months": (np.resize(levels((3, 0), (1, 7), (6, 2), (2, -4)), 240) + 4 * (TIME > 99), [100]),
    "a parabola": ((TIME / 40.0) ** 2, []),
}


@pytest.mark.parametrize("seed", calibrated(range(5), lambda seed: seed == 0))
@pytest.mark.parametrize(("signal", "wanted"), SIGNALS.values(), ids=SIGNALS.keys())
def test_changes_of_level_are_found(signal: FloatArray, wanted: list[int], seed: int) -> None:
    found = segment(signal + 0.5 * noise(len(signal), seed))
    assert [shift.index for shift in found] == pytest.approx(wanted, abs=1)
    for shift in found:
        assert 0 <= shift.p_value < 0.001


FAINT = {
    "a level of a tenth": (levels((450, 0), (100, 1.5), (450, 0)), [450, 550]),
    "the last tenth": (levels((900, 0), (100, 1.5)), [900]),
    "the first tenth": (levels((100, 1.5), (900, 0)), [100]),
}


@pytest.mark.parametrize("correlation", calibrated([0.0, 0.3], lambda correlation: correlation > 0))
@pytest.mark.parametrize(("signal", "wanted"), FAINT.values(), ids=FAINT.keys())
def test_a_faint_level_that_holds_is_no_wandering_noise(
    signal: FloatArray, wanted: list[int], correlation: float
) -> None:
    found = [
        [shift.index for shift in segment(signal + noise(len(signal), seed, correlation))]
        for seed in range(10)
    ]
    # One step of 1.5 deviations is dated to some points.
    assert np.mean([one == pytest.approx(wanted, abs=10) for one in found]) >= 0.8


def test_levels_are_reported_on_both_sides() -> None:
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


@pytest.mark.parametrize("spike", [1e5, 1e6, 1e9, 1e14, 1e300, -1e9])
def test_a_sentinel_hides_no_step(spike: float) -> None:
    signal = levels((60, 7.0), (40, 8.0))
    signal[20] = spike
    assert [shift.index for shift in segment(signal)] == [60]
    for seed in range(5):
        (shift,) = segment(signal + 0.1 * noise(100, seed))
        assert shift.index == 60
        assert (shift.before, shift.after) == pytest.approx((7, 8), abs=0.1)


def test_a_sentinel_alone_is_no_change() -> None:
    signal = levels((100, 7.0))
    signal[40] = 1e9
    assert segment(signal) == ()
    assert segment(signal + 0.1 * noise(100, 1)) == ()


@pytest.mark.parametrize("spike", [1e3, 1e9])
def test_sentinels_hide_no_season(spike: float) -> None:
    values = 4 * np.sin(TIME / 6) + 3 * (TIME >= 90) + noise(240, 3)
    values[[30, 150]] = spike
    assert [shift.index for shift in segment(values)] == pytest.approx([90], abs=2)


NOISES = {
    "white": lambda n, seed: noise(n, seed),
    "autocorrelated": lambda n, seed: noise(n, seed, 0.5),
    "slowly wandering": lambda n, seed: noise(n, seed, 0.8),
    "heavy-tailed": lambda n, seed: np.random.default_rng(seed).standard_t(3, n),
    "rare counts": lambda n, seed: 1.0 * np.random.default_rng(seed).poisson(0.5, (n,)),
    "skewed": lambda n, seed: np.exp(0.8 * noise(n, seed)),
    "outliers": lambda n, seed: noise(n, seed) + 20 * (np.random.default_rng(seed + 1).random(n) < 0.02),
    "noisier by half": lambda n, seed: noise(n, seed) * np.where(np.arange(n) < n // 2, 1, 3),
}


@pytest.mark.parametrize("points", calibrated([60, 300], lambda points: points == 60))
@pytest.mark.parametrize("draw", NOISES.values(), ids=NOISES.keys())
def test_steady_series_are_silent(draw, points: int) -> None:  # type: ignore[no-untyped-def]
    alarms = sum(bool(segment(draw(points, seed))) for seed in range(100))
    assert alarms <= 5 or (draw is NOISES["noisier by half"] and alarms <= 15)  # its variance does change


def test_noise_with_a_long_memory_beyond_one_coefficient_is_silent() -> None:
    alarms = sum(bool(segment(noise(1000, seed, 0.95) + noise(1000, 100 + seed))) for seed in range(10))
    assert alarms <= 1


OBVIOUS = {
    "two deviations in the middle": (levels((50, 0), (50, 2)), 0.93),
    "one deviation in 300 points": (levels((150, 0), (150, 1)), 0.75),
    "two deviations after a quarter": (levels((28, 2), (72, 0)), 0.93),
    "three deviations in 60 points": (levels((30, 0), (30, 3)), 0.95),
    "five short levels": (levels((10, 0), (10, 6), (10, 2), (10, 10), (10, 4)), 0.93),
    "a staircase": (levels((33, 0), (33, 2.5), (34, 5)), 0.9),
}


@pytest.mark.parametrize(("signal", "wanted"), OBVIOUS.values(), ids=OBVIOUS.keys())
def test_steps_that_a_line_or_a_wandering_level_imitates(signal: FloatArray, wanted: float) -> None:
    changes = np.flatnonzero(np.diff(signal)) + 1
    found = [
        [shift.index for shift in segment(signal + noise(len(signal), 500 + seed))] for seed in range(40)
    ]
    hits = [any(abs(index - change) <= 8 for index in one) for one in found for change in changes]
    assert np.mean(hits) >= wanted
    assert np.mean([len(one) > len(changes) for one in found]) <= 0.05


GROWTH = {
    "by 3 % a year, give or take 2 %": lambda rng, n: 100 * np.exp(np.cumsum(rng.normal(0.03, 0.02, n))),
    "to ten times": lambda rng, n: np.exp(2.3 * np.arange(n) / n) * (1 + rng.normal(0, 0.03, n)),
    "decay, below zero": lambda rng, n: -50 * np.exp(-3 * np.arange(n) / n + rng.normal(0, 0.08, n)),
}


@pytest.mark.parametrize("points", calibrated([60, 120, 300], lambda points: points == 60))
@pytest.mark.parametrize("grow", GROWTH.values(), ids=GROWTH.keys())
def test_steady_growth_by_some_per_cent_is_silent(grow, points: int) -> None:  # type: ignore[no-untyped-def]
    found = [segment(grow(np.random.default_rng(1000 + seed), points)) for seed in range(30)]
    assert sum(map(bool, found)) <= 3


def test_levels_on_growth_are_reported_in_its_own_units() -> None:
    time = np.arange(100)
    values = np.exp(0.02 * time + 0.5 * (time >= 60) + 0.03 * noise(100, 1))
    (shift,) = segment(values)
    assert shift.index == 60
    assert (shift.before, shift.after) == pytest.approx((values[:60].mean(), values[60:].mean()), rel=0.01)


WANTED = {"steps": 0.97, "steps in AR(0.8)": 0.9, "steps on a slope": 0.95, "kinks": 0.9, "rounded": 0.9}


@pytest.mark.parametrize(("family", "wanted"), WANTED.items(), ids=WANTED.keys())
def test_changes_of_the_zoo_are_found_at_their_position(family: str, wanted: float) -> None:
    series = [draw(family, 120, seed) for seed in range(10)]
    found = [[shift.index for shift in segment(one.values)] for one in series]
    hits = sum(
        any(abs(index - change) <= 5 for index in indices)
        for one, indices in zip(series, found, strict=True)
        for change in one.changes
    )
    assert hits >= wanted * sum(len(one.changes) for one in series)
    assert hits >= wanted * sum(map(len, found))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e308, 5e-324], ids=["largest", "smallest"])
def test_no_size_overflows(size: float) -> None:
    (shift,) = segment(levels((20, size), (20, -size)))
    assert (shift.index, shift.before, shift.after) == (20, size, -size)


def test_rounding_of_the_arithmetic_is_no_change() -> None:
    assert segment(levels((20, 0.3), (20, 0.1 + 0.2))) == ()


def test_a_long_series_takes_no_long_time() -> None:
    values = levels((30_000, 0), (20_011, 1)) + noise(50_011, 1)
    (shift,) = segment(values)
    assert shift.index == pytest.approx(30_000, abs=10)


REVIEWED = {
    # The four points between the outlier and 15 are at neither level: a transient.
    "transfer_p50": [15, 71, 192, 333],
    # At 61 the duration and both batch metrics change, too; here it is a weak one, not among the reviewed.
    "transfer_p90": [14, 61, 71, 95, 148, 192],
    "load_accepted": [14, 71, 95, 148, 192],
}
"""Steps near 15, 71, 95 and 150 were reviewed by the maintainers, and the outlier at 10."""


@pytest.mark.skipif(not REAL.exists(), reason="the folder with real series is not here")
@pytest.mark.parametrize(("metric", "wanted"), REVIEWED.items(), ids=REVIEWED.keys())
def test_a_real_series_of_a_continuous_benchmark(metric: str, wanted: list[int]) -> None:
    runs = sorted(json.loads(REAL.read_text()), key=lambda run: run["timestamp"])
    values = [m["value"] for run in runs for m in run["metrics"] if m["name"] == metric]
    found = [shift.index for shift in segment(np.array(values, dtype=np.float64))]
    assert found == wanted
    assert 10 not in found  # an outlier


def test_missing_points_keep_their_positions() -> None:
    values = levels((60, 0), (60, 5)) + 0.5 * noise(120, 1)
    values[[3, 17, 58, 59, 60, 61, 100]] = np.nan
    (shift,) = segment(values)
    assert shift.index == 62  # the first known point of the new level
    assert (shift.before, shift.after) == pytest.approx((0, 5), abs=0.3)


@pytest.mark.parametrize("seed", calibrated(range(5), lambda seed: seed == 0))
@pytest.mark.parametrize(
    "signal",
    [slopes((120, 0.3)), np.resize(levels((3, 0), (1, 7), (6, 2), (2, -4)), 120)],
    ids=["a slope", "months"],
)
def test_what_goes_on_through_a_gap_is_no_change(signal: FloatArray, seed: int) -> None:
    values = signal + 0.5 * noise(120, seed)
    values[[20, 21, 70]] = np.nan
    values[40:45] = np.nan
    assert segment(values) == ()


@pytest.mark.parametrize("known", [0, 1, 7], ids=str)
def test_almost_nothing_known_holds_no_change(known: int) -> None:
    assert segment(np.array([1.0] * known + [np.nan] * 50)) == ()
