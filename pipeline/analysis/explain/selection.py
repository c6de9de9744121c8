"""Selection of causes: the largest unexplained change first, and no cause that the others make needless.

A tree scan (Kulldorff, Biometrics 59, 2003), taken again after each find as sequential scans are (Zhang et
al., 2010). Of nested sets the change itself says which: a leaf that got dearer stands out more than its
callers, whose other work stayed; where everything below a caller rose by one factor, the caller does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.explain.cause_sets import CauseSets
from pipeline.model import BoolArray, FloatArray, IntArray

MOST_CAUSES = 60
"""Causes of one cluster beyond which nothing is explained any more, but listed."""

_SWEEPS = 12
"""Rounds of the fit; overlapping causes are fitted to a thousandth after a few."""

_SETTLED = 1e-4
"""Logarithmic change of every factor below which a fit has settled."""

_LARGEST = 1e3
"""Largest factor of a cause, either way: of what hardly existed before, the amount says more."""

_NEW = 10.0
"""Times what was expected from which on the work of some stacks is new."""

_HALF = 0.5
"""Samples that keep nothing from being certain."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Expected samples of stacks under some causes."""

    samples: FloatArray  # (stacks,)
    owner: IntArray  # (stacks,) row of the cause that makes it what it is; -1 where causes scale it
    factors: FloatArray  # (causes,) of the causes that scale their stacks; NaN for the others


def deviance(seen: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the signed Poisson deviance of sums of samples: about the square of a standard score."""
    expected, seen = np.maximum(expected, _HALF), np.maximum(seen, 0.0)
    logarithm = np.log(np.maximum(seen, _HALF) / expected)
    return np.sign(seen - expected) * np.maximum(2 * (seen * logarithm - (seen - expected)), 0.0)


def fit_causes(
    sets: CauseSets, causes: Sequence[int], seen: FloatArray, expected: FloatArray, sweeps: int = _SWEEPS
) -> Fit:
    """Return the samples expected under some causes: each one's sum is what was seen (a maximum likelihood).

    What costs more by itself may do so in each of its stacks differently, so these are as they were seen; so
    are those of new work, which has no earlier pattern to scale. Other causes scale their stacks by one
    factor, by iterative proportional fitting.
    """
    fitted, owner = expected.copy(), np.full(len(expected), -1, dtype=np.int64)
    is_own = sets.is_own
    alone = [
        bool(is_own[cause]) or _is_new(seen[sets.of(cause)], expected[sets.of(cause)]) for cause in causes
    ]
    for row in reversed(range(len(causes))):  # the first that was chosen has its stacks last
        if alone[row]:
            owner[sets.of(causes[row])] = row
    fitted[owner >= 0] = seen[owner >= 0]
    factors = np.where(alone, np.nan, 1.0)
    scaled = [
        (row, stacks[owner[stacks] < 0]) for row, stacks in enumerate(map(sets.of, causes)) if not alone[row]
    ]
    for _ in range(sweeps):
        farthest = 0.0
        for row, stacks in scaled:
            before = float(fitted[stacks].sum())
            if before < _HALF:
                continue
            wanted = factors[row] * max(float(seen[stacks].sum()), _HALF) / before
            step = float(np.clip(wanted, 1 / _LARGEST, _LARGEST)) / factors[row]
            fitted[stacks] *= step
            factors[row] *= step
            farthest = max(farthest, abs(float(np.log(step))))
        if farthest < _SETTLED:
            break
    return Fit(fitted, owner, factors)


def select_causes(
    sets: CauseSets, seen: FloatArray, expected: FloatArray, dispersion: FloatArray, least: FloatArray
) -> list[int]:
    """Return the causes that explain what was seen, the largest gain first.

    Args:
        sets: Possible causes.
        seen: (stacks,) samples after the change.
        expected: (stacks,) samples expected then.
        dispersion: (sets,) variance of a set's sum in units of its samples.
        least: (sets,) gain of log likelihood, times two, that a cause must bring: about a squared standard
            score.
    """
    causes: list[int] = []
    tried = np.zeros(len(sets), dtype=np.bool_)
    sums = sets.sums(seen)
    while len(sets) and len(causes) < MOST_CAUSES:
        fitted = fit_causes(sets, causes, seen, expected).samples
        change = np.abs(deviance(sums, sets.sums(fitted)))
        gain = np.where(tried, 0.0, change / dispersion)
        usable = gain >= least
        if not usable.any():
            break
        first = int(np.argmax(np.where(usable, gain, 0.0)))
        best = int(np.argmax(np.where(usable & _nested(sets, first), change, 0.0)))
        causes.append(best)
        tried[best] = True
    return _prune(sets, causes, seen, expected, dispersion, least)


def _nested(sets: CauseSets, number: int) -> BoolArray:
    """Return which sets lie within a set or hold it: (sets,)."""
    inside = np.zeros(sets.index.stacks)
    inside[sets.of(number)] = 1.0
    common, size = sets.sums(inside), np.diff(sets.starts)
    return np.asarray((common == size) | (common == size[number]), dtype=np.bool_)


def _prune(
    sets: CauseSets,
    causes: Sequence[int],
    seen: FloatArray,
    expected: FloatArray,
    dispersion: FloatArray,
    least: FloatArray,
) -> list[int]:
    """Leave out, the weakest first, what the other causes explain."""
    left = list(causes)
    while len(left) > 1:
        excess = [
            _gain_without(sets, left, row, seen, expected) / float(dispersion[cause] * least[cause])
            for row, cause in enumerate(left)
        ]
        weakest = int(np.argmin(excess))
        if excess[weakest] >= 1:
            break
        del left[weakest]
    return left


def _gain_without(
    sets: CauseSets, causes: Sequence[int], row: int, seen: FloatArray, expected: FloatArray
) -> float:
    others = [cause for number, cause in enumerate(causes) if number != row]
    stacks = sets.of(causes[row])
    fitted = fit_causes(sets, others, seen, expected).samples
    return float(np.abs(deviance(seen[stacks].sum()[None], fitted[stacks].sum()[None])[0]))


def _is_new(seen: FloatArray, expected: FloatArray) -> bool:
    return float(expected.sum()) * _NEW < float(seen.sum())
