"""The daily cycle of many series at once: harmonics fitted by weighted least squares over the history.

A service's mix follows its users' day. What the day explains is neither noise nor change, so the detector
compares a series with what it did at the same hours before. Only a significant cycle is taken out. All
series share their moments in time, so that one matrix product fits all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from pipeline.model import FloatArray

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class CycleConfig:
    """Settings of the daily cycle."""

    harmonics: int = 3  # of the day; KDD 2018 §2.2.1 chooses the order per series, few do for a level's sake
    significance: float = 0.01  # of the cycle as a whole
    min_days: float = 3.0  # of history: fewer cannot tell a cycle from a coincidence
    min_points: int = 8  # a day, so that three harmonics are not fitted to as many points
    outlier: float = 4.0  # standard deviations at which a point is clipped before the fit is made again


def fit_daily_cycle(
    values: FloatArray,
    weights: FloatArray,
    variance: FloatArray,
    *,
    start: float,
    resolution_s: float,
    windows: int,
    config: CycleConfig | None = None,
) -> FloatArray:
    """Return each series' daily cycle around its level, carried on beyond the history: (series, windows).

    Args:
        values: (series, history); what has weight 0 is not looked at.
        weights: (history,) or (series, history): a point's variance is ``variance`` / weight.
        variance: (series,) of a point of weight 1.
        start: Time of the first point, epoch seconds.
        resolution_s: Time between points.
        windows: How far to carry it on, the history included.
        config: Settings.

    Returns:
        What to subtract from a value; 0 for series without a significant cycle, and for all where the
        history is too short or too coarse.
    """
    config = config or CycleConfig()
    nothing = np.zeros((len(values), windows))
    history = values.shape[1]
    short = history * resolution_s < config.min_days * DAY_S
    if short or DAY_S / resolution_s < config.min_points or not len(values):
        return nothing
    angles = 2 * np.pi * ((start + resolution_s * np.arange(windows)) % DAY_S) / DAY_S
    waves = [wave(k * angles) for k in range(1, config.harmonics + 1) for wave in (np.sin, np.cos)]
    terms = np.stack([np.ones(windows), *waves], axis=1)
    known = np.where(weights > 0, values, 0.0)
    coefficients, gain = _least_squares(known, weights, terms[:history])
    bound = stats.chi2.isf(config.significance, 2 * config.harmonics)
    cyclic = np.flatnonzero(gain > bound * np.maximum(variance, 1e-300))
    if not len(cyclic):
        return nothing
    own = weights if weights.ndim == 1 else weights[cyclic]
    fitted = coefficients[cyclic] @ terms[:history].T
    with np.errstate(divide="ignore"):
        reach = config.outlier * np.sqrt(variance[cyclic, None] / np.maximum(own, 0.0))
    clipped = np.clip(known[cyclic], fitted - reach, fitted + reach)
    coefficients, _ = _least_squares(clipped, own, terms[:history])
    nothing[cyclic] = coefficients[:, 1:] @ terms[:, 1:].T
    return nothing


def _least_squares(values: FloatArray, weights: FloatArray, terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return coefficients (series, terms), and by how much the waves lower the weighted squared error."""
    count = terms.shape[1]
    if weights.ndim == 1:
        normal = (terms * weights[:, None]).T @ terms
        right = (values * weights) @ terms
        ridge = 1e-9 * np.trace(normal) / count + 1e-300
        coefficients: FloatArray = np.linalg.solve(normal + ridge * np.eye(count), right.T).T
        mass = np.full(len(values), weights.sum())
    else:
        products = (terms[:, :, None] * terms[:, None, :]).reshape(len(terms), -1)
        normals = (weights @ products).reshape(len(values), count, count)
        right = (values * weights) @ terms
        ridges = 1e-9 * np.trace(normals, axis1=1, axis2=2) / count + 1e-300
        coefficients = np.linalg.solve(
            normals + ridges[:, None, None] * np.eye(count), right[:, :, None]
        )[:, :, 0]
        mass = weights.sum(axis=1)
    explained = (coefficients * right).sum(axis=1)
    level = np.divide(right[:, 0] ** 2, mass, out=np.zeros(len(values)), where=mass > 0)
    return coefficients, explained - level
