"""Samples of changing rates: gCPU without a bias, with the variance that is claimed, and without steps."""

from __future__ import annotations

import numpy as np
import pytest

from agents.profiles.formats import Stack, StackSamples
from agents.sampling.rates import (
    RatedSamples,
    adjust,
    at_base_rate,
    config_for,
    effective_rate_hz,
    first_state,
)
from pipeline.analysis.detect.short_term import Windows, find_candidates
from pipeline.analysis.filters.significance import judge_significance
from pipeline.model import FloatArray, SeriesMatrix

WINDOW_S = 10.0
STACKS: list[Stack] = [*(("main", "serve", f"f{number}") for number in range(6)), ("main", "batch", "g")]
USUAL = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.0])
BATCH = np.array([0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.6])


def _part(rng: np.random.Generator, shares: FloatArray, rate_hz: float, duration_s: float) -> RatedSamples:
    counts = rng.multinomial(rng.poisson(rate_hz * duration_s), shares)
    stacks = {stack: int(count) for stack, count in zip(STACKS, counts, strict=True) if count}
    return RatedSamples(StackSamples(stacks), rate_hz, duration_s)


def test_shares_are_unbiased_though_the_rate_follows_the_profile() -> None:
    rng = np.random.default_rng(1)
    weighed, plain = [], []
    for _ in range(2000):
        parts = [_part(rng, USUAL, 10.0, 50.0), _part(rng, BATCH, 200.0, 10.0)]
        counts = at_base_rate(parts, effective_rate_hz(parts), rng.random())
        weighed.append(counts.get(STACKS[-1], 0) / sum(counts.values()))
        samples = [part.samples.stacks.get(STACKS[-1], 0) for part in parts]
        plain.append(sum(samples) / sum(part.samples.samples for part in parts))
    truth = (50 * USUAL[-1] + 10 * BATCH[-1]) / 60
    assert np.mean(weighed) == pytest.approx(truth, abs=4 * np.std(weighed) / np.sqrt(2000) + 0.0005)
    assert np.mean(plain) > 4 * truth


@pytest.mark.parametrize(
    ("rates", "base_hz", "ratio"),
    [
        pytest.param((10.0, 10.0), 10.0, 1.0, id="one rate"),
        pytest.param((10.0, 200.0), 19.05, 1.0, id="two rates, by the effective rate"),
        pytest.param((10.0, 200.0), 10.0, 0.52, id="two rates, by the lower one"),
    ],
)
def test_variance_is_that_of_so_many_samples(rates: tuple[float, ...], base_hz: float, ratio: float) -> None:
    rng = np.random.default_rng(2)
    found = []
    for _ in range(3000):
        parts = [_part(rng, USUAL, rate, 30.0) for rate in rates]
        counts = at_base_rate(parts, base_hz, rng.random())
        found.append((counts.get(STACKS[0], 0), sum(counts.values())))
    held, total = np.array(found, dtype=float).T
    claimed = 0.3 * 0.7 / total.mean()
    assert total.mean() == pytest.approx(base_hz * 60, rel=0.01)
    assert (held / total).var() / claimed == pytest.approx(ratio, rel=0.12)


def test_effective_rate_is_limited_by_the_slow_part() -> None:
    parts = [RatedSamples(StackSamples({}), rate, 30.0) for rate in (10.0, 1000.0)]
    assert effective_rate_hz(parts) == pytest.approx(19.8, abs=0.01)


def test_rates_that_switch_make_no_change_points() -> None:
    """Batches come all the time; from the middle on, the agent samples faster while they run."""
    rng = np.random.default_rng(3)
    windows, switched = 400, 320
    weighed, plain = np.zeros((2, windows, len(STACKS)))
    for window in range(windows):
        fast_hz = 1000.0 if window >= switched else 100.0
        parts = [_part(rng, USUAL, 100.0, 250.0), _part(rng, BATCH, fast_hz, 50.0)]
        counts = at_base_rate(parts, 100.0, rng.random())
        weighed[window] = [counts.get(stack, 0) for stack in STACKS]
        plain[window] = [sum(part.samples.stacks.get(stack, 0) for part in parts) for stack in STACKS]
    assert _rises(plain)
    assert not _rises(weighed)


@pytest.mark.slow
def test_adaptive_agents_make_no_change_points() -> None:
    """Three hosts follow their profiles, which switch to batches for a tenth of the time and back."""
    rng = np.random.default_rng(4)
    config = config_for(2000, WINDOW_S)
    states = [first_state(config)] * 3
    batch = np.zeros(3, dtype=bool)
    windows, per_window = 300, 12
    counted = np.zeros((windows, len(STACKS)))
    for step in range(windows * per_window):
        batch = np.where(batch, rng.random(3) > 0.1, rng.random(3) < 0.011)
        for host, state in enumerate(states):
            part = _part(rng, BATCH if batch[host] else USUAL, state.rate_hz, WINDOW_S)
            row = np.array([part.samples.stacks.get(stack, 0) for stack in STACKS], dtype=float)
            counts = at_base_rate([part], config.lowest_hz, rng.random())
            counted[step // per_window] += [counts.get(stack, 0) for stack in STACKS]
            states[host] = adjust(state, row, WINDOW_S, config)
    assert not _rises(counted)


def _rises(counted: FloatArray) -> list[str]:
    """Return the series in which the short-term detector finds a step: (windows, stacks) samples."""
    matrix = SeriesMatrix(
        start=0.0,
        resolution_s=600.0,
        kinds=tuple("subroutine" for _ in STACKS),
        names=tuple(stack[-1] for stack in STACKS),
        samples=counted.T.copy(),
        totals=counted.sum(axis=1),
    )
    total = len(counted)
    found = find_candidates(matrix, Windows(total - 100, total - 60, total))
    return [one.metric for one in found if judge_significance(one, series=len(STACKS)).passed]
