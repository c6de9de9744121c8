"""Request mix: how far the shares of a service's request types moved, and what a subroutine won by it.

A handler of a whole request type has no caller that says what became of its requests. What the other types
did says how far their shares move by themselves: on most days not at all, on the first day of a sale by tens
of percent, each for itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.analysis.mix.two_groups import TwoGroups, fit_two_groups
from pipeline.analysis.stacks import Beside
from pipeline.model import FloatArray

_ENOUGH = 30.0
"""Samples on either side from which on a request type says what became of it."""

_LEAST = 4
"""Request types besides its own of which the middle says what became of most."""

_ERRORS = 4.0
"""Standard errors by which a request type must have fallen that others won from. What rises may be slower."""

_FELL = 2.0
"""Request types that must have fallen where nothing says what became of one: another may be faster."""


@dataclass(frozen=True, slots=True)
class BranchMix:
    """What the mix of requests made of some stacks, beyond what became of all that their callers do."""

    won: float = 0.0  # share, as far as what their request types do besides them says it
    margin: float = 0.0  # share that they may win by chance, as far as their requests are not known


def request_mix(beside: Beside, samples: FloatArray, common: float, mistaken: float) -> BranchMix:
    """Return what the mix of requests made of a subroutine, as far as its callers cannot say it.

    What else a caller divides into says how far its branches stray from each other. Of a subroutine's own
    branch, what else that does says where it strayed to, as far as it has samples.

    Args:
        beside: What callers do besides the subroutine.
        samples: (before and after,) independent samples in row 0 for each unit of its shares.
        common: Factor by which all shares of the service moved.
        mistaken: How often chance may take more, one-sided.
    """
    branches = beside.branches
    counts = branches.rest * samples[:, None] + 0.5
    variances = (1 / counts).sum(axis=0)
    whole = beside.rest[:, 0] * samples[:, None] + 0.5
    factors = (whole[1] / whole[0])[branches.caller]
    logarithms = np.log(counts[1] / counts[0])
    ratio = samples[1] / samples[0]
    own = branches.own[0] > 0
    others = ~branches.own.any(axis=0) & (counts >= _ENOUGH).all(axis=0)
    won, squares = 0.0, 0.0
    for caller in np.unique(branches.caller[own]).tolist():
        witnesses = others & (branches.caller == caller)
        found = _moved(
            logarithms[witnesses], variances[witnesses], counts[0, witnesses], math.log(ratio * common)
        )
        if found is None:
            continue
        groups, centre, fell = found
        mine = np.flatnonzero(own & (branches.caller == caller))
        strayed = logarithms[mine] - centre
        likely = groups.responsibilities(strayed, variances[mine])
        error = np.sqrt(groups.kept(variances[mine]) * variances[mine])
        before = branches.own[0, mine] * samples[0] / samples[1]
        became = before * np.exp(centre + groups.means(strayed, variances[mine]))
        # The spread itself is known from so many branches alone.
        tail = np.minimum(mistaken / np.maximum(likely, mistaken), 0.5)
        farthest = -special.stdtrit(int(witnesses.sum()) - 1, tail) * error
        most = became * np.expm1(np.minimum(farthest, -np.log(became)))  # no more than all
        won += float((became - before * factors[mine]).sum())
        squares += float((most**2).sum()) if fell >= _FELL else 0.0
    return BranchMix(won, squares**0.5)


def _moved(
    logarithms: FloatArray, variances: FloatArray, weights: FloatArray, common: float
) -> tuple[TwoGroups, float, float] | None:
    """Return how branches strayed, what became of most, and how many fell; None where none did by traffic.

    Args:
        logarithms: (branches,) of the factors by which they moved.
        variances: (branches,) of sampling.
        weights: (branches,) samples.
        common: Logarithm of the factor by which everything moved.
    """
    if len(logarithms) < _LEAST:
        return None
    order = np.argsort(logarithms)
    centre = float(logarithms[order][np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)])
    strayed = logarithms - centre
    groups = fit_two_groups(strayed, variances)
    likely = groups.responsibilities(strayed, variances)
    certain = logarithms - min(centre, common) < -_ERRORS * np.sqrt(variances)
    return (groups, centre, float(likely[strayed < 0].sum())) if certain.any() else None
