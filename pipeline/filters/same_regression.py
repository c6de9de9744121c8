"""SameRegressionMerger: one regression that shows up in several overlapping windows (FBDetect Table 5).

A change point stays in sight of every scan whose windows hold it: first in the analysis window, later in
the historical one, where the mixture of old and new level makes what follows look like a rise again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.filters.verdict import Verdict
from pipeline.model import Candidate, FloatArray

ECHO = "same regression as in an earlier scan"
GROWN = "a regression of an earlier scan that has grown"


@dataclass(frozen=True, slots=True)
class Known:
    """A regression that an earlier scan passed on, and when that scan ended."""

    candidate: Candidate
    seen_until: float  # epoch seconds


def judge_same_regression(
    candidate: Candidate,
    known: Sequence[Known],
    *,
    recent: float,
    analysis_s: float,
    absolute: float | None,
    relative: float | None,
    gradual_since: Callable[[float], bool] | None = None,
) -> Verdict:
    """Drop a candidate that does not go beyond a regression of the same series that was passed on before.

    A known regression counts only where the candidate can be its echo: its change point lies within an
    analysis window of the candidate's, or the scan that told it had seen the candidate's too and found one
    lasting change, or the series still stood at its level just before the candidate. One that was rolled back
    in between and comes back is a new regression. A long-term candidate is the rise over all that follows, to
    which every known regression since it began has contributed.

    Beyond means by the detection threshold at least, and by half of the candidate's own change, since both
    levels are estimates.

    Args:
        candidate: A change point of this scan.
        known: Regressions of the same series from earlier scans.
        recent: Level of the series over an analysis window just before the candidate's change point.
        analysis_s: Length of the analysis window.
        absolute: The workload's absolute threshold, or None.
        relative: The workload's relative threshold, or None.
        gradual_since: Tells whether the series has grown steadily since a moment: then what lies beyond is
            the known regression still growing (``GROWN``), and no new one.
    """

    def can_echo(k: Known) -> bool:
        apart = candidate.change_time - k.candidate.change_time
        if (k.candidate.delta > 0) != (candidate.delta > 0):
            return False
        if candidate.kind == "long_term" and apart <= analysis_s:
            return True
        if abs(apart) <= analysis_s or (apart > 0 and candidate.change_time < k.seen_until):
            return True
        return abs(recent - k.candidate.after) < abs(recent - k.candidate.before)

    echoed = [k.candidate for k in known if can_echo(k)]
    if not echoed:
        return Verdict(True, 0.0, 0.0)
    sign = 1.0 if candidate.delta > 0 else -1.0
    reported = max((k.after for k in echoed), key=lambda level: sign * level)
    threshold = absolute if absolute is not None else (relative or 0.0) * abs(reported)
    bound = max(threshold, abs(candidate.delta) / 2)
    beyond = sign * (candidate.after - reported)
    if beyond < bound:
        return Verdict(False, beyond, bound, ECHO)
    first = min(k.change_time for k in echoed)
    # When a slow rise began is known to a day, so that one that grows may seem to have begun earlier.
    grows = first < candidate.change_time or candidate.kind == "long_term"
    if gradual_since is not None and grows and gradual_since(min(first, candidate.change_time)):
        return Verdict(False, beyond, bound, GROWN)
    return Verdict(True, beyond, bound)


def is_gradual(values: FloatArray, weights: FloatArray, *, change: int) -> bool:
    """Tell whether a steady rise from the start on explains a series better than one step.

    The step may lie anywhere: where noise put the change point, it would explain less than it can. For that
    choice it pays by Schwarz's criterion. The points that count there are those that are independent: what
    a step leaves of a rise, or of noise that wanders, is autocorrelated, and speaks for the step that much
    less.

    Args:
        values: (windows,) from the first regression on; NaN where the weight is 0.
        weights: (windows,).
        change: Index of the change that is asked about: where it has no data on either side, nothing is told.
    """
    known = weights > 0
    if known[:change].sum() < 2 or known[change:].sum() < 2:
        return False
    y, w, t = values[known], weights[known], np.flatnonzero(known).astype(np.float64)
    y, t = y - np.average(y, weights=w), t - np.average(t, weights=w)
    left, moment = np.cumsum(w)[1:-2], np.cumsum(w * y)[1:-2]  # two points at least on either side
    place = 2 + int((moment**2 * (1 / left + 1 / (w.sum() - left))).argmax())
    before, after = np.average(y[:place], weights=w[:place]), np.average(y[place:], weights=w[place:])
    line = np.sqrt(w) * (y - t * (w * t * y).sum() / (w * t * t).sum())
    step = np.sqrt(w) * (y - np.where(np.arange(len(y)) < place, before, after))
    rise_left, step_left = float((line**2).sum()), float((step**2).sum())
    if step_left <= 0:
        return False
    shared = min(max(float((step[1:] * step[:-1]).sum()) / step_left, 0.0), 1.0)
    points = len(y) * (1 - shared) / (1 + shared)
    return bool(points * np.log(rise_left / step_left) < np.log(max(points, 1.0)))
