"""The best split of each of many series, with the levels on both sides."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class BestSplit:
    """The best split of each series in some range."""

    split: IntArray  # (series,) -1 where there is none to search
    root: FloatArray  # (series,) standardised, positive for a rise
    span: FloatArray  # of the search, see p_values
    splits: IntArray  # that were searched
    p_value: FloatArray
    before: FloatArray  # (series,) levels
    after: FloatArray
    prior: FloatArray  # what the time that the split stands for adds to its likelihood ratio

    @property
    def likelihood(self) -> FloatArray:
        """(series,) twice the log likelihood ratio plus the prior, by which splits of ranges compare."""
        return np.asarray(self.root**2 + self.prior)

    def rows(self, rows: IntArray | BoolArray) -> BestSplit:
        """Return the splits of some rows."""
        return BestSplit(*(getattr(self, field.name)[rows] for field in fields(self)))

    def put(self, rows: IntArray, better: BestSplit) -> BestSplit:
        """Return all splits, with those of some rows replaced."""
        columns = [getattr(self, field.name).copy() for field in fields(self)]
        for column, field in zip(columns, fields(self), strict=True):
            column[rows] = getattr(better, field.name)
        return BestSplit(*columns)


def no_split(series: int) -> BestSplit:
    """Return the value for series without any allowed split."""
    nothing, zeros, none = np.full(series, np.nan), np.zeros(series), np.full(series, -1)
    return BestSplit(none, zeros, zeros, none + 1, zeros + 1.0, nothing, nothing, zeros)
