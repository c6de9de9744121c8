"""Looking after every trial, with the error held (Lindon, Ham et al., "Anytime-valid linear models")."""

from __future__ import annotations

import numpy as np
from scipy import special

from pipeline.experiments.trials.estimate import Estimates
from pipeline.model import FloatArray, IntArray

EXPECTED_TRIALS = 10.0
"""Trials at which the interval is made to be narrow; the error holds at any number."""

_SMALLEST_ALPHA = 1e-100  # for which it is made narrow: the square is a number


def anytime_valid(differences: FloatArray, alpha: float, expected: float = EXPECTED_TRIALS) -> Estimates:
    """Return what may be said after the last of these trials, if one looked after each of them.

    The chance that any look at equal sides is significant is ``alpha`` in all: 1 / p is a mixture of
    likelihood ratios of the t statistic, a martingale whatever the variance of normal differences. At 5 %
    the price is an interval that is 1.6 to 1.7 times as wide as that of one look from ten trials on, and none
    before the fifth.

    Args:
        differences: (experiments, trials) relative differences, in the order of trials.
        alpha: of all looks together.
        expected: trials, about.
    """
    experiments, trials = differences.shape
    mean = differences.mean(axis=1)
    if trials < 2:
        return Estimates.unbounded(mean)
    degrees = trials - 1.0
    share = float(_share_of_prior(np.array([trials]), alpha, expected)[0])
    error = differences.std(axis=1, ddof=1) / np.sqrt(trials)
    with np.errstate(invalid="ignore", divide="ignore"):
        squared = np.where(error > 0, (mean / error) ** 2, np.where(mean == 0, 0.0, np.inf))
    # log of the ratio at t: 1/2 log share - (v + 1)/2 log((1 + share t2/v) / (1 + t2/v))
    with np.errstate(invalid="ignore"):
        ratio = np.where(
            np.isinf(squared), share, (1.0 + share * squared / degrees) / (1.0 + squared / degrees)
        )
    log_evidence = 0.5 * np.log(share) - 0.5 * (degrees + 1.0) * np.log(ratio)
    p_value = np.minimum(1.0, np.exp(-log_evidence))
    widest = float(widest_t(np.array([trials]), alpha, expected)[0])
    half = widest * error if np.isfinite(widest) else np.full(experiments, np.inf)
    return Estimates(mean, mean - half, mean + half, p_value)


def widest_t(trials: IntArray, alpha: float, expected: float = EXPECTED_TRIALS) -> FloatArray:
    """Return the t at which 1 / p reaches 1 / alpha: (trials,), infinite if it never does.

    Args:
        trials: Numbers of trials, two at least.
        alpha: Of all looks together.
        expected: Trials, about.
    """
    share = _share_of_prior(trials, alpha, expected)
    # What the ratio has to fall to; in logarithms, as the square of a tiny alpha is 0.
    bound = np.exp((2.0 * np.log(alpha) + np.log(share)) / trials)
    reached = bound > share
    square = np.divide(
        (trials - 1.0) * (1.0 - bound), bound - share, out=np.full(len(trials), np.inf), where=reached
    )
    result: FloatArray = np.sqrt(square)
    return result


def _share_of_prior(trials: IntArray, alpha: float, expected: float) -> FloatArray:
    """Return the weight of the effect's prior, in trials, among it and the trials there are: (trials,)."""
    prior = expected / _spread(alpha)
    return prior / (prior + trials.astype(np.float64))


def _spread(alpha: float) -> float:
    """Return trials, in those of the prior, at which the interval is narrowest if t is about normal."""
    return float(-special.lambertw(-(max(alpha, _SMALLEST_ALPHA) ** 2) / np.e, -1).real) - 1.0
