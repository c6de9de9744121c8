"""Noise that lasts, and signs that periods of a block share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.signal import lfilter

from pipeline.analysis.statistics.bootstrap import Dependence, dependent_signs, sign_flip_chance
from pipeline.model import FloatArray


def lasting(periods: int, memory: float, seed: int = 0) -> FloatArray:
    noise = np.random.default_rng(seed).standard_normal(periods)
    return np.asarray(lfilter([1.0], [1.0, -memory], noise))


@pytest.mark.parametrize("new", [30, 60, 480])
def test_a_short_release_has_the_memory_of_the_long_one(new: int) -> None:
    """Thirty periods cannot say that noise lasts for twenty."""
    found = Dependence.of(lasting(480 + new, 0.9), 480)
    assert 10.0 <= found.memory <= 30.0
    assert len(set(found.blocks[480:].tolist())) == math.ceil(new / math.ceil(2.0 * found.memory))
    assert not set(found.blocks[:480].tolist()) & set(found.blocks[480:].tolist())


def test_noise_that_does_not_last_has_a_block_for_each_period() -> None:
    found = Dependence.of(lasting(300, 0.0), 200)
    assert found.memory == 1.0
    assert found.blocks.tolist() == list(range(300))


def test_periods_of_a_block_have_one_sign() -> None:
    found = Dependence.of(lasting(540, 0.9), 480)
    signs = np.concatenate(list(dependent_signs(found, np.random.default_rng(0), 300)), axis=1)
    assert signs.shape == (540, 300)
    assert set(signs.ravel().tolist()) == {-1.0, 1.0}
    for block in np.unique(found.blocks).tolist():
        assert (signs[found.blocks == block] == signs[found.blocks == block][0]).all()


def test_the_chance_counts_the_data_among_the_draws() -> None:
    parts = [np.array([1.0, 3.0]), np.array([2.0, 2.5])]
    assert sign_flip_chance(2.0, parts) == 4 / 5
    assert sign_flip_chance(9.0, parts) == 1 / 5


def test_drawing_ends_after_the_part_with_enough_larger_draws() -> None:
    parts = iter([np.array([1.0, 3.0]), np.array([2.0, 2.5])])
    assert sign_flip_chance(2.0, parts, enough=1) == 2 / 3
    assert next(parts).tolist() == [2.0, 2.5]
