"""The best split of each of many series, with the levels on both sides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class BestSplit:
    """The best split of each series in some range."""

    split: IntArray  # (series,)
    root: FloatArray  # (series,) standardised, positive for a rise
    span: FloatArray  # of the search, see p_values
    splits: IntArray  # that were searched
    p_value: FloatArray
    before: FloatArray  # (series,) levels
    after: FloatArray
    interval: tuple[float, float] | None = None  # in windows, of the first one's change time


def no_split(series: int) -> BestSplit:
    """Return what stands where no split may be."""
    nothing, zeros, none = np.full(series, np.nan), np.zeros(series), np.zeros(series, dtype=np.int64)
    return BestSplit(none - 1, zeros, zeros, none, zeros + 1.0, nothing, nothing)
