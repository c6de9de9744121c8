"""The suspects of a regression that continuous benchmarks or production show (FBDetect §6.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.model import FloatArray

_OLD, _NEW = 75, 25
"""Percentiles of the old level and of the new one (§6.2)."""

_SPREAD_EVENLY = 0.1
"""Share of the prior that suspects leave to all commits: lists of suspects lack the cause at times."""


def suspect_range(values: FloatArray, split: int, *, up: bool = True) -> tuple[int, int]:
    """Return the points that a rise lies between: the last of the old level, and the first of the new one.

    The last point before the change that is under the 75th percentile of those before, and the first after
    it that is above the 25th percentile of those after. Changes after the one and up to the other are
    suspects. It is meant for slow rises: the points between the two levels are of neither.

    Args:
        values: (points,), NaN where there is no measurement.
        split: First point of the new level, so that there are measurements before it and from it on.
        up: Whether the values rise; else they fall.
    """
    level = values if up else -values
    before, after = level[:split], level[split:]
    old = np.flatnonzero(before <= np.nanpercentile(before, _OLD))
    new = np.flatnonzero(after >= np.nanpercentile(after, _NEW))
    return int(old[-1]), split + int(new[0])


def prior_of(commits: Sequence[str], suspects: Mapping[str, float]) -> FloatArray:
    """Return how likely each commit is to make a step, before anything is measured: (commits,) of sum 1.

    Suspects share all but a tenth by their weights; the tenth is spread evenly over all commits of the
    range, or all of it if no suspect is among them.

    Args:
        commits: Ids, in order.
        suspects: Weight, above 0, of some.
    """
    even = np.full(len(commits), 1.0 / len(commits))
    weights = np.array([suspects.get(commit, 0.0) for commit in commits])
    total = float(weights.sum())
    if not total:
        return even
    return np.asarray((1.0 - _SPREAD_EVENLY) * weights / total + _SPREAD_EVENLY * even)
