"""Two groups of what may have moved: some moved, each for itself, and the others stayed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray

_STEPS = 100
"""Steps of fitting: twice as many change nothing that is printed."""

_LEAST = 1e-3
"""Spread that fitting begins with where all are equal."""


@dataclass(frozen=True, slots=True)
class TwoGroups:
    """Logarithms of factors: of a part that moved, normal around 0, and of the others 0; sampling aside."""

    moved: float  # part that moved, 0 to 1
    spread: float  # standard deviation of the logarithm of the factor by which it did

    def means(self, logarithms: FloatArray, variances: FloatArray) -> FloatArray:
        """Return the posterior mean of each logarithm, from what was seen of it."""
        return self.responsibilities(logarithms, variances) * logarithms * self.kept(variances)

    def responsibilities(self, logarithms: FloatArray, variances: FloatArray) -> FloatArray:
        """Return how likely each moved."""
        kept = self.kept(variances)
        squares = logarithms**2 / variances
        with np.errstate(divide="ignore", over="ignore"):
            odds = self.moved / (1 - self.moved) * np.sqrt(1 - kept) * np.exp(squares * kept / 2)
            return np.asarray(1 / (1 + 1 / odds))

    def kept(self, variances: FloatArray) -> FloatArray:
        """Return which part of what was seen of each is its own, and not sampling, if it moved."""
        return np.asarray(self.spread**2 / (self.spread**2 + variances))


def fit_two_groups(logarithms: FloatArray, variances: FloatArray) -> TwoGroups:
    """Return the two groups that are most likely (expectation-maximisation).

    Args:
        logarithms: (values,)
        variances: (values,) of sampling.
    """
    groups = TwoGroups(0.5, max(float(logarithms.std()), _LEAST))
    for _ in range(_STEPS):
        likely, kept = groups.responsibilities(logarithms, variances), groups.kept(variances)
        squares = (logarithms * kept) ** 2 + variances * kept
        spread = float((likely * squares).sum() / max(likely.sum(), 1e-9)) ** 0.5
        groups = TwoGroups(min(max(float(likely.mean()), 1e-6), 1 - 1e-6), spread)
    return groups
