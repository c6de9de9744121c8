"""Whether the mix of requests made a rise: the truth table, and what the step is worth in one scan."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.mix.request_decision import MixMade, judge


@pytest.mark.parametrize(
    ("own", "made", "error", "found", "passed", "bound"),
    [
        pytest.param(0.0, 0.01, 0.0, False, False, 1.0, id="the mix made all"),
        pytest.param(0.004, 0.01, 0.0, False, False, 1.0, id="the mix made most"),
        pytest.param(0.02, 0.01, 0.0, False, True, 1.0, id="most is its own"),
        pytest.param(0.004, 0.01, 0.0, True, True, 0.1, id="a change point is left"),
        pytest.param(0.0005, 0.01, 0.0, True, False, 0.1, id="hardly anything is left"),
        pytest.param(0.004, 0.01, 0.002, True, False, 0.5152, id="what is left may be an error of shares"),
        pytest.param(0.004, 0.01, 0.001, True, True, 0.2576, id="it is beyond the error"),
        pytest.param(0.01, -0.01, 0.001, True, True, 0.2576, id="fewer requests hide it"),
        pytest.param(0.002, -0.01, 0.001, True, False, 0.2576, id="fewer requests than thought"),
    ],
)
def test_decision(own: float, made: float, error: float, found: bool, passed: bool, bound: float) -> None:
    decision = judge(own, MixMade(made, error, "GET /search"), found=found)
    assert decision.passed == passed
    assert decision.statistic == pytest.approx(own / abs(made))
    assert decision.bound == pytest.approx(bound)
    assert decision.subjects == (() if passed else ("GET /search",))
    assert decision.code == ("" if passed else "types")


def test_where_the_mix_made_nothing_all_pass() -> None:
    decision = judge(0.01, MixMade(0.0, 0.0, ""), found=True)
    assert decision.passed
    assert np.isfinite(decision.statistic)
