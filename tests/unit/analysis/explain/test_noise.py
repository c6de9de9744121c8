"""Dispersion of sums of stacks: what counting makes, and what days make beyond it."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.explain.cause_sets import find_cause_sets
from pipeline.analysis.explain.noise import dispersion_of_sets
from pipeline.analysis.stacks import index_stacks
from pipeline.model import StackMatrix
from tests.unit.analysis.explain.trees import build_tree

TREE = build_tree()
TOTAL = float(TREE.rates.sum())
SETS = find_cause_sets(
    index_stacks(StackMatrix(TREE.stacks, TREE.rates, TREE.rates, TOTAL, TOTAL)), TREE.rates, 1.0
)


@pytest.mark.parametrize(("swing", "low", "high"), [(0.0, 2.0, 3.0), (0.1, 8.0, 80.0)])
def test_dispersion_is_that_of_the_days(swing: float, low: float, high: float) -> None:
    rng = np.random.default_rng(3)
    rates = TREE.rates * np.exp(rng.normal(0, swing, (7, len(TREE.rates))))
    seen, expected = rng.poisson(rates).astype(float), rng.poisson(np.tile(TREE.rates, (7, 1))).astype(float)
    typical = float(np.median(dispersion_of_sets(SETS, seen, expected)))
    assert low <= typical <= high


def test_a_day_with_an_incident_does_not_hide_the_next() -> None:
    rng = np.random.default_rng(4)
    expected = rng.poisson(np.tile(TREE.rates, (7, 1))).astype(float)
    seen = rng.poisson(np.tile(TREE.rates, (7, 1))).astype(float)
    quiet = dispersion_of_sets(SETS, seen, expected)
    seen[2] *= 3
    assert np.median(dispersion_of_sets(SETS, seen, expected) / quiet) < 1.6


@pytest.mark.parametrize("days", [0, 2])
def test_without_days_it_is_what_two_counts_have(days: int) -> None:
    seen = np.zeros((days, len(TREE.rates)))
    assert set(dispersion_of_sets(SETS, seen, seen).tolist()) == {2.0}
