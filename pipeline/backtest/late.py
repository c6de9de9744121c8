"""Samples that arrive late, and a store as it was before they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from pipeline.model import FloatArray, IntArray, SeriesKey, SeriesMatrix, StrataMatrix
from pipeline.model.strata import Stratum
from pipeline.storage.interface import Answer, CountQuery, SeriesQuery, Store, StrataQuery
from pipeline.storage.view import StoreView

_Key = TypeVar("_Key", SeriesKey, Stratum)


@dataclass(frozen=True, slots=True)
class Late:
    """A part of a dataset's samples that arrives ``delay_s`` after the end of each window."""

    delay_s: float
    samples: FloatArray  # (series, windows)
    totals: FloatArray  # (windows,)
    stratum_totals: FloatArray  # (strata, windows)


@dataclass(frozen=True, slots=True)
class LateService:
    """What is late of one service. Window i starts at ``start + i * window_s``, epoch seconds."""

    service: str
    start: float
    window_s: float
    series: tuple[SeriesKey, ...]
    strata: tuple[Stratum, ...]
    parts: tuple[Late, ...]


class StoreInThePast(StoreView):
    """A Store as it was at ``now``, event time: without what was on its way.

    Series and totals are exact. Stacks, and counts of series by stratum, are those that come to be: their
    windows are longer than most delays.
    """

    def __init__(self, store: Store, late: LateService) -> None:
        super().__init__(store)
        self._late = late
        self._series = {series: row for row, series in enumerate(late.series)}
        self._strata = {stratum: row for row, stratum in enumerate(late.strata)}
        self.now = float("inf")

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return series without what was on its way; see Store.series."""
        matrix = self._store.series(query)
        if query.source != "gcpu" or query.service != self._late.service:
            return matrix
        samples, totals = np.array(matrix.samples), np.array(matrix.totals)
        for part in self._late.parts:
            hidden, column = self._hidden(part, matrix.start, matrix.resolution_s, len(totals))
            _take_away(samples, matrix.series, self._series, part.samples[:, hidden], column)
            np.subtract.at(totals, column, part.totals[hidden])
        return replace(matrix, samples=np.clip(samples, 0.0, totals), totals=totals)

    def counts(self, query: CountQuery[Answer]) -> Answer:
        """Return the senders of what had arrived, and other counts as they come to be; see Store.counts."""
        if isinstance(query, StrataQuery) and query.service == self._late.service:
            return self._arrived(self._store.counts(query))
        return self._store.counts(query)

    def _arrived(self, matrix: StrataMatrix) -> StrataMatrix:
        totals = np.array(matrix.totals)
        for part in self._late.parts:
            hidden, column = self._hidden(part, matrix.start, matrix.resolution_s, totals.shape[1])
            _take_away(totals, matrix.strata, self._strata, part.stratum_totals[:, hidden], column)
        return replace(matrix, totals=totals)

    def _hidden(
        self, part: Late, start: float, resolution_s: float, windows: int
    ) -> tuple[IntArray, IntArray]:
        """Return the windows that had not arrived, and those of a matrix that they are in."""
        late = self._late
        end = late.start + (np.arange(len(part.totals)) + 1) * late.window_s
        hidden = np.flatnonzero(end + part.delay_s > self.now + 1e-6)
        column = np.floor((end[hidden] - late.window_s - start) / resolution_s + 1e-9).astype(np.int64)
        inside = (column >= 0) & (column < windows)
        return hidden[inside], column[inside]


def _take_away(
    counts: FloatArray,
    keys: Sequence[_Key],
    row_of: Mapping[_Key, int],
    late: FloatArray,
    column: IntArray,
) -> None:
    """Take counts away from a matrix, which is changed.

    Args:
        counts: (keys, windows).
        keys: What the rows are of.
        row_of: The row of ``late`` that each is of.
        late: (rows, late windows).
        column: (late windows,) the window of ``counts`` that each is in.
    """
    pairs = [(here, row_of[key]) for here, key in enumerate(keys) if key in row_of]
    if pairs and len(column):
        here, there = np.array(pairs).T
        np.subtract.at(counts, (here[:, np.newaxis], column), late[there])
