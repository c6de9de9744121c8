"""Rates of services that follow their profiles, over windows whose samples are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from agents.host.adaptive import FASTEST_HZ, MOST_FUNCTIONS, WINDOW_S, AdaptiveRates, stepped
from agents.host.parts import Part
from agents.host.rules import LOWEST_HZ, Identity
from agents.profiles.formats import Stack

STEADY = {"a": 0.5, "b": 0.3, "c": 0.2}
CHANGED = {"a": 0.2, "b": 0.2, "c": 0.2, "d": 0.4}


def window(
    rates: AdaptiveRates, mix: dict[str, float], rng: np.random.Generator, service: str = "shop"
) -> float:
    """Sample a window at the present rate, as two processes, and return the rate of the next one."""
    rate_hz = rates.rates_hz.get(service, FASTEST_HZ)
    for share in (0.3, 0.7):
        counts = rng.multinomial(int(rate_hz * WINDOW_S * share), list(mix.values()))
        stacks: dict[Stack, int] = {
            ("main", name): int(count) for name, count in zip(mix, counts, strict=True)
        }
        rates.count([Part(Identity(service), rate_hz, 0.0, WINDOW_S, stacks)])
    rates.end_window()
    return rates.rates_hz[service]


def test_a_steady_profile_is_sampled_less_and_less_until_it_changes() -> None:
    rng, rates = np.random.default_rng(1), AdaptiveRates()
    steady = [window(rates, STEADY, rng) for _ in range(30)]
    assert steady == sorted(steady, reverse=True)
    assert steady[-1] == 1
    assert len(set(steady)) <= 8
    changed = [window(rates, CHANGED, rng) for _ in range(4)]
    assert max(changed) == FASTEST_HZ


def test_services_have_rates_of_their_own() -> None:
    rng, rates = np.random.default_rng(2), AdaptiveRates()
    for number in range(20):
        window(rates, STEADY, rng)
        window(rates, CHANGED if number % 2 else STEADY, rng, "mail")
    assert rates.rates_hz["shop"] < 10 < rates.rates_hz["mail"]


def test_services_without_samples_keep_a_rate_and_those_of_endless_functions_begin_anew() -> None:
    rates = AdaptiveRates()
    rates.count([Part(Identity("shop"), FASTEST_HZ, 0.0, WINDOW_S, {})])
    rates.end_window()
    assert rates.rates_hz == {"shop": FASTEST_HZ}
    for first in (0, MOST_FUNCTIONS, 2 * MOST_FUNCTIONS):
        stacks: dict[Stack, int] = {(f"f{first + number}",): 1 for number in range(MOST_FUNCTIONS)}
        rates.count([Part(Identity("shop"), FASTEST_HZ, 0.0, WINDOW_S, stacks)])
    assert len(rates._profiles["shop"].numbers) <= 2 * MOST_FUNCTIONS


@pytest.mark.parametrize(
    ("wanted_hz", "step_hz"),
    [(1000.0, 67), (67.0, 67), (60.0, 67), (40.0, 33), (9.0, 9), (1.0, 1), (0.83, 1), (1e-9, LOWEST_HZ)],
)
def test_rates_are_steps(wanted_hz: float, step_hz: float) -> None:
    assert stepped(wanted_hz) == step_hz
