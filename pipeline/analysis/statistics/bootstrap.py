"""Dependent wild bootstrap: residuals of a fit with random signs, equal within a block of similar periods.

Residuals keep their place and their size, so neither load that drifts, nor noise that grows with the load or
lasts for minutes, is taken for a change (Shao, JASA 105, 2010; Davidson and Flachaire, Journal of
Econometrics 146, 2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.statistics.long_run_noise.autoregression import memory
from pipeline.model import FloatArray, IntArray

_AT_ONCE = 250
"""Draws in memory at the same time."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """Dependence of the noise of neighbouring periods.

    Args:
        memory: Number of periods that count as one independent period; 1 if noise does not last.
        blocks: (periods,) number of each period's block; a block lies within a release.
    """

    memory: float
    blocks: IntArray

    @classmethod
    def of(cls, residuals: FloatArray, old: int) -> Dependence:
        """Return the dependence in two releases.

        Args:
            residuals: (periods,) of the old release, then of the new release. The fit allows each release its
                own costs, since a change would seem to be noise that lasts.
            old: Number of periods of the old release.
        """
        similar = memory((residuals[:old], residuals[old:]))
        # Blocks are twice as long as the memory. If few fit into a release, no p-value is small, rightly.
        length = 1 if similar == 1.0 else math.ceil(2.0 * similar)
        before = np.arange(old) // length
        after = np.arange(len(residuals) - old) // length
        return cls(similar, np.asarray(np.concatenate([before, before[-1] + 1 + after]), np.int64))


def dependent_signs(noise: Dependence, rng: np.random.Generator, draws: int) -> Iterator[FloatArray]:
    """Yield random signs, 1 or -1, in parts: (periods, draws); periods of a block have the same sign.

    Args:
        noise: The blocks.
        rng: Source of the signs.
        draws: Number of draws in all parts together.
    """
    for start in range(0, draws, _AT_ONCE):
        width = min(_AT_ONCE, draws - start)
        signs = 2.0 * rng.integers(0, 2, (int(noise.blocks[-1]) + 1, width)).astype(np.float64) - 1.0
        yield signs[noise.blocks]


def sign_flip_chance(seen: float, drawn: Iterable[FloatArray], enough: int | None = None) -> float:
    """Return the chance of a statistic at least as large as the one seen, if its signs are random.

    It is (1 + l) / (1 + n) if l of n draws are at least as large, which never understates the chance
    (Phipson and Smyth, SAGMB 9, 2010). Drawing ends after the part in which l reaches ``enough``: few draws
    show that a difference is none (Besag and Clifford, Biometrika 78, 1991, whose l / n is a little less).

    Args:
        seen: The statistic of the data.
        drawn: Parts of (draws,) statistics of the data with random signs, computed as they are asked for.
        enough: Number of draws at least as large after which drawing ends; None takes all parts.
    """
    larger, draws = 0, 0
    for part in drawn:
        larger += int((part >= seen).sum())
        draws += len(part)
        if enough is not None and larger >= enough:
            break
    return (1 + larger) / (1 + draws)
