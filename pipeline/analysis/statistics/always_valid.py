r"""Bounds that hold at every look at data that come in, however often one looks and whenever one stops.

An estimate of change δ with standard error 1/√I is a Brownian motion S = δ I of drift δ in its information
I (Jennison and Turnbull, Group Sequential Methods, 2000, §3). The likelihood ratio of drift against none,
averaged over a half-normal prior of variance 1/ρ of the drift (Robbins, Annals of Mathematical Statistics
41, 1970; the one-sided normal mixture of Howard, Ramdas, McAuliffe and Sekhon, Annals of Statistics 49,
2021, §3.2),

    Λ = 2 √(ρ / (I + ρ)) · exp(S² / 2 (I + ρ)) · Φ(S / √(I + ρ)),

exceeds 1/α at any time with probability α at most if there is no drift, by Ville's inequality. ρ says at
which information the bound is tightest. A drift many times as large as the one that is looked for shows long
before, so the mean of such ratios is taken, each ρ a quarter of the one before. What is normal here is so by
the central limit theorem (Waudby-Smith et al., Annals of Statistics 52, 2024).
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, logsumexp

from pipeline.model import FloatArray

_SCALES = 4.0 ** -np.arange(5)
"""Of ρ: drifts of one to sixteen times the one that is looked for."""


def tightest_at(information: FloatArray, alpha: float) -> FloatArray:
    """Return ρ for which the bound of level ``alpha`` is about the tightest at an information."""
    twice = -2.0 * np.log(alpha)
    found: FloatArray = information / (twice + np.log1p(twice))
    return found


def p_values(z: FloatArray, information: FloatArray, rho: FloatArray) -> FloatArray:
    """Return always-valid p-values of no drift or a negative one.

    Args:
        z: Estimates in standard errors.
        information: Their 1 / variance.
        rho: From ``tightest_at``.
    """
    log_ratios = [_log_ratio(z, information, rho * scale) for scale in _SCALES]
    together = logsumexp(log_ratios, axis=0) - np.log(len(_SCALES))
    found: FloatArray = np.exp(-np.maximum(together, 0.0))
    return found


def radius(information: FloatArray, rho: FloatArray, alpha: float) -> FloatArray:
    """Return how many standard errors an estimate stays under, at all times together, if there is no drift.

    It is the closed upper bound of the mixture's boundary (Howard et al., §3.2), the least over all ρ.
    """
    bounds = []
    for scale in _SCALES:
        own = rho * scale
        ratio = np.sqrt((information + own) / own) * len(_SCALES) / (2.0 * alpha)
        bounds.append(np.sqrt(2.0 * (information + own) / information * np.log1p(ratio)))
    found: FloatArray = np.min(bounds, axis=0)
    return found


def _log_ratio(z: FloatArray, information: FloatArray, rho: FloatArray) -> FloatArray:
    scaled = z * np.sqrt(information / (information + rho))
    found: FloatArray = (
        np.log(2.0) + 0.5 * np.log(rho / (information + rho)) + 0.5 * scaled**2 + log_ndtr(scaled)
    )
    return found
