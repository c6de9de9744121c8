"""Posterior of the commit at which a step lies, or of no step, given noisy measurements.

Version 0 is the code before the range, version i that with commit i. If commit c makes the step, versions
before c have one level and those from c on another; otherwise all have the same. Levels and the variance of
the noise are unknown, and integrated over: the evidence for a split against no step is the Bayes factor of
Student's t (Gönen, Johnson et al. 2005), for steps of at least the threshold whose size, in units of the
noise, is spread evenly over the logarithm. As smaller steps do not count, measurements can show that there is
none. Single measurements may be outliers: they are first drawn towards the likeliest levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import special

from pipeline.analysis.statistics.robust import MAD_TO_DEVIATION
from pipeline.model import FloatArray, IntArray

_SIZES = 2.0 ** np.arange(15)
"""Typical sizes of a step, as multiples of the smallest one; each is equally likely."""

_SMALLEST_SIZE = 0.5
"""Smallest step in standard deviations of one measurement: less would take over a hundred measurements."""

_SMALLEST_NOISE = 1e-9
"""Least noise as a share of the largest value: counts of operations have none; variances must exceed 0."""

_SMALLEST_TAIL = 1e-200
"""Under it the first term of the tail's series is all of it."""

_ROUNDS = 3
"""Rounds of estimating levels and outliers."""


@dataclass(frozen=True, slots=True)
class BeliefConfig:
    """Assumptions before any measurement."""

    none: float = 0.1
    """Probability that no commit of the range makes a step."""
    threshold: float = 0.0
    """Smallest step that counts, relative to the level before."""
    direction: Literal["up", "down", "any"] = "up"
    """Direction of the step."""
    outlier: float = 3.0
    """Standard deviations from its level beyond which a measurement counts no further."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredVersions:
    """All measurements so far.

    Args:
        version: (measurements,) from 0, the code before the range, to the number of commits.
        value: (measurements,) in any unit.
    """

    version: IntArray
    value: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The posterior, and the levels of each split.

    Args:
        none: Probability that there is no step.
        commits: (commits,) probability that it is each; with none they add up to 1.
        before: (commits,) mean of the versions before the commit; of all versions where it is not known.
        after: (commits,) mean of those from it on.
        weights: (commits, 2) measurements before and from it on.
        variance: (commits,) of the noise, if the commit makes the step.
        level: Mean of all measurements.
        none_variance: Of the noise, if there is no step.
        degrees_of_freedom: With which variances are estimated.
    """

    none: float
    commits: FloatArray
    before: FloatArray
    after: FloatArray
    weights: FloatArray
    variance: FloatArray
    level: float
    none_variance: float
    degrees_of_freedom: float


def believe(measured: MeasuredVersions, prior: FloatArray, config: BeliefConfig) -> Belief:
    """Return the posterior over the commits.

    Args:
        measured: At least three measurements.
        prior: (commits,) how likely each is if one of them is it; its sum is 1.
        config: The rest of the prior.
    """
    belief = None
    for _ in range(_ROUNDS):
        values = _without_outliers(measured, belief, config.outlier)
        belief = _of(measured.version, values, prior, config)
    assert belief is not None
    return belief


