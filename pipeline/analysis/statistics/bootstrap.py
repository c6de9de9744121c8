"""Signs of a dependent wild bootstrap (Shao 2010): one a block of similar periods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, IntArray

_AT_ONCE = 250
"""Draws in memory at a time."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """How noise of one period goes on in the next.

    Args:
        memory: How many periods say as much as one independent one; 1 where noise does not last.
        blocks: (periods,) number of each period's block, which is of one release.
    """

    memory: float
    blocks: IntArray

    @classmethod
    def of(cls, residuals: FloatArray, old: int) -> Dependence:
        """Return that of two releases.

        Args:
            residuals: (periods,) of the old release, then of the new one, of a fit that leaves each release
                its own costs: a change would seem to be noise that lasts.
            old: How many are of the old release.
        """
        similar = memory((residuals[:old], residuals[old:]))
        # Blocks of twice the memory. Where few fit into a release no chance is small, as it has to be.
        length = 1 if similar == 1.0 else math.ceil(2.0 * similar)
        before = np.arange(old) // length
        after = np.arange(len(residuals) - old) // length
        return cls(similar, np.asarray(np.concatenate([before, before[-1] + 1 + after]), np.int64))


def dependent_signs(noise: Dependence, rng: np.random.Generator, draws: int) -> Iterator[FloatArray]:
    """Yield signs (periods, draws), in parts; periods of a block have the same one.

    Args:
        noise: With the blocks.
        rng: Where the signs come from.
        draws: How many there are.
    """
    for start in range(0, draws, _AT_ONCE):
        width = min(_AT_ONCE, draws - start)
        signs = 2.0 * rng.integers(0, 2, (int(noise.blocks[-1]) + 1, width)).astype(np.float64) - 1.0
        yield signs[noise.blocks]


def memory(parts: tuple[FloatArray, ...]) -> float:
    """Return how many periods say as much as one independent one: the summed autocorrelations, 1 at least.

    Sums stop at the first lag whose autocorrelation is within its noise (Geyer 1992).

    Args:
        parts: Of each release, (periods,) residuals.
    """
    squares = max(sum(float(part @ part) for part in parts), np.finfo(np.float64).tiny)
    noise = 2.0 / np.sqrt(sum(map(len, parts)))
    total = 1.0
    for lag in range(1, max(map(len, parts)) // 10):
        correlation = sum(float(part[:-lag] @ part[lag:]) for part in parts if len(part) > lag) / squares
        if correlation < noise:
            break
        total += 2.0 * correlation
    return total
