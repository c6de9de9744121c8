"""Random numbers by purpose: every part of a simulation has a generator of its own."""

from __future__ import annotations

import math

import numpy as np
import xxhash


class Streams:
    """Child generators of one seed, found by name instead of by order.

    Since a stream depends only on the seed and its name, an additional injection, stack or metric leaves
    every other draw unchanged. With a ``scope``, such as one of several services, the same names give other
    generators.
    """

    def __init__(self, seed: int, scope: str = "") -> None:
        self._seed = seed
        self._scope = (scope,) if scope else ()

    @property
    def common(self) -> Streams | None:
        """The streams that all scopes share; None without a scope."""
        return Streams(self._seed) if self._scope else None

    def of(self, *names: str) -> np.random.Generator:
        """Return the generator of a purpose, at its beginning."""
        digest = xxhash.xxh64_intdigest("\x1f".join((*self._scope, *names)).encode())
        key = (digest >> 32, digest & 0xFFFF_FFFF)
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key))


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw from [low, high] so that every factor of two is as likely as any other. Both are positive."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))