def _of(version: IntArray, values: FloatArray, prior: FloatArray, config: BeliefConfig) -> Belief:
    versions, count = len(prior) + 1, float(len(values))
    level = float(values.mean())
    left = values - level
    smallest = max(count * (_SMALLEST_NOISE * float(np.abs(values).max())) ** 2, 1e-300)
    total = max(float((left**2).sum()), smallest)
    counts = np.cumsum(np.bincount(version, minlength=versions))[:-1].astype(np.float64)
    sums = np.cumsum(np.bincount(version, weights=left, minlength=versions))[:-1]
    weights = np.column_stack([counts, count - counts])
    split = weights.all(axis=1)
    before = np.divide(sums, counts, out=np.zeros_like(sums), where=split)
    after = np.divide(-sums, count - counts, out=np.zeros_like(sums), where=split)
    shared = weights.prod(axis=1) / count
    squares = np.maximum(total - shared * (after - before) ** 2, smallest)
    degrees = max(count - 2.0, 1.0)
    noise = np.sqrt(squares / degrees)
    step = _Steps((after - before) / noise, shared, config.threshold * np.abs(before + level) / noise)
    evidence = np.where(split, _evidence(step, degrees, config.direction), 0.0)
    with np.errstate(divide="ignore"):
        log_mass = np.append(np.log(prior) + np.log1p(-config.none) + evidence, np.log(config.none))
    mass = np.exp(log_mass - log_mass.max())
    mass /= mass.sum()
    return Belief(
        float(mass[-1]),
        mass[:-1],
        before + level,
        after + level,
        weights,
        squares / degrees,
        level,
        total / max(count - 1.0, 1.0),
        degrees,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """The step at each split, in standard deviations of the residual noise: (splits,) each."""

    size: FloatArray
    shared: FloatArray  # measurements whose mean would be as exact as the difference of both levels
    smallest: FloatArray


def _evidence(steps: _Steps, degrees: float, direction: str) -> FloatArray:
    """Return the logarithm of the Bayes factor of a step at each split against none: (splits,)."""
    signs = [sign for sign in (1.0, -1.0) if direction == "any" or (sign > 0) == (direction == "up")]
    factors = [_one_sided(replace(steps, size=sign * steps.size), degrees) for sign in signs]
    return np.asarray(np.logaddexp.reduce(factors) - np.log(len(factors)))


def _one_sided(steps: _Steps, degrees: float) -> FloatArray:
    """Return the log Bayes factor, against no step, of upward steps of at least the smallest size."""
    size, shared, smallest = (values[:, None] for values in (steps.size, steps.shared, steps.smallest))
    typical = np.maximum(smallest, _SMALLEST_SIZE) * _SIZES
    spread = 1.0 + shared * typical**2
    squared = shared * size**2 / degrees
    factor = -0.5 * np.log(spread) + (degrees + 1.0) / 2.0 * (np.log1p(squared) - np.log1p(squared / spread))
    # Share of the steps of a typical size that are large enough to count: posterior over prior.
    shrunk = 1.0 - 1.0 / spread
    scale = np.sqrt(
        shrunk / np.maximum(shared, 1e-300) * (degrees / (degrees + 1.0)) * (1.0 + squared / spread)
    )
    counts = _log_tail(degrees + 1.0, (size * shrunk - smallest) / scale)
    evidence = special.logsumexp(factor + counts - special.log_ndtr(-smallest / typical), axis=1)
    return np.asarray(evidence - np.log(len(_SIZES)))


def _log_tail(degrees: float, t: FloatArray) -> FloatArray:
    """Return the logarithm of the probability below a value under Student's t, also where it underflows."""
    near = special.stdtr(degrees, np.maximum(t, -1e150))
    small = near < _SMALLEST_TAIL
    far = degrees / 2.0 * -np.log1p(np.where(small, t, 0.0) ** 2 / degrees)
    far -= np.log(degrees) + special.betaln(degrees / 2.0, 0.5)
    return np.where(small, far, np.log(np.maximum(near, _SMALLEST_TAIL)))


def _without_outliers(measured: MeasuredVersions, belief: Belief | None, outlier: float) -> FloatArray:
    """Return the values with outliers clipped: those far from the likeliest levels, or from one median."""
    best = int(belief.commits.argmax()) if belief else 0
    new = measured.version > best
    if belief is None or belief.commits[best] <= belief.none or new.all() or not new.any():
        fitted = np.full(len(new), np.median(measured.value))
    else:
        fitted = np.where(new, np.median(measured.value[new]), np.median(measured.value[~new]))
    left = measured.value - fitted
    spread = (
        MAD_TO_DEVIATION * float(np.median(np.abs(left))) * np.sqrt(len(left) / max(len(left) - 2.0, 1.0))
    )
    # If most values equal their level, the MAD is 0: use the standard deviation.
    reach = outlier * (spread or float(left.std()))
    result: FloatArray = fitted + np.clip(left, -reach, reach)
    return result
