"""Signs of a dependent wild bootstrap (Shao 2010): one a block of similar periods."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.model import FloatArray, IntArray

_AT_ONCE = 250
"""Draws in memory at a time."""


def dependent_signs(
    residuals: FloatArray, old: int, rng: np.random.Generator, draws: int
) -> Iterator[FloatArray]:
    """Yield signs (periods, draws), in parts; periods of a block have the same one.

    Args:
        residuals: (periods,) of the old release, then of the new one.
        old: How many are of the old release.
        rng: Where the signs come from.
        draws: How many there are.
    """
    blocks = _blocks(residuals, old)
    for start in range(0, draws, _AT_ONCE):
        width = min(_AT_ONCE, draws - start)
        signs = 2.0 * rng.integers(0, 2, (int(blocks[-1]) + 1, width)).astype(np.float64) - 1.0
        yield signs[blocks]


def memory(parts: tuple[FloatArray, ...]) -> float:
    """Return how many periods say as much as one independent one: the summed autocorrelations, 1 at least.

    Sums stop at the first lag whose autocorrelation is within its noise (Geyer 1992).

    Args:
        parts: Of each release, (periods,) residuals.
    """
    squares = max(sum(float(part @ part) for part in parts), np.finfo(np.float64).tiny)
    noise = 2.0 / np.sqrt(sum(map(len, parts)))
    total = 1.0
    for lag in range(1, min(map(len, parts)) // 10):
        correlation = sum(float(part[:-lag] @ part[lag:]) for part in parts) / squares
        if correlation < noise:
            break
        total += 2.0 * correlation
    return total


def _blocks(residuals: FloatArray, old: int) -> IntArray:
    """Return the number of each period's block; a block is of one release."""
    parts = residuals[:old], residuals[old:]
    similar = memory(parts)
    # Blocks of twice the memory, but a tenth of the shorter release at most, so that there are enough.
    length = 1 if similar == 1.0 else int(max(1, min(np.ceil(2.0 * similar), min(map(len, parts)) // 10)))
    before = np.arange(old) // length
    after = np.arange(len(residuals) - old) // length
    return np.asarray(np.concatenate([before, before[-1] + 1 + after]), np.int64)
