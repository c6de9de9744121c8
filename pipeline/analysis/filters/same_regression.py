"""SameRegressionMerger: one regression that shows up in several overlapping windows (FBDetect Table 5).

A change point stays in sight of every scan whose windows hold it: first in the analysis window, later in
the historical one, where the mixture of old and new level makes what follows look like a rise again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pipeline.analysis.filters.evidence import CandidateLevels, EarlierRegression, FilterCase, FilterConfig
from pipeline.model import Candidate, Decision, FloatArray, SeriesKey

_STEP = "same_regression"

ESCALATED = "escalated"
"""Code of a known regression that has escalated: it is dropped, and updates the known one."""


def decide(candidates: Sequence[Candidate], case: FilterCase) -> list[Decision]:
    """Decide on each candidate by the regressions of its series that earlier scans passed on."""
    earlier: dict[SeriesKey, list[EarlierRegression]] = {}
    for reported in case.earlier:
        earlier.setdefault(reported.candidate.series, []).append(reported)
    return [
        judge_same_regression(
            candidate,
            earlier.get(candidate.series, ()),
            recent=recent_level(candidate, case),
            config=case.config,
            gradual_since=partial(rises_since, candidate, case.levels),
        )
        for candidate in candidates
    ]


def recent_level(candidate: Candidate, case: FilterCase) -> float:
    """Return the level over an analysis window before the change; ``before`` if it has no data."""
    levels, row = case.levels, case.levels.row(candidate)
    if row is None:
        return candidate.before
    end = levels.column(candidate.change_time)
    span = slice(max(end - round(case.config.analysis_s / levels.resolution_s), 0), end)
    weights = levels.weights[row, span]
    has_data = weights > 0
    return (
        float(np.average(levels.levels[row, span][has_data], weights=weights[has_data]))
        if has_data.any()
        else candidate.before
    )


def rises_since(candidate: Candidate, levels: CandidateLevels, since: float) -> bool:
    """Return whether a series has risen steadily since a moment, rather than stepped at the change."""
    row = levels.row(candidate)
    if row is None:
        return False
    first, change = max(levels.column(since), 0), levels.column(candidate.change_time)
    if candidate.kind == "long_term":  # where it begins, nothing steps
        change = (first + levels.levels.shape[1]) // 2
    return is_gradual(levels.levels[row, first:], levels.weights[row, first:], change=change - first)


def judge_same_regression(
    candidate: Candidate,
    former: Sequence[EarlierRegression],
    *,
    recent: float,
    config: FilterConfig,
    gradual_since: Callable[[float], bool] | None = None,
) -> Decision:
    """Drop a candidate that does not exceed a former regression of the same series.

    A known regression counts only where the candidate can be its duplicate: its change point lies within an
    analysis window of the candidate's, or the scan that reported it had seen the candidate's too and
    found one lasting change, or the series still stood at its level just before the candidate. One that was
    rolled back in between and comes back is a new regression. A long-term candidate is the rise over
    all that follows, to which every known regression since it began has contributed.

    Beyond means by the detection threshold at least, and by half of the candidate's own change, since both
    levels are estimates.

    Args:
        candidate: A change point of this scan.
        former: Regressions of the same series from earlier scans.
        recent: Level of the series over an analysis window just before the candidate's change point.
        config: The workload's threshold, and the length of its analysis window.
        gradual_since: Says whether the series has risen steadily since a moment: then what lies beyond is
            the known regression still growing (``ESCALATED``), and no new one.
    """
    duplicated = [k.candidate for k in former if _can_duplicate(candidate, k, recent, config.analysis_s)]
    if not duplicated:
        return Decision(_STEP, True)
    sign = 1.0 if candidate.delta > 0 else -1.0
    reported = max((k.after for k in duplicated), key=lambda level: sign * level)
    threshold = config.absolute if config.absolute is not None else (config.relative or 0.0) * abs(reported)
    bound = max(threshold, abs(candidate.delta) / 2)
    beyond = sign * (candidate.after - reported)
    if beyond < bound:
        return Decision(_STEP, False, beyond, bound, "duplicate")
    first = min(k.change_time for k in duplicated)
    # When a slow rise began is known to a day, so that one that grows may seem to have begun earlier.
    grows = first < candidate.change_time or candidate.kind == "long_term"
    if gradual_since is not None and grows and gradual_since(min(first, candidate.change_time)):
        return Decision(_STEP, False, beyond, bound, ESCALATED)
    return Decision(_STEP, True, beyond, bound)


def _can_duplicate(
    candidate: Candidate, reported: EarlierRegression, recent: float, analysis_s: float
) -> bool:
    """Return whether a candidate may be the same rise as a former regression."""
    apart = candidate.change_time - reported.candidate.change_time
    if (reported.candidate.delta > 0) != (candidate.delta > 0):
        return False
    if candidate.kind == "long_term" and apart <= analysis_s:
        return True
    if abs(apart) <= analysis_s or (apart > 0 and candidate.change_time < reported.seen_until):
        return True
    return abs(recent - reported.candidate.after) < abs(recent - reported.candidate.before)


def is_gradual(values: FloatArray, weights: FloatArray, *, change: int) -> bool:
    """Return whether a steady rise explains a series without any step.

    The step may lie anywhere: where noise put the change point, it would explain less than it can. For that
    choice it pays by Schwarz's criterion. The points that count there are those that are independent: what
    a step leaves of a rise, or of noise that wanders, is autocorrelated, and speaks for the step that much
    less. What grows is no straight line, so a step on top of one has to leave less than a cubic curve, which
    has as many parameters, and to be half as high as the line at least.

    Args:
        values: (windows,) from the first regression on; NaN where the weight is 0.
        weights: (windows,).
        change: Index of the change that is asked about: where it has no data on a side, nothing is known.
    """
    has_data = weights > 0
    if has_data[:change].sum() < 2 or has_data[change:].sum() < 2:
        return False
    y, w, t = values[has_data], weights[has_data], np.flatnonzero(has_data).astype(np.float64)
    y, t = y - np.average(y, weights=w), t - np.average(t, weights=w)
    spread = (w * t * t).sum()
    slope = float((w * t * y).sum() / spread)
    line = y - slope * t
    alone = _best_step(y, w)
    if not alone.left.any() or _pays(line, alone.left, w, parameters=1):
        return False
    beside = _best_step(line, w, t)
    rise = (slope - beside.height * beside.slope) * float(np.ptp(t))
    high = beside.height * slope > 0 and abs(beside.height) >= abs(rise) / 2
    sharp = high and _pays(line, beside.left, w, parameters=2)
    return not (sharp and (w * beside.left**2).sum() < (w * _without_cubic(y, w, t) ** 2).sum())


@dataclass(frozen=True, slots=True)
class _Step:
    """A step in a series: its height, the slope of the line nearest to it, and its squared error."""

    height: float
    slope: float
    left: FloatArray  # (points,)


def _best_step(y: FloatArray, w: FloatArray, t: FloatArray | None = None) -> _Step:
    """Fit the step with the least squared error and at least two points on either side.

    Args:
        y: (points,) of mean 0, and without a trend if there is ``t``.
        w: (points,) weights.
        t: (points,) times of mean 0, to fit the step beside a line.
    """
    whole = w.sum()
    weight, moment = (np.cumsum(moments[::-1])[::-1][2:-1] for moments in (w, w * y))
    size = weight * (1 - weight / whole)
    slope = np.zeros_like(weight)
    if t is not None:
        spread = (w * t * t).sum()
        slope = np.cumsum((w * t)[::-1])[::-1][2:-1] / spread
        size = size - slope**2 * spread
    gain = np.divide(moment**2, size, out=np.zeros_like(size), where=size > 1e-9 * whole)
    best = int(gain.argmax())
    height = float(moment[best] / size[best]) if gain[best] else 0.0
    shape = (np.arange(len(y)) >= best + 2) - weight[best] / whole
    if t is not None:
        shape = shape - slope[best] * t
    return _Step(height, float(slope[best]), y - height * shape)


def _without_cubic(y: FloatArray, w: FloatArray, t: FloatArray) -> FloatArray:
    """Return the residuals of the best cubic curve: (points,)."""
    powers = np.vander(t / np.abs(t).max(), 4)
    root = np.sqrt(w)
    coefficients: FloatArray = np.linalg.lstsq(root[:, None] * powers, root * y, rcond=None)[0]
    return np.asarray(y - powers @ coefficients)


def _pays(line: FloatArray, step: FloatArray, weights: FloatArray, *, parameters: int) -> bool:
    """Return whether a step beats a line by Schwarz's criterion, which charges its further parameters."""
    line, step = np.sqrt(weights) * line, np.sqrt(weights) * step
    left = float((step**2).sum())
    if left <= 0:
        return True
    shared = min(max(float((step[1:] * step[:-1]).sum()) / left, 0.0), 1.0)
    points = len(step) * (1 - shared) / (1 + shared)
    return bool(points * np.log(float((line**2).sum()) / left) >= parameters * np.log(max(points, 1.0)))
