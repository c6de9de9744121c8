from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.statistics.blocks import (
    BlockSums,
    adjacent_starts,
    block_means,
    means_at,
    moving_starts,
    running_sums,
)

OBSERVED = np.random.default_rng(1).random((5, 103))


@pytest.mark.parametrize("exposure", [OBSERVED + 1.0, np.ones((1, 103))], ids=["each", "shared"])
def test_wider_blocks_are_made_of_finer_ones_from_the_new_end(exposure: np.ndarray) -> None:
    sums = BlockSums(OBSERVED, exposure)
    for width in (1, 2, 6, 20, 60, 7):
        blocks = 103 // width
        for part, found in zip((OBSERVED, exposure), sums.of_width(width), strict=True):
            direct = part[:, 103 - blocks * width :].reshape(len(part), blocks, width).sum(axis=2)
            np.testing.assert_allclose(found, direct)


def test_some_rows_share_what_all_have() -> None:
    sums = BlockSums(OBSERVED, np.ones((1, 103)))
    observed, exposure = sums.of_rows(np.array([1, 3]), 10)
    np.testing.assert_array_equal(observed, sums.of_width(10)[0][[1, 3]])
    assert exposure.shape == (1, 10)


@pytest.mark.parametrize(
    ("width", "means", "weights"),
    [
        pytest.param(1, [9.0, 1.0, 2.0, 5.0, 4.0], [1.0, 1.0, 3.0, 0.0, 2.0], id="as they are"),
        pytest.param(2, [(1 + 2 * 3) / 4, 4.0], [4.0, 2.0], id="the oldest is left out"),
        pytest.param(5, [(9 + 1 + 6 + 8) / 7], [7.0], id="all"),
    ],
)
def test_block_means(width: int, means: list[float], weights: list[float]) -> None:
    values, weight = np.array([[9.0, 1.0, 2.0, 5.0, 4.0]]), np.array([[1.0, 1.0, 3.0, 0.0, 2.0]])
    found = block_means(values, weight, width)
    assert found[0][0] == pytest.approx(means)
    assert found[1][0] == pytest.approx(weights)


def test_a_block_without_data_is_zero_and_weighs_nothing() -> None:
    means, weights = block_means(np.array([[np.nan, np.nan, 3.0, 5.0]]), np.array([[0, 0, 1.0, 1.0]]), 2)
    assert (means.tolist(), weights.tolist()) == ([[0.0, 4.0]], [[0.0, 2.0]])


def test_partial_blocks_begin_at_the_old_end_and_the_last_is_shorter() -> None:
    means, weights = block_means(
        np.array([[9.0, 1.0, 2.0, 5.0, 4.0]]), np.array([[1.0, 1.0, 3.0, 0.0, 2.0]]), 2, partial=True
    )
    assert (means.tolist(), weights.tolist()) == ([[5.0, 2.0, 4.0]], [[2.0, 3.0, 2.0]])


def test_means_at_any_start_weigh_and_leave_out_what_is_missing() -> None:
    values = np.array([[1.0, 3.0, np.nan, 5.0, np.nan, np.nan]])
    weights = np.array([[1.0, 3.0, 0.0, 2.0, 0.0, 0.0]])
    starts = np.array([[0, 2, 4, 5, -1]])
    means = means_at(running_sums(values, weights), starts, np.array([2]))
    np.testing.assert_allclose(means, [[2.5, 5.0, np.nan, np.nan, np.nan]])


def test_means_at_any_start_of_a_far_level_keep_their_digits() -> None:
    values = 1e9 + np.array([[0.0, 1.0, 2.0, 3.0]])
    means = means_at(running_sums(values, np.ones((1, 4))), np.array([[0, 2]]), np.array([2]))
    np.testing.assert_allclose(means - 1e9, [[0.5, 2.5]], atol=1e-6)


def test_moving_blocks_lie_at_every_position() -> None:
    starts = moving_starts(np.array([0, 2]), np.array([5, 5]), np.array([2, 3]))
    assert starts.tolist() == [[0, 1, 2, 3], [2, -1, -1, -1]]


def test_adjacent_blocks_end_with_the_series() -> None:
    starts = adjacent_starts(np.array([1, 3]), np.array([8, 8]), np.array([2, 3]))
    assert starts.tolist() == [[2, 4, 6], [-1, -1, 5]]
