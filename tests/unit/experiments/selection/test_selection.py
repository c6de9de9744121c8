"""Which changes are worth an experiment: what they touch, how likely they regress, and for which machines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from pipeline.analysis.stacks import StackIndex, index_stacks
from pipeline.experiments.selection import (
    Budget,
    Example,
    impact_of,
    learn_chance,
    score_of,
    touched_share,
    worth_of,
)
from pipeline.model import FloatArray, StackMatrix

STACKS = {
    ("main", "endpoint=/cart", "cart", "price"): 30.0,
    ("main", "endpoint=/cart", "cart", "render"): 10.0,
    ("main", "endpoint=/search", "search", "price"): 1.0,
    ("main", "endpoint=/search", "search"): 49.0,
    ("main", "idle", "price", "price"): 10.0,
}


@pytest.fixture(scope="module")
def index() -> StackIndex:
    counts = np.array(list(STACKS.values()))
    return index_stacks(StackMatrix(tuple(STACKS), np.zeros(len(counts)), counts, 0.0, counts.sum()))


def test_a_sample_counts_once_however_many_subroutines_are_touched(index: StackIndex) -> None:
    impact = impact_of(index, ["price", "cart", "unknown", "price"])
    assert impact.share == touched_share(index, ["cart", "price"]) == pytest.approx(0.51)
    assert dict(impact.subroutines) == pytest.approx({"price": 0.41, "cart": 0.4})
    assert [name for name, _ in impact.subroutines] == ["price", "cart"]
    assert impact.unseen == ("unknown",)
    assert touched_share(index, []) == 0.0


def test_endpoints_are_replayed_as_production_has_them(index: StackIndex) -> None:
    both = impact_of(index, ["price"]).endpoints
    assert [one.endpoint for one in both] == ["/search", "/cart"]
    assert [one.replay for one in both] == pytest.approx([50 / 90, 40 / 90])
    assert [one.touched for one in both] == pytest.approx([0.02, 0.75])
    (most,) = impact_of(index, ["price"], least=0.05).endpoints
    assert (most.endpoint, most.replay) == ("/cart", 1.0)
    assert impact_of(index, ["idle"]).endpoints == ()


def examples(shares: FloatArray, weights: tuple[float, float], seed: int) -> list[Example]:
    chances = special.expit(weights[0] + weights[1] * np.log(shares / 0.01))
    regressed = np.random.default_rng(seed).random(len(shares)) < chances
    return [Example(float(share), bool(one)) for share, one in zip(shares, regressed, strict=True)]


def test_without_examples_the_prior_speaks_and_rises_with_the_share() -> None:
    chance = learn_chance([])
    assert (chance.examples, chance.regressions) == (0, 0)
    assert chance.of(0.01) == pytest.approx(0.01)
    shares = [0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0]
    chances = [chance.of(share) for share in shares]
    assert chances == sorted(chances)


@pytest.mark.parametrize("weights", [(-4.6, 0.5), (-3.0, 0.0), (-3.0, 1.0), (-6.0, 0.5)])
def test_what_is_learned_is_calibrated(weights: tuple[float, float]) -> None:
    shares = np.exp(np.random.default_rng(1).normal(np.log(0.005), 1.5, 4000)).clip(1e-5, 1.0)
    learned = learn_chance(examples(shares[:2000], weights, 2))
    later = shares[2000:]
    expected = np.array([learned.of(float(share)) for share in later])
    actual = special.expit(weights[0] + weights[1] * np.log(later / 0.01))
    large = later > np.median(later)
    for half in (large, ~large):
        assert expected[half].mean() == pytest.approx(actual[half].mean(), rel=0.5)


def test_few_examples_hardly_move_the_prior() -> None:
    one = learn_chance([Example(0.01, regressed=True)])
    assert 0.01 < one.of(0.01) < 0.2
    none = learn_chance([Example(0.01, regressed=False)] * 10)
    assert 0.005 < none.of(0.01) < 0.01


def test_the_machines_test_the_changes_with_most_at_stake() -> None:
    budget = Budget(machines=2, trials=24, trial_s=600.0)
    assert budget.experiments_per_day == pytest.approx(6.0)
    past = [number / 100 for number in range(100)]
    least = worth_of(0.5, past, 60.0, budget)
    assert least.tested == pytest.approx(0.1)
    assert not least.worth
    assert least.threshold == pytest.approx(0.9, abs=0.01)
    assert worth_of(0.95, past, 60.0, budget).worth
    assert worth_of(0.01, past, 5.0, budget).worth
    assert worth_of(0.01, [], 0.0, budget).worth
    assert not worth_of(0.0, [], 0.0, budget).worth
    kept = worth_of(0.01, past, 60.0, budget, kept=2)
    assert (kept.worth, kept.kept) == (True, 2)
    assert kept.score < kept.threshold


def test_what_modifies_no_subroutine_has_nothing_at_stake() -> None:
    chance = learn_chance([])
    assert score_of(chance, 0.0, []) == 0.0
    assert 0.0 < score_of(chance, 0.0, ["new"]) < score_of(chance, 0.01, ["old"])
