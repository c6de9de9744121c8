"""Random numbers by purpose: every part of a simulation draws from a generator of its own."""

from __future__ import annotations

import math

import numpy as np
import xxhash


class Streams:
    """Child generators of one seed, found by name instead of by order.

    Since a stream depends on nothing but the seed and its name, one more injection, stack or metric leaves
    every other draw as it was.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def of(self, *names: str) -> np.random.Generator:
        """Return the generator of a purpose, at its beginning."""
        digest = xxhash.xxh64_intdigest("\x1f".join(names).encode())
        key = (digest >> 32, digest & 0xFFFF_FFFF)
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key))


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw from [low, high] so that every factor of two is as likely as any other. Both are positive."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))
