"""Liao et al.'s forests: deviance, effects, the bound of R²."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="needs scikit-learn")

from loadgen.requests.simulate import PRESETS, simulate
from pipeline.analysis.published.liao2021.forest import (
    ReleaseLoad,
    cohens_d,
    compare_forests,
    deviance,
    trees,
)
from pipeline.model import BoolArray, FloatArray


@pytest.mark.parametrize(
    ("old", "new", "counts", "d"),
    [
        ([[1.0], [3.0]], [[0.0], [2.0]], [[True], [True]], 1.0 / np.sqrt(2.0)),  # Cohen 1988, (2.1) and (2.3)
        ([[1.0], [3.0]], [[0.0], [9.0]], [[True], [False]], 0.0),  # one tree alone has no deviation
        ([[1.0], [1.0]], [[1.0], [1.0]], [[True], [True]], 0.0),
        ([[5.0], [7.0]], [[0.0], [2.0], [99.0]], [[True], [True], [False]], 5.0 / np.sqrt(2.0)),
    ],
)
def test_cohens_d(old: FloatArray, new: FloatArray, counts: BoolArray, d: float) -> None:
    found = cohens_d(np.array(old), np.array(new), np.array(counts))
    assert found.tolist() == pytest.approx([d])


def deviance_left_out(old: ReleaseLoad, new: ReleaseLoad, seed: int) -> FloatArray:
    """Return the deviance by a forest for each period, fitted without it, as the paper does."""
    by_old, _ = trees(old, new.counts, seed)
    by_new = np.empty_like(by_old)
    for period in range(len(new.metric)):
        rest = ReleaseLoad(np.delete(new.counts, period, axis=0), np.delete(new.metric, period))
        by_new[:, [period]] = trees(rest, new.counts[[period]], seed + 1)[0]
    return cohens_d(new.metric - by_old, new.metric - by_new, np.ones(by_new.shape, np.bool_))


def test_trees_that_have_not_seen_a_period_say_what_forests_without_it_say() -> None:
    """The paper fits a forest for each period; out-of-bag trees differ no more from it than seeds do."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(30.0, (58, 3)).astype(np.float64)
    metric = counts @ [1.0, 2.0, 3.0] + rng.standard_normal(58)
    releases = ReleaseLoad(counts[:50], metric[:50]), ReleaseLoad(counts[50:], metric[50:])
    ours, theirs, again = (
        deviance(*releases, 1),
        deviance_left_out(*releases, 1),
        deviance_left_out(*releases, 9),
    )
    between_seeds = np.abs(theirs - again).mean()
    assert np.abs(ours - theirs).mean() < 2.0 * between_seeds
    assert np.corrcoef(ours, theirs)[0, 1] > 0.8


def test_the_slower_request_has_the_largest_effect() -> None:
    case = simulate(PRESETS["plain"], np.random.default_rng((3, 1)), 0.3)
    old, new = (ReleaseLoad(side.counts, side.metric) for side in (case.releases.old, case.releases.new))
    found = compare_forests(case.releases.types, old, new, 0)
    assert found.effects[0].type == case.type
    assert found.effects[0].p <= 0.05
    assert found.deviance.mean() > 0.0
    assert np.isnan(found.p)


@pytest.mark.slow
def test_the_chance_of_an_r_squared_is_that_of_equal_releases() -> None:
    rng = np.random.default_rng(2)
    bursts = 60.0 * (
        rng.random(120) < 0.5
    )  # a change shows in half of the periods: the deviance follows them
    counts = np.column_stack([bursts + rng.poisson(2.0, 120), rng.poisson(30.0, 120)]).astype(np.float64)
    metric = counts @ [1.0, 2.0] + 8.0 * rng.standard_normal(120)
    slower = metric + np.where(np.arange(120) < 60, 0.0, counts[:, 0])
    chances = []
    for values in (metric, slower):
        releases = ReleaseLoad(counts[:60], values[:60]), ReleaseLoad(counts[60:], values[60:])
        chances.append(compare_forests(("a", "b"), *releases, 0, np.random.default_rng(0), draws=9).p)
    assert chances[0] > 0.1
    assert chances[1] == pytest.approx(0.1)  # none of nine
