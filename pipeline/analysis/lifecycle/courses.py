"""The courses of open regressions' own metrics, up to the end of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.expected import values_and_weights
from pipeline.analysis.detect.matrix import rows_by_series
from pipeline.model import Candidate, FloatArray, SeriesKey, SeriesMatrix


@dataclass(frozen=True, slots=True)
class Courses:
    """Values and weights of series by window, the last of which ends at ``end``.

    The last row of both stands for a series that has no row.
    """

    end: float
    resolution_s: float
    rows: Mapping[SeriesKey, int]
    values: FloatArray  # (series + 1, windows), NaN where the weight is 0
    weights: FloatArray  # (series + 1, windows)

    def of(self, candidate: Candidate, start: float, end: float) -> tuple[FloatArray, FloatArray]:
        """Return values and weights of a candidate's series in [start, end): (windows,) both."""
        # Rounding both ends would give spans of one length different windows if a day is no multiple of a
        # window.
        windows = self.values.shape[1]
        first = max(windows - round((self.end - start) / self.resolution_s), 0)
        columns = slice(first, first + round((end - start) / self.resolution_s))
        row = self.rows.get(candidate.series, -1)
        return self.values[row, columns], self.weights[row, columns]


def courses_of(matrix: SeriesMatrix, end: float, *, service_level: bool) -> Courses:
    """Return the courses of a matrix of counts or values.

    A subroutine that no sample holds any more takes no CPU; a metric without points says nothing.

    Args:
        matrix: Series of one source, whose last window ends at ``end``.
        end: Epoch seconds.
        service_level: Whether they are service-level metrics.
    """
    values, weights = values_and_weights(matrix)
    weights = np.broadcast_to(weights, values.shape)
    if service_level:
        absent = np.full(len(matrix.totals), np.nan)
        nothing = np.zeros(len(matrix.totals))
    else:
        absent, nothing = np.where(matrix.totals > 0, 0.0, np.nan), matrix.totals
    rows = rows_by_series(matrix)
    return Courses(end, matrix.resolution_s, rows, np.vstack([values, absent]), np.vstack([weights, nothing]))
