"""Typical pairs: what a few dear requests do does not decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.experiments.trials import MODELS, Experiments
from pipeline.experiments.trials.typical import paired_by_request_trimmed, trimmed
from pipeline.model import FloatArray

ALPHA = 0.05


def pairs(effect: float, trials: int, count: int = 300, points: int = 100, dear: float = 0.1) -> Experiments:
    """Return experiments whose requests are dearer on one side by chance, by half as much again."""
    rng = np.random.default_rng(trials)
    shape = (count, trials, points)
    cost = rng.lognormal(0.0, 1.0, shape)

    def side() -> FloatArray:
        noise = rng.normal(1.0, 0.02, shape) + np.where(rng.random(shape) < dear, rng.random(shape) / 2, 0.0)
        return np.asarray(cost * noise)

    return Experiments(side(), side() * (1 + effect), match=np.broadcast_to(np.arange(points), shape))


@pytest.mark.parametrize("trials", [1, 6])
def test_long_tails_hide_nothing_from_it(trials: int) -> None:
    typical, mean = (
        MODELS[name].estimate(pairs(0.01, trials), ALPHA)
        for name in ("paired-by-request-trimmed", "paired-by-request")
    )
    assert np.mean(typical.p_value <= ALPHA) > 2 * np.mean(mean.p_value <= ALPHA)
    assert typical.difference.mean() == pytest.approx(0.01, abs=0.001)


@pytest.mark.parametrize("trials", [1, 2, 6])
def test_equal_sides_differ_no_more_often_than_alpha(trials: int) -> None:
    found = paired_by_request_trimmed(pairs(0.0, trials, 1000), ALPHA)
    assert np.mean(found.p_value <= ALPHA) < 0.08
    covered = (found.low <= 0) & (found.high >= 0)
    assert (covered == (found.p_value > ALPHA)).all()


@pytest.mark.parametrize("trials", [1, 6])
def test_a_change_of_few_requests_is_for_the_mean(trials: int) -> None:
    same = pairs(0.0, trials, dear=0.0)
    few = replace(same, b=np.where(np.arange(100) < 10, same.b * 1.5, same.b))
    assert paired_by_request_trimmed(few, ALPHA).difference.mean() == pytest.approx(0.0, abs=0.005)


@pytest.mark.parametrize("trials", [1, 6])
def test_pairs_with_a_0_are_left_out(trials: int) -> None:
    given = pairs(0.01, trials, 5)
    holes = np.arange(100) % 10 == 0
    some = replace(given, a=np.where(holes, 0.0, given.a))
    none = replace(given, b=np.zeros_like(given.b))
    assert np.isfinite(paired_by_request_trimmed(some, ALPHA).difference).all()
    assert (paired_by_request_trimmed(none, ALPHA).p_value == 1.0).all()


def test_without_pairs_nothing_is_significant() -> None:
    for trials in (1, 3):
        assert (
            paired_by_request_trimmed(replace(pairs(0.5, trials, 5), match=None), ALPHA).p_value == 1.0
        ).all()


def test_constant_counts_differ_surely() -> None:
    a, b = np.full((1, 1, 40), 4.0), np.full((1, 1, 40), 5.0)
    found = paired_by_request_trimmed(Experiments(a, b, match=np.arange(40)[None, None]), ALPHA)
    assert found.difference == pytest.approx([0.25])
    assert found.p_value < 1e-6


def test_a_fifth_is_left_out_at_each_end() -> None:
    values = np.array([[1.0, 9.0, 2.0, 3.0, -50.0], [np.nan, 1.0, 2.0, np.nan, np.nan], [np.nan] * 5])
    mean, capped = trimmed(values)
    np.testing.assert_allclose(mean, [2.0, 1.5, np.nan])
    np.testing.assert_allclose(capped[0], [1.0, 3.0, 2.0, 3.0, 1.0])
    np.testing.assert_allclose(capped[1], [np.nan, 1.0, 2.0, np.nan, np.nan])
