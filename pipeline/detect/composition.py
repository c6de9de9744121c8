"""Shares add up to one: what one subroutine wins, all the others lose without having changed.

A regression of 4 % lowers every other subroutine's gCPU by 4 % of itself, an improvement raises it, and a
fortnight of both makes all series walk. Most subroutines have not changed at any moment, so the median over
subroutines of what each is to its own past is what the whole did to all of them (the median of ratios by
which Anders and Huber, Genome Biology 2010, make compositions comparable). With that in what is expected of
it, a series is left with what it did itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeline.model import FloatArray, SeriesMatrix


@dataclass(frozen=True, slots=True)
class CompositionConfig:
    """Settings of the common factor."""

    min_series: int = 100  # of a service: of fewer, one regression with its callers may be the majority
    most_series: int = 256  # that are looked at, those with most samples: more add little
    min_samples: float = 5.0  # a window and series: fewer have no meaningful ratio


def with_dilution(
    matrix: SeriesMatrix, *, history: int, config: CompositionConfig | None = None
) -> SeriesMatrix:
    """Return gCPU series together with the factor by which, in each window, all shares moved.

    Args:
        matrix: All series of a service; service-level metrics come back as they are, and so do the series of
            a service with too few of them to tell what is common from what is a change.
        history: How many windows make a series' past, from the first on.
        config: Settings.
    """
    config = config or CompositionConfig()
    if not matrix.kinds or matrix.kinds[0] == "service":
        return matrix
    known = matrix.totals > 0
    past = matrix.samples[:, :history].sum(axis=1)
    windows = max(int(known[:history].sum()), 1)
    # Subroutines only, for endpoints and metadata hold the same samples; and not what nearly every sample
    # holds, whose share cannot move.
    share = past / max(float(matrix.totals[:history].sum()), 1.0)
    plain = np.array([kind == "subroutine" for kind in matrix.kinds], dtype=np.bool_)
    usable = np.flatnonzero(plain & (past >= config.min_samples * windows) & (share < 0.5))
    if len(usable) < config.min_series:
        return matrix
    chosen = usable[np.argsort(-past[usable], kind="stable")[: config.most_series]]
    expected = share[chosen, None] * matrix.totals
    ratios = np.divide(matrix.samples[chosen], expected, out=np.ones(expected.shape), where=expected > 0)
    factor = _weighted_median(ratios, np.sqrt(past[chosen]))
    return replace(matrix, dilution=np.where(known, factor, 1.0))


def _weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted median of each column."""
    columns = np.ascontiguousarray(values.T)  # or sorting jumps about in memory
    order = np.argsort(columns, axis=1)
    mass = np.cumsum(weights[order], axis=1)
    middle = (mass < mass[:, -1:] / 2).sum(axis=1)
    places = np.arange(len(columns))
    result: FloatArray = columns[places, order[places, middle]]
    return result
