"""Set-up metrics that explain a regression better than the step of any change could.

A hit ratio that falls, or a queue that fills, makes code cost more without any change of it. Such a metric
has a change point of its own at the same time; the decisive evidence is that the series also follows the
metric's other movements. Two models of the series are compared: a level plus a multiple of the metric, and
two levels that meet where a change was deployed. The metric explains the regression if its model is better by
strong evidence (Kass and Raftery, JASA 1995: 2 log B of 6 at least) for as many independent windows as the
correlation of the residuals leaves, the choice among metrics taken off; and if the metric's own step accounts
for most of the regression's. A gate that a change opened steps with its deployment and explains no more than
that: then the change is named, as ever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray

STRONG = 6.0
"""Twice the logarithm of the Bayes factor from which on evidence is strong (Kass and Raftery 1995, §3.2)."""

MOST = 0.7
"""Share of the regression's step that is most of it, as in deduplication; as much more is too much."""

_LEAST_WINDOWS = 12


@dataclass(frozen=True, slots=True)
class Fit:
    """Fit of a series to a set-up metric."""

    evidence: float  # twice the log likelihood ratio against the best step of a change, the search taken off
    correlation: float
    explained: float  # share of the regression's step that the metric's own step makes

    def explains(self, suspected: float) -> bool:
        """Return whether the metric is the likely explanation.

        Args:
            suspected: Confidence in changes by all other evidence, which the evidence for the metric must
                outweigh.
        """
        odds = min(max(suspected, 0.5), 1 - 1e-9)
        needed = STRONG + 2 * math.log(odds / (1 - odds))
        return self.evidence >= needed and MOST <= self.explained <= 1 / MOST


def fit_metric(
    values: FloatArray,
    weights: FloatArray,
    metric: FloatArray,
    *,
    split: int,
    deployed: Sequence[float],
    tried: int,
) -> Fit | None:
    """Return the fit of a series to a metric, against steps at deployments; None if it cannot be computed.

    Args:
        values: (windows,) the regressed series.
        weights: (windows,), 0 = no data.
        metric: (windows,), NaN = no data.
        split: First window of the regression.
        deployed: When changes were deployed, in windows: 2.5 is the middle of the third.
        tried: How many metrics are compared.
    """
    rows = np.flatnonzero((weights > 0) & np.isfinite(metric) & np.isfinite(values))
    after = rows >= split
    if len(rows) < _LEAST_WINDOWS or not 0 < after.sum() < len(rows):
        return None
    y, x, w = values[rows], metric[rows], weights[rows]
    slope, followed = _regression(y, x, w)
    rise, moved = (_mean(v[after], w[after]) - _mean(v[~after], w[~after]) for v in (y, x))
    if not slope or not rise:
        return None
    stepped = y - _mean(y, w)
    for begin in {edge for at in deployed for edge in (math.floor(at), at, math.ceil(at))}:
        later = np.clip(rows + 1.0 - begin, 0.0, 1.0)
        if np.ptp(later):
            _, residual = _regression(y, later, w)
            stepped = min(stepped, residual, key=lambda rest: float(w @ rest**2))
    losses = [float(w @ rest**2) for rest in (stepped, followed)]
    if min(losses) <= 1e-12 * float(w @ (y - _mean(y, w)) ** 2):  # rounding: nothing is left to compare
        return None
    better = followed if losses[1] < losses[0] else stepped
    evidence = _independent(better * np.sqrt(w)) * math.log(losses[0] / losses[1]) - 2 * math.log(tried)
    whole = float(w @ (y - _mean(y, w)) ** 2)
    correlation = math.copysign(math.sqrt(max(1 - losses[1] / whole, 0.0)), slope)
    return Fit(evidence, correlation, slope * moved / rise)


def _regression(y: FloatArray, x: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
    """Return the slope of weighted least squares, 0 where x is constant, and the residuals."""
    away, risen = x - _mean(x, w), y - _mean(y, w)
    scale = float(w @ away**2)
    if scale <= 1e-18 * float(w @ x**2):
        return 0.0, risen
    slope = float(w @ (away * risen)) / scale
    return slope, risen - slope * away


def _mean(values: FloatArray, weights: FloatArray) -> float:
    return float(np.average(values, weights=weights))


def _independent(residuals: FloatArray) -> float:
    """Return the effective number of independent windows, by their autocorrelation at lag 1."""
    rest = residuals - residuals.mean()
    scale = float(rest @ rest)
    correlation = float(rest[1:] @ rest[:-1]) / scale if scale else 0.0
    correlation = min(max(correlation, 0.0), 0.99)
    return len(rest) * (1 - correlation) / (1 + correlation)
