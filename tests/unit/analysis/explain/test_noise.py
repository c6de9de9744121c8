"""Noise of sums of stacks: what counting makes, what days make beyond it, and how sure either is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline.analysis.explain.cause_sets import find_cause_sets
from pipeline.analysis.explain.noise import Compared, SetNoise, noise_of_sets
from pipeline.analysis.stacks import index_stacks
from pipeline.model import FloatArray, StackMatrix
from tests.unit.analysis.explain.trees import build_tree

TREE = build_tree(entries=30)
TOTAL = float(TREE.rates.sum())
SETS = find_cause_sets(
    index_stacks(StackMatrix(TREE.stacks, TREE.rates, TREE.rates, TOTAL, TOTAL)), TREE.rates, 1.0
)


def compared(seen: FloatArray, expected: FloatArray, dispersion: float = 1.0) -> Compared:
    return Compared(seen, expected, expected.sum(axis=1), dispersion)


def drawn(seed: int, rows: int, swing: float = 0.0) -> Compared:
    """Return samples whose rates swing from row to row, against steady ones."""
    rng = np.random.default_rng(seed)
    rates = TREE.rates * np.exp(rng.normal(0, swing, (rows, len(TREE.rates))))
    steady = np.tile(TREE.rates, (rows, 1))
    return compared(rng.poisson(rates).astype(float), rng.poisson(steady).astype(float))


@pytest.mark.parametrize(("swing", "low", "high"), [(0.0, 2.0, 3.0), (0.1, 8.0, 80.0)])
@pytest.mark.parametrize("days", [0, 7])
def test_dispersion_is_that_of_the_days_or_of_all_sets(
    days: int, swing: float, low: float, high: float
) -> None:
    typical = float(np.median(noise_of_sets(SETS, drawn(3, 1 + days, swing)).dispersion))
    assert low <= typical <= high


def test_a_day_with_an_incident_does_not_hide_the_next() -> None:
    quiet = drawn(4, 8)
    seen = quiet.seen.copy()
    rows = SETS.of(100)
    seen[3, rows] *= 3
    incident = compared(seen, quiet.expected)
    own = noise_of_sets(SETS, incident).dispersion / noise_of_sets(SETS, quiet).dispersion
    assert own[100] < 1.6


def test_counts_that_are_not_independent_stray_farther() -> None:
    plain, dispersed = (compared(TREE.rates[None], TREE.rates[None], k) for k in (1.0, 5.0))
    ratio = noise_of_sets(SETS, dispersed).dispersion / noise_of_sets(SETS, plain).dispersion
    assert np.allclose(ratio, 5.0)


def test_a_long_span_before_is_known_better() -> None:
    equal = compared(TREE.rates[None], TREE.rates[None])
    long = Compared(equal.seen, equal.expected, 9 * equal.samples_before, 1.0)
    assert np.allclose(noise_of_sets(SETS, equal).dispersion, 2.0)
    assert np.allclose(noise_of_sets(SETS, long).dispersion, 1 + 1 / 9)


@pytest.mark.parametrize("gain", [9.0, 20.0])
def test_what_is_less_sure_asks_more(gain: float) -> None:
    bounds = [SetNoise(np.ones(1), degrees, 0.0).least(gain) for degrees in (4.0, 20.0, 1e6, math.inf)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == gain
    assert math.isclose(bounds[-2], gain, rel_tol=1e-4)
