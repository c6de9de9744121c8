"""The search for the shortest description: what it finds, and that nothing it may choose is shorter."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from pipeline.analysis.detect.offline.lengths import describe, fit_segments, running_sums
from pipeline.analysis.detect.offline.search import SearchBounds, explain
from pipeline.model import FloatArray

RULES = SearchBounds(
    shortest=4,
    price=8.0,
    first=1.0,
    slopes=9.0,
    least_variance=1e-6,
    correlations=(0.0, 0.6),
    grid=48,
    peaks=24,
)


def noise(points: int, seed: int = 1) -> FloatArray:
    return 0.05 * np.random.default_rng(seed).standard_normal(points)


def levels(*parts: tuple[int, float]) -> FloatArray:
    return np.concatenate([np.full(points, level) for points, level in parts])


def time_of(values: FloatArray) -> FloatArray:
    return np.arange(len(values)) / len(values) - 0.5


@pytest.mark.parametrize(
    ("signal", "bounds", "flat"),
    [
        pytest.param(np.zeros(60), (0, 60), True, id="a level"),
        pytest.param(levels((25, 0), (35, 1)), (0, 25, 60), True, id="a step"),
        pytest.param(levels((20, 0), (20, 1), (20, 0)), (0, 20, 40, 60), True, id="up and down"),
        pytest.param(np.arange(60) / 60, (0, 60), False, id="a line"),
        pytest.param(
            np.arange(60) / 60 + levels((30, 0), (30, 1)), (0, 30, 60), False, id="a step on a line"
        ),
        pytest.param((np.arange(60) / 30 - 1) ** 2, (0, 60), False, id="a parabola"),
        pytest.param(levels((150, 0), (250, 1)), (0, 150, 400), True, id="a step beyond the grid"),
    ],
)
def test_what_describes_a_series(signal: FloatArray, bounds: tuple[int, ...], flat: bool) -> None:
    values = signal + noise(len(signal))
    found = explain(values, time_of(values), RULES)
    assert found.flat == flat
    assert found.bounds == bounds
    assert found.variance == pytest.approx(0.05**2, rel=0.5)
    assert found.correlation == 0.0


def test_a_segment_has_the_least_points_at_least() -> None:
    values = levels((57, 0), (3, 1)) + noise(60)
    assert explain(values, time_of(values), RULES).bounds == (0, 56, 60)


def test_a_high_price_leaves_no_change() -> None:
    values = levels((25, 0), (35, 1)) + noise(60)
    rules = SearchBounds(4, 1e6, 1.0, 1e6, 1e-6, (0.0,), 48, 24)
    assert explain(values, time_of(values), rules).bounds == (0, 60)


def test_noise_that_remembers_is_no_change() -> None:
    white = noise(300, 3)
    values = np.zeros(300)
    for at in range(1, 300):
        values[at] = 0.6 * values[at - 1] + white[at]
    found = explain(values, time_of(values), RULES)
    assert found.bounds == (0, 300)
    assert found.correlation == 0.6


def test_a_series_without_noise_has_the_least_variance() -> None:
    found = explain(np.zeros(60), time_of(np.zeros(60)), RULES)
    assert found.bounds == (0, 60)
    assert found.variance == RULES.least_variance


@pytest.mark.parametrize("seed", range(4))
def test_no_other_partition_is_shorter(seed: int) -> None:
    """All partitions with up to two changes, under the variance that the search ended with."""
    values = levels((7, 0), (6, 0.3), (7, 0.1)) + noise(20, seed)
    rules = SearchBounds(4, 3.0, 0.5, 1e6, 1e-6, (0.0,), 48, 24)
    found = explain(values, time_of(values), rules)
    sums = running_sums(values, time_of(values))

    def total(bounds: tuple[int, ...]) -> float:
        first, end = np.array(bounds[:-1]), np.array(bounds[1:])
        fits = fit_segments(sums, first, end, np.zeros(1))
        lengths = describe(fits, end - first, np.zeros(1), np.array([found.variance]), flat=True)
        changes = len(bounds) - 2
        return float(lengths.nats.sum()) + rules.price * changes + rules.first * (changes > 0)

    partitions = [
        (0, *changes, 20)
        for count in range(3)
        for changes in combinations(range(4, 17), count)
        if min(np.diff([0, *changes, 20])) >= 4
    ]
    assert total(found.bounds) == pytest.approx(min(total(bounds) for bounds in partitions))
