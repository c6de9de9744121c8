from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.published.importance import ImportanceConfig, importance_scores


def scores(
    before: list[float], after: list[float], found: list[bool] | None = None, groups: list[int] | None = None
) -> list[float]:
    size = len(before)
    values = importance_scores(
        np.array(before),
        np.array(after),
        np.array(found or [False] * size, dtype=np.bool_),
        np.array(groups or [0] * size, dtype=np.int64),
    )
    return [float(value) for value in values]


def test_the_score_is_the_weighted_sum_of_the_paper() -> None:
    # Relative 0.25 / 0.5, absolute the group's largest, popularity 0.5, a cause found.
    assert scores([0.25], [0.5], [True]) == pytest.approx([0.2 * 0.5 + 0.6 * 1 + 0.1 * 0.5 + 0.1 * 1])


@pytest.mark.parametrize(
    ("before", "after", "found", "first"),
    [
        pytest.param([0.10, 0.01], [0.11, 0.02], None, 1, id="equal rises: the relatively larger"),
        pytest.param([0.01, 0.01], [0.02, 0.03], None, 1, id="the absolutely larger"),
        pytest.param([0.50, 0.02], [0.51, 0.03], None, 1, id="the less popular"),
        pytest.param([0.01, 0.01], [0.02, 0.02], [False, True], 1, id="the one with a known cause"),
        pytest.param([0.01, 0.0], [0.02, 0.01], None, 1, id="what did not exist before"),
        pytest.param([0.02, 0.01], [0.01, 0.009], None, 0, id="drops count by their size"),
    ],
)
def test_what_is_more_important(
    before: list[float], after: list[float], found: list[bool] | None, first: int
) -> None:
    assert int(np.argmax(scores(before, after, found))) == first


def test_absolute_changes_are_compared_within_a_group() -> None:
    alone = scores([0.1], [0.2])
    assert scores([0.1, 0.1], [0.2, 0.9], groups=[0, 1])[:1] == pytest.approx(alone)


def test_weights_can_be_chosen() -> None:
    config = ImportanceConfig(relative_weight=0, absolute_weight=0, popularity_weight=1, cause_weight=0)
    found = importance_scores(
        np.array([0.1]), np.array([0.25]), np.array([True]), np.array([0]), config=config
    )
    assert found.tolist() == [0.75]


def test_no_change_and_no_candidates_have_scores_too() -> None:
    assert scores([0.0], [0.0]) == pytest.approx([0.1])
    assert scores([], []) == []
