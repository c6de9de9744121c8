"""Dispersion of shares: 1 where only chance moves them, and as much more as they vary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.statistics.dispersion import between_senders, between_windows
from pipeline.model import FloatArray

SHARES = np.array([0.3, 0.1, 0.05, 0.02, 0.2])
WINDOWS = 64


def drawn(seed: int, extra: float = 0.0, windows: int = WINDOWS, total: int = 5000) -> FloatArray:
    """Return counts by chance around shares that vary by ``extra`` of themselves from window to window."""
    rng = np.random.default_rng(seed)
    shares = SHARES[:, None] * (1 + extra * rng.standard_normal((len(SHARES), windows)))
    return rng.binomial(total, np.clip(shares, 0.0, 1.0)).astype(np.float64)


@pytest.mark.parametrize(
    ("extra", "least", "most"),
    [pytest.param(0.0, 1.0, 1.35, id="chance"), pytest.param(0.3, 5.0, 200.0, id="much more")],
)
@pytest.mark.parametrize("seed", range(3))
def test_dispersion_is_one_by_chance_and_more_where_shares_vary(
    seed: int, extra: float, least: float, most: float
) -> None:
    counts, totals = drawn(seed, extra), np.full(WINDOWS, 5000.0)
    assert least <= between_windows(counts, totals) <= most
    assert least <= between_senders(counts, totals, np.arange(WINDOWS) % 2) <= most


def test_what_a_day_does_and_one_step_are_no_noise_between_windows() -> None:
    rng = np.random.default_rng(5)
    hours = np.arange(WINDOWS) / WINDOWS
    shares = SHARES[:, None] * (1 + 0.3 * np.sin(2 * np.pi * hours))
    shares[0, WINDOWS // 2 :] *= 1.5
    counts = rng.binomial(5000, shares).astype(np.float64)
    totals = np.full(WINDOWS, 5000.0)
    assert between_windows(counts, totals) < 1.6
    assert between_senders(counts, totals, np.zeros(WINDOWS, dtype=np.int64)) > 5


def test_sides_that_differ_are_no_noise_between_senders() -> None:
    rng = np.random.default_rng(6)
    side = np.arange(20) % 2
    shares = np.where(side == 0, SHARES[:, None], 2 * SHARES[:, None])
    counts = rng.binomial(5000, shares).astype(np.float64)
    assert between_senders(counts, np.full(20, 5000.0), side) < 2
    assert between_senders(counts, np.full(20, 5000.0), np.zeros(20, dtype=np.int64)) > 10


@pytest.mark.parametrize(
    ("samples", "totals"),
    [
        pytest.param(np.zeros((0, 20)), np.full(20, 10.0), id="no series"),
        pytest.param(np.full((2, 7), 5.0), np.full(7, 10.0), id="few windows"),
        pytest.param(np.zeros((2, 20)), np.zeros(20), id="no samples"),
        pytest.param(np.full((2, 20), 10.0), np.full(20, 10.0), id="a share of all"),
        pytest.param(np.eye(2, 20), np.full(20, 10.0), id="series with few samples"),
        pytest.param(np.full((2, 20), 5.0), np.r_[np.full(7, 10.0), np.zeros(13)], id="few with samples"),
    ],
)
def test_what_says_nothing_is_taken_for_chance(samples: FloatArray, totals: FloatArray) -> None:
    assert between_windows(np.minimum(samples, totals), totals) == 1.0


@pytest.mark.parametrize("side", [[0, 1], [1, 0], [3, 7]])
def test_nobody_repeats_where_each_side_has_one_sender(side: list[int]) -> None:
    counts = np.array([[10.0, 90.0], [50.0, 50.0]])
    assert between_senders(counts, np.full(2, 100.0), np.array(side)) == 1.0


@given(st.integers(0, 1000), st.permutations(range(8)), st.integers(1, 5))
def test_order_of_senders_and_names_of_sides_do_not_matter(seed: int, order: list[int], step: int) -> None:
    counts, totals = drawn(seed, 0.2, windows=8), np.full(8, 5000.0)
    side = np.arange(8) % 3
    found = between_senders(counts, totals, side)
    assert found >= 1.0
    assert between_senders(counts[:, order], totals, side[order]) == pytest.approx(found)
    assert between_senders(counts, totals, 10 - step * side) == pytest.approx(found)


@given(st.integers(0, 1000), st.integers(0, WINDOWS - 1))
def test_windows_without_samples_change_nothing(seed: int, at: int) -> None:
    counts, totals = drawn(seed, 0.2), np.full(WINDOWS, 5000.0)
    found = between_windows(counts, totals)
    gap = np.insert(counts, at, 0.0, axis=1)
    assert between_windows(gap, np.insert(totals, at, 0.0)) == pytest.approx(found)
    assert between_windows(counts[::-1], totals) == pytest.approx(found)
