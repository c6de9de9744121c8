from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.sax import (
    adjacent_starts,
    block_means,
    letters,
    moving_starts,
    running_sums,
    spell,
    valid_letters,
)


def test_the_papers_example() -> None:
    series = np.array([[1.1, 2.0, 3.1, 4.2, 3.5, 2.3, 1.1]])
    found = letters(series, lowest=np.array([1.0]), highest=np.array([5.0]), buckets=4)
    assert spell(found[0]) == "abcdcba"


@pytest.mark.parametrize(
    ("value", "letter"),
    [
        pytest.param(-5.0, "a", id="below the range"),
        pytest.param(0.0, "a", id="lower end"),
        pytest.param(0.3, "d", id="the edge of a bucket belongs to the upper one"),
        pytest.param(1.0, "j", id="upper end"),
        pytest.param(99.0, "j", id="above the range"),
        pytest.param(np.nan, "-", id="no data"),
    ],
)
def test_letters(value: float, letter: str) -> None:
    found = letters(np.array([[value]]), lowest=np.zeros(1), highest=np.ones(1), buckets=10)
    assert spell(found[0]) == letter


def test_a_range_without_width_has_one_letter() -> None:
    found = letters(np.full((1, 3), 7.0), lowest=np.full(1, 7.0), highest=np.full(1, 7.0))
    assert spell(found[0]) == "aaa"


def test_a_letter_is_valid_from_its_share_of_the_known_points_on() -> None:
    rows = np.array([[0] * 96 + [1] * 3 + [2], [0] * 50 + [1] * 2 + [-1] * 48])
    valid = valid_letters(rows, buckets=3, share=0.03)
    assert valid.tolist() == [[True, True, False], [True, True, False]]


def test_no_letter_is_valid_without_data() -> None:
    assert not valid_letters(np.full((1, 5), -1), buckets=3).any()


def test_block_means_weigh_and_leave_out_what_is_missing() -> None:
    values = np.array([[1.0, 3.0, np.nan, 5.0, np.nan, np.nan]])
    weights = np.array([[1.0, 3.0, 0.0, 2.0, 0.0, 0.0]])
    starts = np.array([[0, 2, 4, 5, -1]])
    means = block_means(running_sums(values, weights), starts, np.array([2]))
    np.testing.assert_allclose(means, [[2.5, 5.0, np.nan, np.nan, np.nan]])


def test_block_means_of_a_far_level_keep_their_digits() -> None:
    values = 1e9 + np.array([[0.0, 1.0, 2.0, 3.0]])
    means = block_means(running_sums(values, np.ones((1, 4))), np.array([[0, 2]]), np.array([2]))
    np.testing.assert_allclose(means - 1e9, [[0.5, 2.5]], atol=1e-6)


def test_moving_blocks_lie_at_every_position() -> None:
    starts = moving_starts(np.array([0, 2]), np.array([5, 5]), np.array([2, 3]))
    assert starts.tolist() == [[0, 1, 2, 3], [2, -1, -1, -1]]


def test_adjacent_blocks_end_with_the_series() -> None:
    starts = adjacent_starts(np.array([1, 3]), np.array([8, 8]), np.array([2, 3]))
    assert starts.tolist() == [[2, 4, 6], [-1, -1, 5]]
