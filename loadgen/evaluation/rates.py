"""Shares with their confidence intervals, and the spread of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pipeline.analysis.feedback import wilson

_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Rate:
    """``hits`` of ``of`` cases; without any case there is no value."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        """Return the share; None without cases."""
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return Wilson's interval of 95 %; None without cases.

        It keeps its coverage for few cases and for shares near 0 and 1, where the normal interval has no
        width at all (Brown, Cai and DasGupta 2001).
        """
        if not self.of:
            return None
        share = self.hits / self.of
        low, high = wilson(self.hits, self.of, _Z)
        # Rounding must not move the interval off its own share.
        return min(low, share), max(high, share)

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.hits + other.hits, self.of + other.of)


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of a set of numbers, in their own unit."""

    count: int
    median: float
    mean: float
    p90: float
    largest: float


def spread(values: Sequence[float]) -> Spread | None:
    """Return the spread of some numbers; None if there are none."""
    if not values:
        return None
    array = np.sort(np.asarray(values, dtype=np.float64))
    return Spread(
        count=len(array),
        median=float(np.median(array)),
        mean=float(array.mean()),
        p90=float(np.quantile(array, 0.9)),
        largest=float(array[-1]),
    )


def f_score(precision: float | None, recall: float | None) -> float | None:
    """Return the harmonic mean of precision and recall; None if either has no value."""
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
