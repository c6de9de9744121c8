"""The long-run variance of many series by batch means: how far the mean of a long span strays by chance.

Neighbouring windows are alike, so that means are noisier than independent windows would make them. Blocks are
compared with their neighbours, in which a slow trend and a change of level hardly show (Wu and Zhao, JRSSB
2007). With positive autocorrelation the variance only grows with the length of the blocks, so that several
lengths are tried and the largest estimate counts.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from pipeline.detect.season import block_means
from pipeline.model import FloatArray

_MIN_PAIRS = 12
"""Neighbours that the longest blocks must have: fewer leave the estimate itself too uncertain."""

_CUT = 9.0
"""A squared difference counts for at most so many times the typical one: transients are not noise."""


def long_run_variance(
    values: FloatArray, weights: FloatArray, *, longest: int
) -> tuple[FloatArray, FloatArray]:
    """Return the variance of a long mean of total weight 1, and the degrees of freedom of the estimate.

    Args:
        values: (series, windows); anything where the weight is 0.
        weights: (series, windows).
        longest: Windows of the longest blocks; an eighth, a quarter and half of it are tried as well.
    """
    variances: list[FloatArray] = []
    freedoms: list[FloatArray] = []
    for width in sorted({max(1, longest // parts) for parts in (8, 4, 2, 1)}):
        means, mass = block_means(values, weights, width)
        both = (mass[:, 1:] > 0) & (mass[:, :-1] > 0)
        if variances and both.shape[1] < _MIN_PAIRS:
            break
        inverse = np.divide(1.0, mass, out=np.zeros(mass.shape), where=mass > 0)
        spread = np.where(both, inverse[:, 1:] + inverse[:, :-1], 1.0)
        squares = np.where(both, np.diff(means, axis=1) ** 2 / spread, 0.0)
        pairs = np.maximum(both.sum(axis=1), 1)
        typical = squares.sum(axis=1) / pairs
        median = np.median(squares, axis=1) / stats.chi2.median(1)
        capped = np.minimum(squares, _CUT * np.where(median > 0, median, typical)[:, None])
        variances.append(capped.sum(axis=1) / pairs)
        freedoms.append(np.maximum(pairs * (2 / 3), 1.0))  # neighbouring differences share a block
    best = np.argmax(variances, axis=0)
    rows = np.arange(len(values))
    return np.stack(variances)[best, rows], np.stack(freedoms)[best, rows]
