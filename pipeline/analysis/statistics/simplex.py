"""Least squares for shares: not negative, of sum one, with a prior (constrained Bayesian regression)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray

_ROUNDS = 4
"""Rounds after which the noise beside a fit is known well enough."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over blocks of deviations of series and parts from the mean of their group of blocks."""

    squares: FloatArray  # (parts, parts)
    products: FloatArray  # (series, parts)
    own: FloatArray  # (series,) squares of the series themselves
    degrees_of_freedom: float  # blocks, less the means
    parts: FloatArray  # (parts, groups) means
    values: FloatArray  # (series, groups) means


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Shares of parts in series."""

    shares: FloatArray  # (series, parts)
    scale: FloatArray  # (series,) a value with weight w has a variance of 1 / (w × scale)
    precision: FloatArray  # (series, parts, parts) of the shares, prior included


def moments(weights: FloatArray, groups: FloatArray, parts: FloatArray, values: FloatArray) -> Moments:
    """Return the weighted moments of series and parts, within groups of blocks.

    Args:
        weights: (blocks,) 0 for one that is left out.
        groups: (groups, blocks) 1 where a block is in a group.
        parts: (parts, blocks).
        values: (series, blocks).
    """
    mass = np.maximum(groups @ weights, 1e-300)
    mean_parts, mean_values = ((columns * weights) @ groups.T / mass for columns in (parts, values))
    apart, left = parts - mean_parts @ groups, values - mean_values @ groups
    used = weights > 0
    weighted = apart * weights
    return Moments(
        squares=weighted @ apart.T,
        products=left @ weighted.T,
        own=left**2 @ weights,
        degrees_of_freedom=max(float(used.sum() - ((groups @ used) > 0).sum()), 1.0),
        parts=mean_parts,
        values=mean_values,
    )


def fit_shares(sums: Moments, levels: FloatArray, prior: FloatArray, least: float = 1.0) -> Shares:
    """Return the shares of parts in series.

    The prior has the variance of a series that is all of one part, each as likely as its share in the prior.

    Args:
        sums: Moments of series and parts.
        levels: (series,) a value with weight w has a variance of dispersion / (w × level).
        prior: (parts,) expected shares of a series, all positive.
        least: Least dispersion.
    """
    least = max(least, 1e-12)
    dispersion = np.maximum(levels * sums.own / sums.degrees_of_freedom, least)
    # The noise is the part that shares do not explain, so both are estimated in turn.
    for _ in range(_ROUNDS - 1):
        shares = shares_given(sums, levels / dispersion, prior).shares
        left = (
            sums.own
            - 2 * (shares * sums.products).sum(axis=1)
            + np.einsum("st,tu,su->s", shares, sums.squares, shares)
        )
        dispersion = np.maximum(levels * left / sums.degrees_of_freedom, least)
    return shares_given(sums, levels / dispersion, prior)


def shares_given(sums: Moments, scale: FloatArray, prior: FloatArray) -> Shares:
    """Return the shares of parts in series of known noise: (series, parts).

    Args:
        sums: Moments of series and parts.
        scale: (series,) a value with weight w has a variance of 1 / (w × scale).
        prior: (parts,) expected shares of a series, all positive.
    """
    precision = scale[:, None, None] * sums.squares + np.diag(1 / prior)
    return Shares(on_simplex(precision, scale[:, None] * sums.products + 1.0), scale, precision)


def posterior_error(precision: FloatArray, towards: FloatArray) -> FloatArray:
    """Return the posterior standard error of Σ share × ``towards``: (series,).

    Args:
        precision: (series, parts, parts) of the shares, whose sum is known.
        towards: (parts,).
    """
    both = np.stack([towards, np.ones(len(towards))], axis=1)
    solved = np.linalg.solve(precision, np.broadcast_to(both, (len(precision), *both.shape)))
    along, across = (solved * towards[:, None]).sum(axis=1).T
    whole = solved[:, :, 1].sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(along - across**2 / whole, 0.0)))


def on_simplex(matrix: FloatArray, linear: FloatArray) -> FloatArray:
    """Return the p ≥ 0 of sum 1 that minimise p·A·p / 2 − b·p: (series, parts).

    Negative shares are removed in turn.

    Args:
        matrix: (series, parts, parts) A, positive definite.
        linear: (series, parts) b.
    """
    series, parts = linear.shape
    shares, held = np.zeros((series, parts)), np.ones((series, parts), dtype=np.bool_)
    open_ = np.arange(series)
    while len(open_):
        within = held[open_]
        system = np.zeros((len(open_), parts + 1, parts + 1))
        system[:, :parts, :parts] = matrix[open_] * (within[:, :, None] & within[:, None, :])
        system[:, np.arange(parts), np.arange(parts)] += ~within
        system[:, parts, :parts] = system[:, :parts, parts] = within
        right = np.concatenate([np.where(within, linear[open_], 0.0), np.ones((len(open_), 1))], axis=1)
        solved = np.where(within, np.linalg.solve(system, right[:, :, None])[:, :parts, 0], 0.0)
        shares[open_] = solved
        held[open_] &= solved >= 0
        open_ = open_[(solved < 0).any(axis=1)]
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
