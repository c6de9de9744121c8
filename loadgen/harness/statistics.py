"""Statistics of results: means, medians and shares, NaN where there is nothing, and Student's intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pipeline.model import FloatArray

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds with Student's interval of 95 %; of a single seed it has none."""

    value: float
    low: float | None
    high: float | None
    seeds: int


@dataclass(frozen=True, slots=True)
class Ratio:
    """Geometric mean of on ÷ off over groups, with its 95 % interval (Student's t of the logarithms)."""

    mean: float
    low: float
    high: float


def mean(values: Sequence[float] | FloatArray) -> float:
    """Return the mean of some numbers; NaN of none."""
    return float(np.mean(values)) if len(values) else math.nan


def median(values: Sequence[float] | FloatArray) -> float:
    """Return the median of some numbers; NaN of none."""
    return float(np.median(values)) if len(values) else math.nan


def ratio_of(count: float, of: float) -> float:
    """Return the ratio of two counts; NaN if the second is 0."""
    return count / of if of else math.nan


def mean_of(
    values: Iterable[float | None], *, lowest: float = -math.inf, highest: float = math.inf
) -> Mean | None:
    """Return the mean of the numbers that are not None, None if there are none; the interval is clipped."""
    present = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(present):
        return None
    middle = float(present.mean())
    if len(present) < 2:
        return Mean(middle, None, None, len(present))
    half = _half_width(present)
    return Mean(middle, max(middle - half, lowest), min(middle + half, highest), len(present))


def paired_ratio(off: ArrayLike, on: ArrayLike) -> Ratio:
    """Return the ratio of values with and without a costly feature.

    Args:
        off: (groups,), values without the feature, positive.
        on: (groups,), values with the feature.
    """
    logs = np.log(np.asarray(on, dtype=float)) - np.log(np.asarray(off, dtype=float))
    middle = float(logs.mean())
    half = _half_width(logs) if len(logs) > 1 else math.inf
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def offsets_of(changes: Sequence[int], reported: Sequence[int], margin: int) -> list[int]:
    """Return the distance in points of each change that is found; a report answers only one change.

    >>> offsets_of([20, 50], [19, 20, 80], 5)
    [0]
    """
    left = list(reported)
    offsets = []
    for change in changes:
        nearest = min(left, key=lambda report: abs(report - change), default=None)
        if nearest is not None and abs(nearest - change) <= margin:
            left.remove(nearest)
            offsets.append(abs(nearest - change))
    return offsets


def _half_width(values: FloatArray) -> float:
    """Return half the width of Student's interval of the mean; ``values`` has at least two."""
    from scipy import stats  # scipy takes a second to load

    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return quantile * float(values.std(ddof=1)) / math.sqrt(len(values))
