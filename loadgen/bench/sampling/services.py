"""Simulated services whose profiles change, window by window, with their truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray

WINDOW_S = 10.0
"""Seconds between two compared profiles, as in Atys §5.2."""

FUNCTIONS = 200
_CONCENTRATION = 20_000.0
"""Requests of a window, or what is worth as many: its own shares stray from those of the service by them."""


@dataclass(frozen=True, slots=True)
class ServiceProfiles:
    """True profiles of a service."""

    kind: str
    shares: FloatArray  # (windows, functions) of the CPU time of each window, the instrumented truth

    def sample(self, rng: np.random.Generator, window: int, rate_hz: float) -> FloatArray:
        """Return the samples of each function in a window: (functions,)."""
        total = int(rng.poisson(rate_hz * WINDOW_S))
        return rng.multinomial(total, self.shares[window]).astype(np.float64)


def draw_service(kind: str, windows: int, seed: int) -> ServiceProfiles:
    """Return a service of one of ``KINDS``.

    Args:
        kind: Course of the profile.
        windows: Length in windows of ``WINDOW_S``.
        seed: Seed of all random draws.
    """
    rng = np.random.default_rng([seed, *kind.encode()])
    shares = KINDS[kind](rng, windows)
    drawn = rng.standard_gamma(np.maximum(shares * _CONCENTRATION, 1e-9))
    return ServiceProfiles(kind, drawn / drawn.sum(axis=1, keepdims=True))


def _costs(rng: np.random.Generator) -> FloatArray:
    """Return shares of functions: some hot, most small, as of real services."""
    weights = (np.arange(FUNCTIONS) + 3.0) ** -1.2 * rng.gamma(4.0, 0.25, FUNCTIONS)
    return np.asarray(weights / weights.sum())


def _stationary(rng: np.random.Generator, windows: int) -> FloatArray:
    return np.tile(_costs(rng), (windows, 1))


def _deploys(rng: np.random.Generator, windows: int) -> FloatArray:
    """Every two hours on average a release changes the cost of a few functions."""
    costs = _costs(rng)
    rows = np.empty((windows, FUNCTIONS))
    deployed = rng.random(windows) < WINDOW_S / 7200
    for window in range(windows):
        if deployed[window]:
            changed = rng.choice(30, 3, replace=False)
            costs = costs.copy()
            costs[changed] *= np.exp(rng.normal(0, 0.7, 3))
            costs /= costs.sum()
        rows[window] = costs
    return rows


def _daily(rng: np.random.Generator, windows: int) -> FloatArray:
    """Endpoints have cycles of a day, each with a phase of its own."""
    endpoints = np.array([_costs(rng)[rng.permutation(FUNCTIONS)] for _ in range(6)])
    day = 2 * np.pi * np.arange(windows)[:, None] * WINDOW_S / 86_400
    mix = 1 + 0.5 * np.sin(day + rng.uniform(0, 2 * np.pi, 6))
    mix *= rng.gamma(2.0, 0.5, 6)
    rows = mix @ endpoints
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _bursty(rng: np.random.Generator, windows: int) -> FloatArray:
    """Batches of other work come every hour or so and take a minute to ten."""
    usual, batch = _costs(rng), _costs(rng)[rng.permutation(FUNCTIONS)]
    rows = np.empty((windows, FUNCTIONS))
    window = 0
    while window < windows:
        for work, mean_s in ((usual, 3600.0), (0.5 * usual + 0.5 * batch, 300.0)):
            length = 1 + int(rng.exponential(mean_s / WINDOW_S))
            rows[window : window + length] = work
            window += length
    return rows


def _restless(rng: np.random.Generator, windows: int) -> FloatArray:
    """Every minute on average the service turns to another of four kinds of work."""
    works = np.array([_costs(rng)[rng.permutation(FUNCTIONS)] for _ in range(4)])
    turns = np.cumsum(rng.random(windows) < WINDOW_S / 60) % 4
    return np.asarray(0.5 * works[0] + 0.5 * works[turns])


KINDS: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "stationary": _stationary,
    "deploys": _deploys,
    "daily": _daily,
    "bursty": _bursty,
    "restless": _restless,
}
"""Course of a service's profile → function that draws its shares: (windows, functions)."""
