from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.published.kdd2018.butterworth import low_pass

TIME = np.arange(960)


def test_a_level_stays_as_it_is() -> None:
    assert low_pass(np.full((2, 50), 3.0), cutoff=10.0) == pytest.approx(np.full((2, 50), 3.0))


@pytest.mark.parametrize(
    ("order", "cycle", "kept"),
    [
        pytest.param(1, 48.0, 0.5, id="the cut-off is halved"),
        pytest.param(3, 48.0, 0.5, id="at any order"),
        pytest.param(1, 480.0, 1 / (1 + 0.1**2), id="a slow one stays"),
        pytest.param(1, 4.8, 1 / (1 + 10.0**2), id="a fast one goes"),
        pytest.param(2, 24.0, 1 / (1 + 2.0**4), id="the faster the higher the order"),
    ],
)
def test_waves_are_suppressed_by_their_frequency(order: int, cycle: float, kept: float) -> None:
    # Half a window ahead, the mirror image continues the wave.
    wave = np.cos(2 * np.pi * (TIME + 0.5) / cycle)[None]
    assert low_pass(wave, cutoff=48.0, order=order) == pytest.approx(kept * wave, abs=1e-9)


def test_the_end_is_not_drawn_towards_the_beginning() -> None:
    step = (TIME >= 480).astype(np.float64)[None]
    assert low_pass(step, cutoff=24.0)[0, -1] == pytest.approx(1.0, abs=1e-3)
