"""Share normalisation: shares add up to one, so a rise of one subroutine lowers all others.

A regression of 4 % lowers every other subroutine's gCPU by 4 % of itself, an improvement raises it, and a
fortnight of both makes all series walk. Most subroutines have not changed at any moment, so the median over
subroutines of what each is to its own past is what the whole did to all of them (the median of ratios by
which Anders and Huber, Genome Biology 2010, make compositions comparable). With that in what is expected of
it, a series is left with what it did itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.model import BoolArray, FloatArray, SeriesMatrix
from pipeline.model.metric_kind import is_gcpu

_LEAST = 0.05
"""An expectation is above 0, whatever became of the majority."""


@dataclass(frozen=True, slots=True)
class ShareNormalisationConfig:
    """Settings of the common factor."""

    min_series: int = 100  # of a service: of fewer, one regression with its callers may be the majority
    most_series: int = 256  # that are looked at, those with most samples: more add little
    min_samples: float = 30.0  # a block and series: the median of fewer counts lies below their mean
    longest_block: int = 36  # windows: a slower service has no common factor


def share_factor(
    matrix: SeriesMatrix, *, history: int, config: ShareNormalisationConfig | None = None
) -> FloatArray | None:
    """Return the factor by which, in each window, all gCPU shares of a service moved: (windows,).

    Args:
        matrix: All series of a service.
        history: How many windows make a series' past, from the first on.
        config: Settings.

    Returns:
        None for service-level metrics, and for a service with too few series to separate what is common from
        what is a change.
    """
    config = config or ShareNormalisationConfig()
    if not matrix.kinds or not is_gcpu(matrix.kinds[0]):
        return None
    has_data = matrix.totals > 0
    before = matrix.samples[:, :history].sum(axis=1)
    windows = max(int(has_data[:history].sum()), 1)
    # Subroutines only, for endpoints and metadata hold the same samples; and not what nearly every sample
    # holds, whose share cannot move.
    share = before / max(float(matrix.totals[:history].sum()), 1.0)
    plain = np.array([kind == "subroutine" for kind in matrix.kinds], dtype=np.bool_)
    most = int((plain & (share < 0.5)).sum())
    if most < config.min_series:
        return None
    # Blocks of windows long enough for the hundredth series' counts to have a meaningful ratio.
    typical = np.sort(np.where(plain & (share < 0.5), before, 0.0))[-config.min_series] / windows
    block = math.ceil(config.min_samples / typical) if typical > 0 else config.longest_block + 1
    if block > config.longest_block:
        return None
    usable = np.flatnonzero(plain & (share < 0.5) & (before * block >= config.min_samples * windows))
    chosen = usable[np.argsort(-before[usable], kind="stable")[: config.most_series]]
    starts = np.arange(0, len(matrix.totals), block)
    totals = np.add.reduceat(matrix.totals, starts)
    expected = share[chosen, None] * totals
    samples = np.add.reduceat(matrix.samples[chosen], starts, axis=1)
    ratios = np.divide(samples, expected, out=np.ones(expected.shape), where=expected > 0)
    # What vanished was renamed or removed, and does not say what the whole did to the others.
    present = (samples > 0) | (expected < config.min_samples / 2)
    factor = _weighted_median(ratios, np.sqrt(before[chosen]), present)
    factor = np.where(present.sum(axis=0) >= config.min_series, factor, 1.0)
    # A block of few samples, most windows of which are missing, says nothing.
    enough = totals * float(np.median(share[chosen])) >= config.min_samples / 2
    of_windows = np.repeat(np.where(enough, factor, 1.0), block)[: len(has_data)]
    return np.where(has_data, np.maximum(of_windows, _LEAST), 1.0)


def with_share_factor(matrix: SeriesMatrix, factor: Sequence[float] | FloatArray | None) -> SeriesMatrix:
    """Return a matrix with the factor by which all shares moved in each of its windows; None if not known."""
    return replace(matrix, share_factor=None if factor is None else np.asarray(factor, dtype=np.float64))


def _weighted_median(values: FloatArray, weights: FloatArray, present: BoolArray) -> FloatArray:
    """Return the weighted median of each column over the values that are present.

    Args:
        values: (rows, columns).
        weights: (rows,).
        present: (rows, columns).
    """
    columns = np.ascontiguousarray(values.T)  # or sorting jumps about in memory
    order = np.argsort(columns, axis=1)
    weight = weights[order]
    if not present.all():
        weight *= np.take_along_axis(present.T, order, axis=1)
    np.cumsum(weight, axis=1, out=weight)
    middle = (weight < weight[:, -1:] / 2).sum(axis=1)
    every = np.arange(len(columns))
    result: FloatArray = columns[every, order[every, middle]]
    return result
