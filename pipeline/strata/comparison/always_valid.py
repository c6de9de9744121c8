r"""Bounds that hold at every look at data that come in, however often one looks and whenever one stops.

An estimate of change δ with standard error 1/√I is a Brownian motion S = δ I of drift δ in its information
I (Jennison and Turnbull, Group Sequential Methods, 2000, §3). The likelihood ratio of drift against none,
averaged over a half-normal prior of variance 1/ρ of the drift (Robbins, Annals of Mathematical Statistics
41, 1970; the one-sided normal mixture of Howard, Ramdas, McAuliffe and Sekhon, Annals of Statistics 49,
2021, §3.2),

    Λ = 2 √(ρ / (I + ρ)) · exp(S² / 2 (I + ρ)) · Φ(S / √(I + ρ)),

exceeds 1/α at any time with probability α at most if there is no drift, by Ville's inequality. ρ says at
which information the bound is tightest. What is normal here is so by the central limit theorem (Waudby-Smith
et al., Annals of Statistics 52, 2024).
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from pipeline.model import FloatArray


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
    scaled = z * np.sqrt(information / (information + rho))
    log_ratio = np.log(2.0) + 0.5 * np.log(rho / (information + rho)) + 0.5 * scaled**2 + log_ndtr(scaled)
    found: FloatArray = np.exp(-np.maximum(log_ratio, 0.0))
    return found


def radius(information: FloatArray, rho: FloatArray, alpha: float | FloatArray) -> FloatArray:
    """Return how many standard errors an estimate stays under, at all times together, if there is no drift.

    It is the closed upper bound of the mixture's boundary (Howard et al., §3.2).
    """
    ratio = np.sqrt((information + rho) / rho) / (2.0 * np.asarray(alpha))
    found: FloatArray = np.sqrt(2.0 * (information + rho) / information * np.log1p(ratio))
    return found
