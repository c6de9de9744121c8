"""Chance that a change causes a regression, by the share of production that it touches.

A logistic regression on the logarithm of the touched share, learned from past changes of which it is known
whether production reported a regression of theirs. Few changes regress, so a normal prior draws both weights
towards what is assumed: with no example it is that alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.model import FloatArray

SMALLEST_SHARE = 1e-5
"""Smallest share that is distinguished: code that does not run yet may run once it is changed."""

_AT = np.log(0.01)
"""Logarithm of the share at which the first weight is the log odds."""

_MEAN = np.array([special.logit(0.01), 0.5])
"""Of the prior: of changes that touch 1 % of the samples one of a hundred regresses; ServiceLab signals 0.3 %
of those it tests. Odds rise with the root of the share."""

_DEVIATION = np.array([1.5, 0.5])

_STEPS = 50


@dataclass(frozen=True, slots=True)
class Example:
    """A past change: the share of production that it touched, and whether it regressed."""

    share: float
    regressed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Chance:
    """The learned model: the likeliest weights, and the number of examples."""

    weights: FloatArray  # (2,)
    examples: int
    regressions: int

    def of(self, share: float) -> float:
        """Return how likely a change that touches a share is to regress."""
        return float(special.expit(_rows([share])[0] @ self.weights))


def learn_chance(examples: Sequence[Example]) -> Chance:
    """Learn from past changes; without examples return the prior."""
    rows = _rows([example.share for example in examples])
    regressed = np.array([example.regressed for example in examples], dtype=np.float64)
    precision = np.diag(1.0 / _DEVIATION**2)
    weights = _MEAN.copy()
    for _ in range(_STEPS):
        expected = special.expit(rows @ weights)
        slope = rows.T @ (regressed - expected) - precision @ (weights - _MEAN)
        curvature = (rows * (expected * (1.0 - expected))[:, None]).T @ rows + precision
        step = np.linalg.solve(curvature, slope)
        weights = weights + step / max(1.0, float(np.abs(step).max()))
        if float(np.abs(step).max()) < 1e-9:
            break
    return Chance(weights, len(examples), int(regressed.sum()))


def _rows(shares: Sequence[float]) -> FloatArray:
    logs = np.log(np.maximum(np.array(shares, dtype=np.float64), SMALLEST_SHARE)) - _AT
    return np.column_stack([np.ones(len(logs)), logs])
