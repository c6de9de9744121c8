"""Choice of the version to measure next: the one with most information on the step for its cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.experiments.bisection.belief import Belief
from pipeline.model import FloatArray, IntArray

_REPEATS = np.array([1.0, 2.0, 4.0, 8.0])
"""Largest number of measurements of one version in a row: they share the cost of its build."""

_DIVISIONS = (np.arange(32) + 0.5) / 32
"""Quantiles of the posterior whose versions are considered: a finer grid would hardly change the choice."""

_NODES = (np.arange(24) + 0.5) / 24
"""Quantiles of the outcome of a measurement."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementCosts:
    """Costs of the next measurement, in any unit.

    Args:
        run: Cost of one measurement.
        build: (versions,) cost of a build before it, 0 if built; infinite if the version cannot be measured.
    """

    run: float
    build: FloatArray


def next_version(belief: Belief, costs: MeasurementCosts) -> int | None:
    """Return the version to measure next, or None if none can be.

    A version is of the old level, of the new one, or there is no step. A measurement distinguishes these
    better, the further the levels are apart in units of the uncertainty of noise and levels. The information
    gained is the mutual information of both, by that version's expected values.

    Args:
        belief: The posterior so far.
        costs: Of each version.
    """
    versions = _candidates(belief, costs)
    if not len(versions):
        return None
    spent = costs.build[versions, None] + costs.run * _REPEATS
    rate = (information(belief, versions) / spent).max(axis=1)
    return int(versions[rate.argmax()])


def _candidates(belief: Belief, costs: MeasurementCosts) -> IntArray:
    """Return the versions to choose from: those built, and versions at even quantiles of the posterior."""
    able = np.flatnonzero(np.isfinite(costs.build))
    built = able[costs.build[able] == 0]
    # The probability that a version has the new level rises with it.
    new = np.append(0.0, np.cumsum(belief.commits))[able]
    at = np.searchsorted(new, new[-1] * _DIVISIONS) if len(able) else able
    result: IntArray = np.union1d(built, able[np.minimum(at, len(able) - 1)])
    return result


def information(belief: Belief, versions: IntArray) -> FloatArray:
    """Return the information that repeated measurements give on the step, in nats: (versions, repeats)."""
    shares, means, levels = (part[versions] for part in _components(belief))
    noise = float(belief.commits @ belief.variance + belief.none * belief.none_variance)
    scale = np.sqrt(levels[:, None, :] + noise / _REPEATS[None, :, None])  # (versions, repeats, components)
    degrees = belief.degrees_of_freedom
    node = special.stdtrit(degrees, _NODES)
    drawn = means[:, None, :, None] + scale[..., None] * node  # (versions, repeats, drawn from, nodes)
    distance = (drawn[..., None] - means[:, None, None, None, :]) / scale[:, :, None, None, :]
    density = -(degrees + 1.0) / 2.0 * np.log1p(distance**2 / degrees) - np.log(scale)[:, :, None, None, :]
    with np.errstate(divide="ignore"):
        mixture = special.logsumexp(density + np.log(shares)[:, None, None, None, :], axis=4)
    own = np.stack([density[:, :, part, :, part] for part in range(shares.shape[1])], axis=2)
    learnt = np.where(shares[:, None, :] > 0, shares[:, None, :] * (own - mixture).mean(axis=3), 0.0)
    result: FloatArray = np.maximum(learnt.sum(axis=2), 0.0)
    return result


def _components(belief: Belief) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return, for each version, probabilities, means and variances of no step, the old and the new level.

    Each is (versions, 3). A level's variance is that of its mean, and how means of likely splits differ.
    """
    mass = belief.commits
    zero = np.zeros(1)
    new = np.append(zero, np.cumsum(mass))
    old = np.append(np.cumsum(mass[::-1])[::-1], zero)
    shares = np.column_stack([np.full(len(new), belief.none), old, new])
    with np.errstate(divide="ignore", invalid="ignore"):
        before = belief.variance / np.maximum(belief.weights[:, 0], 0.5)
        after = belief.variance / np.maximum(belief.weights[:, 1], 0.5)
    mean_new, level_new = _pooled(mass, belief.after, after, new, forward=True)
    mean_old, level_old = _pooled(mass, belief.before, before, old, forward=False)
    measurements = float(belief.weights[0].sum())
    means = np.column_stack([np.full(len(new), belief.level), mean_old, mean_new])
    levels = np.column_stack([np.full(len(new), belief.none_variance / measurements), level_old, level_new])
    return shares, means, levels


def _pooled(
    mass: FloatArray, mean: FloatArray, variance: FloatArray, share: FloatArray, *, forward: bool
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of a level over the splits that give it to a version: (versions,) each."""
    centre = float(mean @ mass) / max(float(mass.sum()), 1e-300)
    moments = []
    for part in (mass * (mean - centre), mass * (variance + (mean - centre) ** 2)):
        summed = np.cumsum(part) if forward else np.cumsum(part[::-1])[::-1]
        moments.append(np.append(0.0, summed) if forward else np.append(summed, 0.0))
    positive = share > 0
    first, second = (np.divide(moment, share, out=np.zeros_like(share), where=positive) for moment in moments)
    return first + centre, np.maximum(second - first**2, 1e-300)
