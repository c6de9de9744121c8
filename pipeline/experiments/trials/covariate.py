"""Control variates (CUPED): another metric explains part of how trials differ (Deng et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from pipeline.experiments.trials.estimate import Estimates, Experiments, trial_differences
from pipeline.experiments.trials.history import interval_test
from pipeline.experiments.trials.student import ROUNDING, SampleMeans, of_means, paired_t_test
from pipeline.model import FloatArray

FEWEST_PAST = 20
"""A/A trials that estimate how a metric follows its covariate."""

FEWEST_TRIALS = 5
"""Trials that estimate the slope if there is no history: three degrees of freedom are left."""

CHANGED = 0.01
"""Chance that a covariate counts as changed though it is not: an upper bound on the added false positives."""


LARGEST = 1e50
"""Largest relative difference of a covariate whose square does not overflow."""


class Use(StrEnum):
    """Use of a covariate."""

    HISTORY = "history"
    """Differences are adjusted by the slope of past A/A trials."""
    TRIALS = "trials"
    """Differences are adjusted by the slope of the trials themselves."""
    CHANGED = "changed"
    """Not used: side B changes the covariate itself."""
    CONSTANT = "constant"
    """Not used: the covariate does not vary where its slope is estimated."""
    FEW = "few"
    """Not used: there are too few trials to estimate the slope."""


@dataclass(frozen=True, slots=True)
class Covariate:
    """Relative differences of a metric that should explain another: (trials,), side B against side A."""

    name: str
    differences: FloatArray


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Effect of a covariate on the differences of a metric."""

    covariate: str
    use: Use
    difference: float
    """Difference of the covariate itself, relative."""
    p_value: float
    """p-value against the covariate being unchanged by side B."""
    theta: float = 0.0
    """Difference of the metric for each difference of the covariate."""
    variance_fell: float = 0.0
    """Share by which the variance of trials' differences fell; less than 0 if it grew."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Experiments after adjustment by a covariate."""

    experiments: Experiments
    past: Experiments | None
    by: Adjustment
    estimates: Estimates | None = None
    """Estimates of the trials themselves, if these estimate the slope: no model knows that."""


def adjust(
    experiments: Experiments,
    past: Experiments | None,
    now: Covariate,
    before: Covariate | None,
    alpha: float | None,
) -> Adjusted:
    """Subtract the part that a covariate explains from the differences of one experiment.

    A trial's difference d becomes d − θ x, where x is the covariate's. Its mean stays what it is as long as
    side B does not change the covariate, whatever θ is that does not depend on these trials: so θ comes from
    A/A trials of the past. Without these it is the slope of a regression over the trials themselves, and the
    difference its intercept, which is unbiased for every x; Student's test has one degree of freedom less.

    Args:
        experiments: One, with its trials.
        past: A/A trials as one experiment; None if there are none.
        now: The covariate in these trials.
        before: The same in those of the past.
        alpha: Chance that equal sides differ significantly, of estimates by the trials themselves; None if a
            model should judge, for which only the past may say how to adjust.
    """
    x = _usable(now.differences)
    usual = _usable(before.differences) if past is not None and before is not None else np.empty(0)
    if not len(x):
        return Adjusted(experiments, past, Adjustment(now.name, Use.CONSTANT, 0.0, 1.0))
    own = paired_t_test(x[None], CHANGED)
    p_value = float((interval_test(x[None], usual, CHANGED) if len(usual) >= FEWEST_PAST else own).p_value[0])
    adjusted = Adjusted(experiments, past, Adjustment(now.name, Use.FEW, float(x.mean()), p_value))
    if p_value <= CHANGED:
        return _unused(adjusted, Use.CHANGED)
    if past is not None and len(usual) >= FEWEST_PAST:
        return _by_history(adjusted, past, x, usual)
    if alpha is not None and len(x) >= FEWEST_TRIALS:
        return _by_trials(adjusted, x, alpha)
    return adjusted


