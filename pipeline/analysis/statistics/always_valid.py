r"""Always-valid bounds: they hold at every look at data that come in, however often one looks and stops.

Two mixtures of likelihood ratios, both martingales without a change. By Ville's inequality such a mixture
exceeds 1/α at any time with probability α at most.

``p_values`` and ``radius`` are for an estimate of change δ with a standard error of 1/√I that is normal by
the central limit theorem (Waudby-Smith et al., Annals of Statistics 52, 2024). Then S = δ I is a Brownian
motion of drift δ in its information I (Jennison and Turnbull, Group Sequential Methods, 2000, §3). The
likelihood ratio of drift against none, averaged over a half-normal prior of the drift with variance 1/ρ
(Robbins, Annals of Mathematical Statistics 41, 1970; the one-sided normal mixture of Howard, Ramdas,
McAuliffe and Sekhon, Annals of Statistics 49, 2021, §3.2), is

    Λ = 2 √(ρ / (I + ρ)) · exp(S² / 2 (I + ρ)) · Φ(S / √(I + ρ)).

ρ determines the information at which the bound is tightest. A drift many times as large as the expected one
shows long before, so the mean of several ratios is taken, each with a quarter of the former's ρ.

``t_p_values`` and ``t_radius`` are for few independent normal differences of unknown variance: a mixture of
likelihood ratios of the t statistic, a martingale whatever the variance (Lindon, Ham et al., Anytime-valid
linear models, 2022).
"""

from __future__ import annotations

import numpy as np
from scipy.special import lambertw, log_ndtr, logsumexp

from pipeline.model import FloatArray, IntArray

_SCALES = 4.0 ** -np.arange(5)
"""Factors of ρ, for drifts of one to sixteen times the expected drift."""

EXPECTED_TRIALS = 10.0
"""Trials at which the interval of ``t_radius`` is narrow; its error holds at any number of trials."""

_SMALLEST_ALPHA = 1e-100
"""Level below which no narrower interval is sought: its square does not underflow."""


def tightest_at(information: FloatArray, alpha: float) -> FloatArray:
    """Return the ρ whose bound of level ``alpha`` is about the tightest at an information: shape as given."""
    twice = -2.0 * np.log(alpha)
    rho: FloatArray = information / (twice + np.log1p(twice))
    return rho


def p_values(z: FloatArray, information: FloatArray, rho: FloatArray) -> FloatArray:
    """Return always-valid p-values of the hypothesis that the drift is not positive: shape as given.

    Args:
        z: Estimates in standard errors.
        information: 1 / variance of the estimates.
        rho: From ``tightest_at``.
    """
    log_ratios = [_log_ratio(z, information, rho * scale) for scale in _SCALES]
    together = logsumexp(log_ratios, axis=0) - np.log(len(_SCALES))
    chances: FloatArray = np.exp(-np.maximum(together, 0.0))
    return chances


def radius(information: FloatArray, rho: FloatArray, alpha: float) -> FloatArray:
    """Return the bound, in standard errors, that an estimate without drift never exceeds but for ``alpha``.

    It is the closed upper bound of the mixture's boundary (Howard et al., §3.2), the least over all ρ. The
    shape is that of ``information``.
    """
    bounds = []
    for scale in _SCALES:
        own = rho * scale
        ratio = np.sqrt((information + own) / own) * len(_SCALES) / (2.0 * alpha)
        bounds.append(np.sqrt(2.0 * (information + own) / information * np.log1p(ratio)))
    least: FloatArray = np.min(bounds, axis=0)
    return least


def t_p_values(squared: FloatArray, trials: int, alpha: float) -> FloatArray:
    """Return always-valid p-values of equal sides, tight at ``EXPECTED_TRIALS``: (experiments,).

    Args:
        squared: (experiments,) squared t statistics of the mean difference; may be infinite.
        trials: Number of trials behind each, at least two.
        alpha: Level at which the bound is tight.
    """
    degrees = trials - 1.0
    share = float(_share_of_prior(np.array([trials]), alpha)[0])
    with np.errstate(invalid="ignore"):
        ratio = np.where(
            np.isinf(squared), share, (1.0 + share * squared / degrees) / (1.0 + squared / degrees)
        )
    log_evidence = 0.5 * np.log(share) - 0.5 * (degrees + 1.0) * np.log(ratio)
    return np.asarray(np.minimum(1.0, np.exp(-log_evidence)))


def t_radius(trials: IntArray, alpha: float) -> FloatArray:
    """Return the t at which ``t_p_values`` reaches ``alpha``: (trials,), infinite if it never does.

    At 5 % it is 1.6 to 1.7 times as large as that of a single look from ten trials on, and infinite before
    the fifth.

    Args:
        trials: Numbers of trials, at least two.
        alpha: Level of all looks together.
    """
    share = _share_of_prior(trials, alpha)
    # The ratio in ``t_p_values`` at which p is alpha; in logarithms, as a tiny alpha's square underflows.
    bound = np.exp((2.0 * np.log(alpha) + np.log(share)) / trials)
    reached = bound > share
    square = np.divide(
        (trials - 1.0) * (1.0 - bound), bound - share, out=np.full(len(trials), np.inf), where=reached
    )
    result: FloatArray = np.sqrt(square)
    return result


def _log_ratio(z: FloatArray, information: FloatArray, rho: FloatArray) -> FloatArray:
    scaled = z * np.sqrt(information / (information + rho))
    log_ratio: FloatArray = (
        np.log(2.0) + 0.5 * np.log(rho / (information + rho)) + 0.5 * scaled**2 + log_ndtr(scaled)
    )
    return log_ratio


def _share_of_prior(trials: IntArray, alpha: float) -> FloatArray:
    """Return the prior's share of the information of prior and trials together: (trials,)."""
    prior = EXPECTED_TRIALS / _spread(alpha)
    return prior / (prior + trials.astype(np.float64))


def _spread(alpha: float) -> float:
    """Return the trials, in units of the prior, at which the interval of a normal t is narrowest."""
    return float(-lambertw(-(max(alpha, _SMALLEST_ALPHA) ** 2) / np.e, -1).real) - 1.0
