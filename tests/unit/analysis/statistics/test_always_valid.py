"""Bounds at all looks: Brownian motion crosses them as seldom as they say."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.statistics.always_valid import p_values, radius, tightest_at


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_a_drift_of_none_is_seldom_found_at_any_look(alpha: float) -> None:
    rng = np.random.default_rng(1)
    information = np.arange(1.0, 1_001.0)
    path = rng.normal(size=(2_000, 1_000)).cumsum(axis=1)
    rho = tightest_at(np.array(200.0), alpha)
    z = path / np.sqrt(information)
    by_p = (p_values(z, information, rho) <= alpha).any(axis=1).mean()
    by_radius = (z >= radius(information, rho, alpha)).any(axis=1).mean()
    assert alpha / 3 < by_p <= alpha + 0.01
    assert by_radius <= by_p + 1e-9


def test_the_closed_bound_is_near_the_mixture() -> None:
    information, rho = np.array([10.0, 100.0, 1_000.0]), np.array(20.0)
    reach = radius(information, rho, 0.001)
    assert (p_values(reach, information, rho) <= 0.001).all()
    assert (p_values(0.9 * reach, information, rho) > 0.001).all()


def test_a_large_drift_shows_long_before_the_one_that_is_looked_for() -> None:
    rho = tightest_at(np.array(1_000.0), 0.001)
    found = radius(np.array([1_000.0, 60.0, 4.0]), rho, 0.001)
    assert found[0] == pytest.approx(4.5, abs=0.5)  # a test at one look would ask for 3.1
    assert found[1] < 5.0
    assert found[2] < 5.5
