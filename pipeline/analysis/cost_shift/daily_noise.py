"""How much sums of stacks change from hours to hours, and from day to day, without anybody's change.

A week of the same hours says little of one sum: seven numbers, and fewer of a young service. All subroutines
of a service together say much of what is usual, and the two are weighed by empirical Bayes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy import special

from pipeline.analysis.statistics.robust import NORMAL_QUARTILE
from pipeline.analysis.statistics.root import root_between
from pipeline.model import FloatArray

MIN_DAYS = 3
"""Days from which on their differences say something of one sum of stacks."""

_MANY = 100
"""Stacks or labels from which on their median is no matter of a few that changed."""

_SEVERAL = 30
"""Labels from which on their median is known to a fifth."""

_LARGEST = 256
"""Labels that the drift is learnt from, those with most samples: of the others sampling is the noise."""

_ENOUGH = 30.0
"""Samples from which on a count is about normal."""

_LEAST_DEGREES, _MOST_DEGREES = 0.1, 100.0
"""Below, a prior says nothing; above, it says all."""


Numbers = TypeVar("Numbers", float, FloatArray)
"""Of one sum of stacks, or of many."""


class Weighed(NamedTuple, Generic[Numbers]):
    """A standard error that days and a prior agree on, with its degrees of freedom."""

    error: Numbers
    degrees_of_freedom: float


@dataclass(frozen=True, slots=True)
class DailyNoise:
    """What a service's subroutines are seen to do from day to day, beyond sampling.

    ``drift`` is the typical relative standard deviation. ``degrees_of_freedom`` says how similar subroutines
    are in it: knowing all of them is worth that many more days of one of them; 0 where too little is known.
    """

    drift: float = 0.0
    degrees_of_freedom: float = 0.0

    def weigh(self, *, sampled: Numbers, observed: Numbers, expected: Numbers, days: int) -> Weighed[Numbers]:
        """Return the standard error of a change of some stacks' share, and its degrees of freedom.

        Args:
            sampled: What sampling alone makes.
            observed: What the days differ by.
            expected: The share.
            days: How many days there are; below MIN_DAYS, only the prior counts.
        """
        likely = sampled**2 + (self.drift * expected) ** 2
        if days < MIN_DAYS:
            return Weighed(likely**0.5, math.inf)
        own = days - 1
        degrees_of_freedom = own + self.degrees_of_freedom
        variance = (own * observed**2 + self.degrees_of_freedom * likely) / degrees_of_freedom
        return Weighed(variance**0.5, degrees_of_freedom)


def sampling_dispersion(
    expected: FloatArray, after: FloatArray, samples_before: FloatArray, samples_after: FloatArray
) -> float:
    """Return the variance of a stack's count in units of what independent samples make; at least 1.

    Servers differ, and requests come in bursts. The median over stacks leaves out what truly changed.

    Args:
        expected: (rows, stacks) shares before, as they should be after.
        after: (rows, stacks) shares after.
        samples_before: (rows,) how many samples the shares before are of.
        samples_after: (rows,) the same of those after.
    """
    usable = expected * samples_before[:, None] >= _ENOUGH
    if usable.sum() < _MANY:
        return 1.0
    variance = expected * (1 / samples_before + 1 / samples_after)[:, None]
    scores = np.abs(after - expected)[usable] / np.sqrt(variance[usable])
    return max((float(np.median(scores)) / NORMAL_QUARTILE) ** 2, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Movement:
    """What the labels of a service did from one span of time to the next."""

    before: FloatArray  # (labels,) samples
    after: FloatArray  # (labels,)
    total_before: float
    total_after: float


def moving_dispersion(movements: Sequence[Movement]) -> float:
    """Return the variance of counts in units of what independent samples make, as labels move; at least 1.

    Requests come in bursts, and a load drifts: what labels do from one span to the next holds both, at the
    scale of the spans. Most labels have not changed even where one has, and the median leaves those out that
    did. What became of all labels together, as the whole grew or shrank, is taken out by their median too.

    Args:
        movements: Between spans as long as those that are compared; the one of the change may be among them.
    """
    scores = []
    for one in movements:
        if not one.total_before or not one.total_after:
            continue
        before, after = one.before / one.total_before, one.after / one.total_after
        # What nearly every sample holds cannot move, and would pass for quiet.
        usable = (one.before + one.after >= 2 * _ENOUGH) & (one.before > 0) & (before < 0.5)
        if not usable.any():
            continue
        expected = before[usable] * float(np.median(after[usable] / before[usable]))
        variance = expected * (1 - expected) * (1 / one.total_before + 1 / one.total_after)
        scores.append(np.abs(after[usable] - expected) / np.sqrt(variance))
    known = np.concatenate(scores) if scores else np.zeros(0)
    if len(known) < _SEVERAL:
        return 1.0
    return max((float(np.median(known)) / NORMAL_QUARTILE) ** 2, 1.0)


def fit_daily_noise(
    expected: FloatArray,
    after: FloatArray,
    samples_before: FloatArray,
    samples_after: FloatArray,
    dispersion: float,
) -> DailyNoise:
    """Return how much labels differ from day to day: a prior for the variance of any sum of stacks.

    The variances of all labels are taken for draws from a scaled inverse chi-squared distribution, whose
    degrees of freedom come from how much the variances' logarithms differ (Smyth, Statistical Applications
    in Genetics and Molecular Biology 3, 2004, section 6.2).

    Of a young service the change's own span must do: most labels have not changed there, but what the hours
    of the day make of them passes for noise.

    Args:
        expected: (1 + days, labels) shares before, as they should be after; row 0 is the change.
        after: (1 + days, labels) shares after.
        samples_before: (1 + days,) how many samples the shares before are of.
        samples_after: (1 + days,) the same of those after.
        dispersion: As ``sampling_dispersion`` returns it.
    """
    days = len(expected) - 1
    repeated = days >= MIN_DAYS
    rows = slice(1, None) if repeated else slice(0, 1)
    expected, after = expected[rows], after[rows]
    mean = expected.mean(axis=0)
    enough = mean * float(samples_before[rows].mean()) >= _ENOUGH
    # What nearly every sample holds cannot move, and would pass for quiet.
    usable = np.flatnonzero(enough & (mean < 0.5) & (after.sum(axis=0) > 0))
    chosen = usable[np.argsort(-mean[usable], kind="stable")[:_LARGEST]]
    if len(chosen) < _MANY:
        return DailyNoise()
    expected, after, mean = expected[:, chosen], after[:, chosen], mean[chosen]
    usual = expected * (after.sum(axis=0) / expected.sum(axis=0)) if repeated else expected
    own = days - 1 if repeated else 1
    observed = ((after - usual) ** 2).sum(axis=0) / own
    per_sample = (1 / samples_before + 1 / samples_after)[rows, None]
    sampled = dispersion * (usual * per_sample).mean(axis=0)
    middle = 2 * float(special.gammaincinv(own / 2, 0.5)) / own
    drift = math.sqrt(max(float(np.median((observed / middle - sampled) / mean**2)), 0.0))
    if not repeated:
        return DailyNoise(drift)
    logs = np.log(np.maximum(observed, np.finfo(np.float64).tiny) / (sampled + (drift * mean) ** 2))
    return DailyNoise(drift, _degrees_of_freedom(float(logs.var(ddof=1)), own))


def _degrees_of_freedom(variance: float, own: int) -> float:
    """Return the prior's degrees of freedom if logarithms of variances of ``own`` each differ so much."""
    excess = variance - float(special.polygamma(1, own / 2))
    if excess <= float(special.polygamma(1, _MOST_DEGREES / 2)):
        return _MOST_DEGREES
    if excess >= float(special.polygamma(1, _LEAST_DEGREES / 2)):
        return 0.0
    degrees = root_between(
        lambda degrees: float(special.polygamma(1, degrees / 2)) - excess, _LEAST_DEGREES, _MOST_DEGREES
    )
    return degrees or 0.0  # 0: too few values to know