def regression_test(differences: FloatArray, covariate: FloatArray, alpha: float) -> Estimates:
    """Test whether the intercept of differences over a covariate is 0.

    Args:
        differences: (experiments, trials), three trials or more.
        covariate: The same of the covariate; a constant one is not adjusted for.
        alpha: Chance that equal sides differ significantly.
    """
    trials = differences.shape[1]
    theta = slope(differences, covariate)
    middle = covariate.mean(axis=1)
    around = covariate - middle[:, None]
    squares = (around**2).sum(axis=1)
    mean = differences.mean(axis=1)
    rest = differences - mean[:, None] - theta[:, None] * around
    degrees = trials - 1.0 - (squares > 0)
    lever = np.divide(middle**2, squares, out=np.zeros(len(squares)), where=squares > 0)
    error = np.sqrt((rest**2).sum(axis=1) / degrees * (1.0 / trials + lever))
    scale = np.abs(differences).max(axis=1)
    return of_means(SampleMeans(mean - theta * middle, error, degrees, scale, 2.0**-degrees), alpha)


def slope(differences: FloatArray, covariate: FloatArray) -> FloatArray:
    """Return θ, their covariance over the variance of the covariate: (experiments,), 0 where that is 0."""
    around = covariate - covariate.mean(axis=1, keepdims=True)
    squares = (around**2).sum(axis=1)
    products = (around * differences).sum(axis=1)
    result: FloatArray = np.divide(products, squares, out=np.zeros(len(squares)), where=squares > 0)
    return result


def without(experiments: Experiments, explained: FloatArray) -> Experiments:
    """Return experiments without the explained part of their differences, which is taken from side B.

    Args:
        experiments: Any number.
        explained: (experiments, trials), relative to side A. Points of side B change by one factor a trial,
            so that they stay positive, and every model sees the same.
    """
    a, b = np.nanmean(experiments.a, axis=2), np.nanmean(experiments.b, axis=2)
    taken = explained * np.nanmean(a, axis=1, keepdims=True)
    share = np.divide(taken, b, out=np.zeros(b.shape), where=b > 0)
    return replace(experiments, b=experiments.b * np.maximum(1.0 - share, 0.0)[:, :, None])


def _usable(differences: FloatArray) -> FloatArray:
    """Return differences without rounding, clipped so that squares fit; none if the covariate is 0."""
    if not np.isfinite(differences).all():
        return np.empty(0)
    rounded = np.where(np.abs(differences) <= ROUNDING, 0.0, differences)
    result: FloatArray = np.clip(rounded, -LARGEST, LARGEST)
    return result


def _by_history(adjusted: Adjusted, history: Experiments, x: FloatArray, usual: FloatArray) -> Adjusted:
    """Adjust by A/A trials: sides are assigned by chance there, so both means are 0."""
    differences = trial_differences(history)[0]
    products, squares = differences * usual, usual**2
    if not squares.sum() > 0:
        return _unused(adjusted, Use.CONSTANT)
    theta = float(products.sum() / squares.sum())
    # Leave-one-out slopes, so that past trials vary as much as new trials do.
    rest = squares.sum() - squares
    of_others = np.divide(products.sum() - products, rest, out=np.zeros(len(rest)), where=rest > 0)
    explained = of_others * usual
    return Adjusted(
        without(adjusted.experiments, theta * x[None]),
        without(history, explained[None]),
        replace(
            adjusted.by,
            use=Use.HISTORY,
            theta=theta,
            variance_fell=_fell((differences**2).sum(), ((differences - explained) ** 2).sum()),
        ),
    )


def _by_trials(adjusted: Adjusted, x: FloatArray, alpha: float) -> Adjusted:
    differences = trial_differences(adjusted.experiments)
    around = x - x.mean()
    if not (around**2).sum() > 0:
        return _unused(adjusted, Use.CONSTANT)
    theta = float(slope(differences, x[None])[0])
    before = differences[0] - differences[0].mean()
    after = before - theta * around
    trials = len(x)
    fell = _fell((before**2).sum() / (trials - 1), (after**2).sum() / (trials - 2))
    return Adjusted(
        without(adjusted.experiments, theta * x[None]),
        None,
        replace(adjusted.by, use=Use.TRIALS, theta=theta, variance_fell=fell),
        regression_test(differences, x[None], alpha),
    )


def _unused(adjusted: Adjusted, use: Use) -> Adjusted:
    return replace(adjusted, by=replace(adjusted.by, use=use))


def _fell(before: float, after: float) -> float:
    return float(1.0 - after / before) if before > 0 else 0.0
