from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.offline.transients import replace_transients
from pipeline.model import FloatArray

POINTS = 120
TIME = np.linspace(-0.5, 0.5, POINTS)


def noise() -> FloatArray:
    return np.random.default_rng(4).normal(0.0, 0.1, POINTS)


@pytest.mark.parametrize(
    ("first", "end", "replaced"),
    [
        pytest.param(60, 61, 1, id="a point"),
        pytest.param(60, 65, 5, id="a stretch as long as may be"),
        pytest.param(60, POINTS, 0, id="a step that lasts"),
    ],
)
def test_what_does_not_last_is_replaced(first: int, end: int, replaced: int) -> None:
    values = noise()
    values[first:end] += 5.0
    clean, count = replace_transients(values, TIME, longest=5, bound=6.0)
    assert count == replaced
    assert np.flatnonzero(clean != values).tolist() == list(range(first, end))[:replaced]
    assert np.abs(clean - values)[first:end].max(initial=0.0) > 4.0 or not replaced


def test_the_ends_of_a_slope_are_not_odd() -> None:
    values = 20.0 * TIME + noise()
    clean, count = replace_transients(values, TIME, longest=5, bound=6.0)
    assert count == 0
    assert clean.tolist() == values.tolist()
