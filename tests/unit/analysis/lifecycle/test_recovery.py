"""When a regression counts as gone."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.lifecycle.recovery import Return, find_drop, judge_returned, reference_shift_s, span_s
from pipeline.model import FloatArray
from pipeline.model.units import DAY_S

DAY = 144  # windows of ten minutes
BEFORE, AFTER = 0.010, 0.011
DELTA = AFTER - BEFORE


def judged(
    values: FloatArray, weights: FloatArray | None = None, expected: FloatArray | None = None
) -> Return:
    weights = np.ones(len(values)) if weights is None else weights
    return judge_returned(values, weights, before=BEFORE, after=AFTER, expected=expected)


def noisy(remaining: float, noise: float, *, seed: int = 1, windows: int = DAY) -> FloatArray:
    """A span in which that share of the regression remains; ``noise`` of a window in regressions."""
    return BEFORE + DELTA * (remaining + np.random.default_rng(seed).normal(0, noise, windows))


def with_spike(values: FloatArray, size: float) -> FloatArray:
    spiked = values.copy()
    spiked[70] += size * DELTA
    return spiked


def in_turn(*parts: tuple[float, int]) -> FloatArray:
    """Shares that remain, for so many windows each."""
    return np.concatenate([noisy(remaining, 0.2, windows=windows) for remaining, windows in parts])


ENDS = {
    "back at the level before": (noisy(0.0, 0.3), True),
    "below it": (noisy(-0.4, 0.3), True),
    "far below it: something else happened": (noisy(-2.0, 0.3), False),
    "gone altogether": (np.zeros(DAY), True),
    "a regression as small as is ever found": (noisy(0.0, 0.8), True),
    "too noisy": (noisy(0.3, 2.0), False),
    "still there": (noisy(1.0, 0.3), False),
    "most of it still there": (noisy(0.7, 0.3), False),
    "half of it": (noisy(0.5, 0.1), False),
    "one odd window": (with_spike(noisy(0.0, 0.3), 30.0), True),
    "back, but not yet for all of the span": (in_turn((1.0, 54), (0.0, 90)), False),
    "back and there again": (in_turn((0.0, 100), (1.0, 44)), False),
}


@pytest.mark.parametrize(("values", "returned"), ENDS.values(), ids=ENDS.keys())
def test_a_return_holds_throughout_and_beyond_doubt(values: FloatArray, returned: bool) -> None:
    assert judged(values).returned is returned


@pytest.mark.parametrize(("values", "returned"), ENDS.values(), ids=ENDS.keys())
def test_a_fall_returns_by_rising(values: FloatArray, returned: bool) -> None:
    mirrored = judge_returned(-values, np.ones(len(values)), before=-BEFORE, after=-AFTER)
    assert mirrored.returned is returned
    assert mirrored.level == pytest.approx(-judged(values).level)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize("weight", [1.0, 40_000.0])
def test_units_and_weights_change_nothing(factor: float, weight: float) -> None:
    values = noisy(0.1, 0.5)
    scaled = judge_returned(
        values * factor, np.full(DAY, weight), before=BEFORE * factor, after=AFTER * factor
    )
    assert scaled.returned is judged(values).returned is True
    assert scaled.share_remaining == pytest.approx(judged(values).share_remaining)


def test_no_data_is_no_return() -> None:
    values, weights = noisy(0.0, 0.1), np.ones(DAY)
    weights[10:] = 0.0
    values[10:] = np.nan
    assert judged(values, weights).code == "too_little_data"
    gaps = np.ones(DAY)
    gaps[20:60] = 0.0
    values = np.where(gaps > 0, noisy(0.0, 0.1), np.nan)
    found = judged(values, gaps)
    assert found.returned
    assert found.level == pytest.approx(BEFORE, rel=0.01)
    assert judged(np.full(DAY, np.nan), np.zeros(DAY)).returned is False


CYCLE = 3 * DELTA * np.sin(np.arange(DAY) * 2 * np.pi / DAY)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("remaining", "returned"), [(0.0, True), (1.0, False)])
def test_the_time_of_the_day_is_no_regression(seed: int, remaining: float, returned: bool) -> None:
    expected = noisy(0.0, 0.3, seed=seed + 100) + CYCLE
    values = noisy(remaining, 0.3, seed=seed) + CYCLE
    assert judged(values, expected=expected).returned is returned
    assert judged(values).returned is False, "without the course before, the cycle looks like noise"


@pytest.mark.parametrize("seed", range(5))
def test_a_weekend_is_no_return(seed: int) -> None:
    weekend = -1.5 * DELTA
    values = noisy(1.0, 0.3, seed=seed) + weekend
    assert judged(values).returned is True
    assert judged(values, expected=noisy(0.0, 0.3, seed=seed + 100) + weekend).returned is False


def test_a_lasting_regression_is_hardly_ever_called_gone() -> None:
    rng = np.random.default_rng(5)
    steady = BEFORE + DELTA * (1.0 + rng.normal(0, 0.9, (400, DAY)))
    earlier = BEFORE + DELTA * rng.normal(0, 0.9, (400, DAY))
    found = [judged(one, expected=other).returned for one, other in zip(steady, earlier, strict=True)]
    assert sum(found) == 0


# Drops


def test_a_drop_is_found_where_it_is() -> None:
    values = np.concatenate([noisy(1.0, 0.3, windows=300), noisy(0.0, 0.3, windows=200)])
    index, drop = find_drop(values, np.ones(500), span=DAY)
    assert abs(index - 300) <= 2
    assert drop == pytest.approx(DELTA, rel=0.15)


def test_a_slide_is_no_drop() -> None:
    values = BEFORE + DELTA * np.linspace(1.0, 0.0, 10 * DAY)
    assert find_drop(values, np.ones(len(values)), span=DAY)[1] < 0.2 * DELTA


@pytest.mark.parametrize("windows", [0, 1, DAY // 2])
def test_nothing_to_compare_is_no_drop(windows: int) -> None:
    assert find_drop(np.full(windows, 0.01), np.ones(windows), span=DAY) == (0, 0.0)
    assert find_drop(np.full(500, np.nan), np.zeros(500), span=DAY) == (0, 0.0)


# Spans


@pytest.mark.parametrize(
    ("scan_h", "historical_d", "wanted_h"),
    [
        pytest.param(10, 10, 24, id="hours, in whole days"),
        pytest.param(24, 10, 24, id="a day"),
        pytest.param(30, 10, 48, id="a day and a bit"),
        pytest.param(9 * 24, 16, 9 * 24, id="days"),
        pytest.param(20 / 3600, 30 / 86400, 20 / 3600, id="seconds: no day to compare with"),
    ],
)
def test_a_span_is_as_long_as_the_scan_looks_in_whole_days(
    scan_h: float, historical_d: float, wanted_h: float
) -> None:
    assert span_s(scan_h * 3600, historical_d * DAY_S) == pytest.approx(wanted_h * 3600)


@pytest.mark.parametrize(
    ("end", "earliest", "wanted"),
    [
        pytest.param(3, -10, 7, id="the week before"),
        pytest.param(9, -10, 14, id="two weeks before"),
        pytest.param(3, -4, 3, id="only days before"),
        pytest.param(3, -0.5, None, id="nothing before"),
    ],
)
def test_the_reference_lies_before_the_regression(end: float, earliest: float, wanted: float | None) -> None:
    found = reference_shift_s((end - 1) * DAY_S, end * DAY_S, 0.0, earliest * DAY_S)
    assert found == (None if wanted is None else wanted * DAY_S)
