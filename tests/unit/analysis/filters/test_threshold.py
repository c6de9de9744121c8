"""Whether a change is large enough to matter."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.filters.threshold import judge_threshold
from tests.support.builders import build_candidate


@pytest.mark.parametrize(
    ("before", "after", "absolute", "relative", "passed"),
    [
        pytest.param(
            0.010, 0.011, 0.001, None, True, id="0.1 pp absolute reaches 0.1 pp (Table 3's caption)"
        ),
        pytest.param(0.010, 0.011, None, 0.10, True, id="the same is 10 % relative"),
        pytest.param(0.010, 0.011, None, 0.11, False, id="and not 11 %"),
        pytest.param(0.010, 0.0109, 0.001, None, False, id="just below absolute"),
        pytest.param(0.0, 0.002, None, 0.5, True, id="from nothing is infinitely much"),
        pytest.param(100.0, 90.0, None, 0.05, True, id="a drop counts by its size"),
        pytest.param(0.00005, 0.0001, 0.00005, None, True, id="0.005 % of the CPU"),
    ],
)
def test_threshold(
    before: float, after: float, absolute: float | None, relative: float | None, passed: bool
) -> None:
    decision = judge_threshold(
        build_candidate(before=before, after=after), absolute=absolute, relative=relative
    )
    assert decision.passed is passed
    assert np.isfinite(decision.statistic)


def test_threshold_wants_one_of_the_two() -> None:
    with pytest.raises(ValueError, match="either"):
        judge_threshold(build_candidate())
