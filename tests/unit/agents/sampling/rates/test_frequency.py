"""Sampling rate from window to window: fast while a profile is new, slow while it lasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from agents.sampling.rates import (
    FrequencyConfig,
    FrequencyState,
    adjust,
    adjust_as_published,
    config_for,
    first_state,
)
from pipeline.model import FloatArray

WINDOW_S = 10.0
QUIET = np.array([0.4, 0.3, 0.2, 0.1])
BUSY = np.array([0.1, 0.2, 0.3, 0.4])

Rule = Callable[[FrequencyState, FloatArray, float, FrequencyConfig], FrequencyState]


def _follow(
    rule: Rule, shares: list[FloatArray], config: FrequencyConfig, seed: int = 1
) -> list[FrequencyState]:
    rng = np.random.default_rng(seed)
    states = [first_state(config)]
    for window in shares:
        counts = rng.multinomial(int(states[-1].rate_hz * WINDOW_S), window).astype(float)
        states.append(rule(states[-1], counts, WINDOW_S, config))
    return states[1:]


@pytest.mark.parametrize(
    ("counts", "quiet", "rate_hz"),
    [
        pytest.param([10, 90], 0, 125.0, id="a change"),
        pytest.param([90, 10], 3, 100.0, id="not yet long enough"),
        pytest.param([90, 10], 5, 80.0, id="beyond the patience"),
    ],
)
def test_published_algorithm(counts: list[float], quiet: int, rate_hz: float) -> None:
    state = FrequencyState(100.0, quiet=quiet, recent=(np.array([90.0, 10.0]),))
    following = adjust_as_published(state, np.array(counts), WINDOW_S, FrequencyConfig())
    assert following.rate_hz == pytest.approx(rate_hz)


def test_published_profile_of_the_highest_rate_stands_for_those_after_it() -> None:
    config = FrequencyConfig()
    state = adjust_as_published(first_state(config), np.array([900.0, 100.0]), WINDOW_S, config)
    state = adjust_as_published(state, np.array([85.0, 15.0]), WINDOW_S, config)
    assert state.reference.tolist() == [900.0, 100.0]
    state = adjust_as_published(state, np.array([15.0, 85.0]), WINDOW_S, config)
    assert state.reference.sum() == 0.0


def test_rate_falls_while_nothing_changes_and_jumps_with_a_change() -> None:
    config = config_for(5000, WINDOW_S)
    states = _follow(adjust, [QUIET] * 100 + [BUSY] * 100, config)
    rates = np.array([state.rate_hz for state in states])
    assert rates[60:99] == pytest.approx(config.lowest_hz)
    assert rates[100] == config.highest_hz
    assert rates[180:] == pytest.approx(config.lowest_hz)
    assert np.abs(states[-1].shares - BUSY).max() < 0.02


def test_few_samples_of_one_profile_are_no_change() -> None:
    config = config_for(1000, WINDOW_S)
    states = _follow(adjust, [QUIET] * 2000, config)
    assert sum(state.quiet == 0 for state in states[1:]) <= 2
    published = _follow(adjust_as_published, [QUIET] * 2000, replace(config, theta=0.005))
    assert sum(state.quiet == 0 for state in published[1:]) > 200


def test_a_slow_change_shows() -> None:
    config = config_for(5000, WINDOW_S)
    weights = np.linspace(0, 1, 500)[:, None]
    states = _follow(adjust, list((1 - weights) * QUIET + weights * BUSY), config)
    assert np.abs(states[-1].shares - BUSY).max() < 0.05


@pytest.mark.parametrize("rule", [adjust, adjust_as_published])
def test_budget_holds_on_average(rule: Rule) -> None:
    config = replace(config_for(5000, WINDOW_S), budget_hz=50.0)
    shares = [QUIET if window // 6 % 2 else BUSY for window in range(2000)]
    states = _follow(rule, shares, config)
    assert np.mean([state.rate_hz for state in states]) <= 50.5


def test_functions_come_as_they_are_seen() -> None:
    config = config_for(1000, WINDOW_S)
    state = adjust(first_state(config), np.array([500.0]), WINDOW_S, config)
    state = adjust(state, np.array([0.0, 500.0]), WINDOW_S, config)
    assert state.shares.tolist() == [0.0, 1.0]
