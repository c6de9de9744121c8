"""Two groups: how many moved, and how far."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.mix.two_groups import fit_two_groups


@pytest.mark.parametrize(
    ("part", "spread"),
    [pytest.param(0.2, 0.5, id="a few"), pytest.param(0.5, 0.2, id="half"), pytest.param(1.0, 0.3, id="all")],
)
def test_how_many_moved_and_how_far_is_found_again(part: float, spread: float) -> None:
    rng = np.random.default_rng(1)
    moved = rng.random(2000) < part
    variances = rng.uniform(0.01, 0.03, 2000) ** 2
    logarithms = rng.normal(0, np.sqrt(variances + moved * spread**2))
    groups = fit_two_groups(logarithms, variances)
    assert groups.moved == pytest.approx(part, abs=0.06)
    assert groups.spread == pytest.approx(spread, rel=0.1)
    likely = groups.responsibilities(logarithms, variances)
    assert likely[np.abs(logarithms) > spread].min() > 0.95


def test_where_nothing_moved_posterior_means_are_small() -> None:
    variances = np.full(200, 0.02**2)
    logarithms = np.random.default_rng(2).normal(0, 0.02, 200)
    groups = fit_two_groups(logarithms, variances)
    assert np.abs(groups.means(logarithms, variances)).max() < 0.02
