"""The long-run variance of many series by batch means: how far the mean of a long span strays by chance.

Neighbouring windows are similar, and means noisier than independent windows would make them. Each block
is compared with the middle of its two neighbours: a slope cancels there, and a change of level shows but
twice (after Wu and Zhao, JRSSB 2007, who take differences). With positive autocorrelation the variance only
grows with the length of the blocks, so that several lengths are tried and the largest estimate counts.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from pipeline.analysis.statistics.robust import block_means, row_medians
from pipeline.model import FloatArray

_MIN_BLOCKS = 12
"""With two neighbours each, of the longest kind: fewer leave the estimate itself too uncertain."""

_MEDIAN_SQUARE = float(
    2 * special.gammaincinv(0.5, 0.5)
)  # of a chi-squared variable of one degree of freedom

_CUT = 9.0
"""A squared deviation counts for at most so many times the typical one: transients are not noise."""


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
    degrees: list[FloatArray] = []
    for width in sorted({max(1, longest // parts) for parts in (8, 4, 2, 1)}):
        if variances and values.shape[1] // width < _MIN_BLOCKS + 2:
            break
        means, weight = block_means(values, weights, width)
        known = weight > 0
        paired = known[:, 1:-1] & known[:, :-2] & known[:, 2:]
        inverse = np.divide(1.0, weight, out=np.zeros(weight.shape), where=known)
        spread = np.where(paired, inverse[:, 1:-1] + (inverse[:, :-2] + inverse[:, 2:]) / 4, 1.0)
        away = means[:, 1:-1] - (means[:, :-2] + means[:, 2:]) / 2
        squares = np.where(paired, away**2 / spread, 0.0)
        count = paired.sum(axis=1)
        variance = squares.sum(axis=1) / np.maximum(count, 1)
        median = np.nan_to_num(row_medians(np.where(paired, squares, np.nan))) / _MEDIAN_SQUARE
        cut = _CUT * np.where(median > 0, median, variance)
        variance = np.minimum(squares, cut[:, None]).sum(axis=1) / np.maximum(count, 1)
        # Too few of the longer blocks say nothing; of the shortest there is no choice.
        variances.append(np.where((count >= _MIN_BLOCKS) | (not variances), variance, -1.0))
        # Deviations of neighbours share blocks: correlations of 2/3 and 1/6 at lags 1 and 2.
        degrees.append(np.maximum(count / (1 + 2 * (4 / 9 + 1 / 36)), 1.0))
    best = np.argmax(variances, axis=0)
    rows = np.arange(len(values))
    # An estimate that is the largest cannot fall shorter of the truth than the next finer one does.
    return np.stack(variances)[best, rows], np.stack(degrees)[np.maximum(best - 1, 0), rows]
