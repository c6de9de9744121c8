"""Shares that add up to one: found where the data say so, as expected where they do not."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.statistics.simplex import fit_shares, moments, on_simplex, posterior_error

PRIOR = np.array([0.5, 0.3, 0.2])


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_shares_are_none_negative_and_add_up(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, parts, parts))
    matrix = root @ root.transpose(0, 2, 1) + np.eye(parts)
    found = on_simplex(matrix, 5 * rng.standard_normal((4, parts)))
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_the_least_of_two_parts_is_that_of_a_search() -> None:
    rng = np.random.default_rng(1)
    matrix, linear = np.array([[[2.0, 0.5], [0.5, 1.0]]]), rng.standard_normal((1, 2))
    first = np.linspace(0, 1, 10_001)
    tried = np.stack([first, 1 - first])
    values = (tried * (matrix[0] @ tried)).sum(axis=0) / 2 - linear[0] @ tried
    np.testing.assert_allclose(on_simplex(matrix, linear)[0], tried[:, np.argmin(values)], atol=1e-4)


def test_without_movement_shares_are_as_expected_and_nothing_is_known() -> None:
    found = moments(np.ones(20), np.ones((1, 20)), np.ones((3, 20)), np.ones((2, 20)))
    fitted = fit_shares(found, np.ones(2), PRIOR)
    np.testing.assert_allclose(fitted.shares, [PRIOR, PRIOR])
    # All of one part or none of it: the spread of that is what the prior leaves open.
    spread = np.sqrt(PRIOR[0] * (1 - PRIOR[0]))
    np.testing.assert_allclose(posterior_error(fitted.precision, np.array([1.0, 0, 0])), spread)


def test_movement_says_whose_a_series_is() -> None:
    rng = np.random.default_rng(2)
    parts = 1 + 0.1 * rng.standard_normal((3, 400))
    true = np.array([[1.0, 0, 0], [0.1, 0.2, 0.7]])
    values = true @ parts + 0.01 * rng.standard_normal((2, 400))
    found = moments(np.full(400, 1e4), np.ones((1, 400)), parts, values)
    fitted = fit_shares(found, np.ones(2), PRIOR)
    np.testing.assert_allclose(fitted.shares, true, atol=0.03)
    assert (posterior_error(fitted.precision, np.array([1.0, 0, 0])) < 0.02).all()


def test_what_a_group_has_in_common_says_nothing() -> None:
    rng = np.random.default_rng(3)
    hours = (np.arange(24)[:, None] == np.arange(480) % 24).astype(np.float64)
    cycle = 1 + 0.3 * np.cos(np.arange(480) % 24)
    parts = np.stack([cycle, np.ones(480), np.ones(480)])
    found = moments(np.full(480, 1e4), hours, parts, (cycle + 0.01 * rng.standard_normal(480))[None, :])
    np.testing.assert_allclose(fit_shares(found, np.ones(1), PRIOR).shares, [PRIOR], atol=1e-6)
