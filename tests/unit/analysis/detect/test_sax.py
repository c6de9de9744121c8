from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.sax import letters, spell, valid_letters


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
