"""The onset of a rise: the likelihood of each window to have been its first (for FBDetect §5.4.9).

Root-cause candidates are changes deployed "immediately before the regression occurred". A change point is an
estimate, exact to a window for a large step and to hours for a small one. So the closeness of a deployment is
judged by the likelihood that the series began to rise there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.statistics.blocks import block_means
from pipeline.model import BoolArray, FloatArray, IntArray

_MOST_COLUMNS = 256
"""Longest series that ramps are fitted to; longer ones are averaged in blocks."""

_LENGTHS = 12
"""Number of ramp lengths tried from each start, evenly spaced on a logarithmic scale."""

_MIN_KNOWN = 6


def onset_density(
    values: FloatArray, weights: FloatArray, allowed: BoolArray, *, slow: bool = False
) -> FloatArray:
    """Return the probability of each window to be the first of the rise, equal before the data: (windows,).

    The model is one level before and another from that window on; with ``slow`` a line leads from one to the
    other, of a length that fits best. Errors are normal, with the variance that the best fit leaves;
    autocorrelation of first order lowers the number of independent windows. The level may only change in the
    overall direction.

    Args:
        values: (windows,) of the regressed series; not looked at where the weight is 0.
        weights: (windows,), 0 = no data.
        allowed: (windows,) where the rise may have begun.
        slow: Whether the rise may take time.

    Returns:
        Sums to 1 over the allowed windows; uniform over them if the data show nothing.
    """
    even: FloatArray = allowed / max(int(allowed.sum()), 1)
    measured = weights > 0
    if measured.sum() < _MIN_KNOWN or not allowed.any():
        return even
    block = -(-len(values) // _MOST_COLUMNS) if slow else 1
    rows = np.where(measured, [values, weights], 0.0)
    (means,), (weight,) = block_means(rows[:1], rows[1:], block, partial=True)
    bases, starts = _ramps(len(means)) if slow else _steps(len(means))
    left = _residuals(means, weight, bases)
    squares = np.full(len(means), np.inf)
    np.minimum.at(squares, starts, left)
    best = int(left.argmin())
    if not np.isfinite(left[best]) or left[best] <= 0:
        return even
    independent = max(int((weight > 0).sum()) - 2, 1) / _inflation(means, weight, bases[best])
    likelihood = np.repeat(-0.5 * independent * (squares / left[best] - 1), block)[: len(values)]
    likelihood = np.where(allowed, likelihood, -np.inf)
    if not np.isfinite(likelihood).any():
        return even
    density = np.exp(likelihood - likelihood.max())
    return np.asarray(density / density.sum(), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class DeploymentConfig:
    """Delay between a deployment and its effect."""

    windows: tuple[int, ...] = (-1, 0, 1, 2)  # first window of the rise, counted from that of the deployment
    at_once: float = 0.8  # share of changes that act at once; others later, as caches fill and servers follow
    stray: float = 0.05  # chance that the model is wrong and the time no evidence: two standard errors


@dataclass(frozen=True, slots=True)
class Deployments:
    """Evidence of each deployment's time: (changes,) each.

    ``evidence`` is the logarithm of how much likelier a root cause is to be deployed then than any other
    change, whose deployment may fall anywhere in the span; ``recency`` is the likelihood as a share of the
    largest that any time has.
    """

    evidence: FloatArray
    recency: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class RiseOnset:
    """The time when a rise began, window by window."""

    density: FloatArray  # (windows,) from ``onset_density``
    first_start: float  # of the first window, epoch seconds
    resolution_s: float  # width of a window


def weigh_deployments(
    onset: RiseOnset,
    times: Sequence[float],
    *,
    allowed: int,
    delay_s: float,
    config: DeploymentConfig | None = None,
) -> Deployments:
    """Weigh the times of deployments against the onset of the rise.

    Most changes act in the window of their deployment or the next; the delay of the others is exponential.

    Args:
        onset: Of the rise.
        times: When the changes were deployed, epoch seconds.
        allowed: How many windows of the series a change could have been deployed in.
        delay_s: Mean delay of those that do not act at once.
        config: Settings.
    """
    from scipy.signal import lfilter  # slow to import, and one stage that imports this module only filters

    config = config or DeploymentConfig()
    columns = len(onset.density)
    margin = max(map(abs, config.windows))
    padded = np.pad(onset.density, margin)
    sharp = np.zeros(columns)
    for ahead in config.windows:
        sharp += padded[margin + ahead : margin + ahead + columns] / len(config.windows)
    keep = np.exp(-onset.resolution_s / delay_s)
    late = lfilter([1 - keep], [1.0, -keep], onset.density[::-1])[::-1]
    likelihood = config.at_once * sharp + (1 - config.at_once) * late
    since = np.asarray(times, dtype=np.float64) - onset.first_start
    windows = np.floor(since / onset.resolution_s).astype(np.int64)
    at = likelihood[np.clip(windows, 0, columns - 1)]
    evidence = np.log((1 - config.stray) * at * allowed + config.stray)
    top = float(likelihood.max())
    return Deployments(evidence, at / top if top > 0 else np.zeros(len(at)))


def _steps(columns: int) -> tuple[FloatArray, IntArray]:
    """Return all steps: (columns - 1, columns), and the first column of each."""
    starts = np.arange(1, columns)
    return (np.arange(columns) >= starts[:, None]).astype(np.float64), starts


def _ramps(columns: int) -> tuple[FloatArray, IntArray]:
    """Return ramps of several lengths from every start: (ramps, columns), and the first column of each."""
    lengths = np.unique(np.rint(np.geomspace(1, columns, _LENGTHS)).astype(np.int64))
    starts = np.repeat(np.arange(1, columns), len(lengths))
    spans = np.tile(lengths, columns - 1)
    bases = np.clip((np.arange(columns) + 1 - starts[:, None]) / spans[:, None], 0.0, 1.0)
    return bases, starts


def _residuals(means: FloatArray, weight: FloatArray, bases: FloatArray) -> FloatArray:
    """Return the weighted residual sum of squares of each basis; infinite where there is nothing to fit."""
    total = weight.sum()
    centred = means - (means @ weight) / total
    shifted = bases - (bases @ weight)[:, None] / total
    power = (shifted**2) @ weight
    product = shifted @ (weight * centred)
    whole = float(weight @ centred**2)
    up = 1.0 if product[np.abs(product).argmax()] >= 0 else -1.0
    fits = (power > 1e-12 * total) & (product * up > 0)
    gain = np.divide(product**2, power, out=np.zeros(len(power)), where=fits)
    return np.where(power > 1e-12 * total, whole - gain, np.inf)


def _inflation(means: FloatArray, weight: FloatArray, basis: FloatArray) -> float:
    """Return by how much autocorrelation lowers the number of independent windows, 1 at least."""
    total = weight.sum()
    centred, shifted = means - (means @ weight) / total, basis - (basis @ weight) / total
    slope = float(shifted @ (weight * centred)) / float((shifted**2) @ weight)
    rest = np.where(weight > 0, centred - slope * shifted, 0.0)
    power = float(rest @ rest)
    if power <= 0:
        return 1.0
    first = float(np.clip(rest[1:] @ rest[:-1] / power, 0.0, 0.9))
    return (1 + first) / (1 - first)
