"""Counts of one service by stratum, in coordinate form and in order of time."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.model import FloatArray, IntArray, SeriesKey, StrataMatrix, Stratum
from pipeline.storage.interface import Table
from pipeline.storage.loaded import ServiceArrays
from pipeline.storage.schema import to_ms

_Key = TypeVar("_Key", bound=Hashable)


class StrataPoints:
    """Samples by stratum and window, and by series, stratum and coarser window."""

    def __init__(self) -> None:
        self._strata: dict[int, int] = {}  # id → row
        self._series: dict[SeriesKey, int] = {}
        self._totals = _Columns(3)  # window ms, stratum, samples
        self._counts = _Columns(5)  # first ms, last ms, stratum, series, samples
        self._stacks: dict[int, int] = {}  # id → row
        self._stack_counts = _Columns(5)  # first ms, last ms, stratum, stack, samples

    def add_totals(
        self,
        strata: tuple[Iterable[int], IntArray],
        times_ms: NDArray[np.number],
        samples: NDArray[np.number],
    ) -> None:
        """Add all samples of strata in windows: strata and which of them each is of, starts and samples."""
        self._totals.add(times_ms, _rows_of(self._strata, strata[0])[strata[1]], samples)

    def add_counts(
        self,
        series: tuple[Iterable[SeriesKey], IntArray],
        strata: tuple[Iterable[int], IntArray],
        spans_ms: tuple[NDArray[np.number], NDArray[np.number]],
        samples: NDArray[np.number],
    ) -> None:
        """Add samples of series.

        Args:
            series: Series, and which of them each count is of: (counts,).
            strata: Strata, and which of them each count is of: (counts,).
            spans_ms: Start and end of the window of each count: (counts,) each.
            samples: (counts,).
        """
        rows = _rows_of(self._series, series[0])[series[1]]
        stratum = _rows_of(self._strata, strata[0])[strata[1]]
        self._counts.add(spans_ms[0], spans_ms[1], stratum, rows, samples)

    def add_stacks(
        self,
        stacks: Iterable[int],
        strata: Iterable[int],
        spans_ms: tuple[NDArray[np.number], NDArray[np.number]],
        samples: NDArray[np.number],
    ) -> None:
        """Add samples of stacks: ids of the stack and the stratum of each count, and its window."""
        rows, stratum = _rows_of(self._stacks, stacks), _rows_of(self._strata, strata)
        self._stack_counts.add(spans_ms[0], spans_ms[1], stratum, rows, samples)

    def stacks_within(
        self, spans_ms: Sequence[tuple[int, int]], sides: Sequence[Collection[int]]
    ) -> tuple[NDArray[np.uint64], FloatArray]:
        """Return ids of stacks, and counts (stacks, spans) of a span's strata in windows wholly inside."""
        ids = np.array(list(self._stacks), dtype=np.uint64)
        sums = np.zeros((len(ids), len(spans_ms)))
        for column, ((start, end), side) in enumerate(zip(spans_ms, sides, strict=True)):
            _, last_ms, stratum, row, samples = self._stack_counts.within(start, end)
            wanted = np.array([key in side for key in self._strata], dtype=np.bool_)
            inside = (last_ms <= end) & wanted[stratum.astype(np.int64)]
            np.add.at(sums[:, column], row[inside].astype(np.int64), samples[inside])
        some = sums.any(axis=1)
        return ids[some], sums[some]

    def matrix(
        self,
        span_ms: tuple[int, int],
        resolution_ms: int,
        named: Mapping[int, Stratum],
        asked: Collection[SeriesKey] | None,
    ) -> StrataMatrix:
        """Return what lies in a span; see Store.strata. ``named`` says what each stratum is."""
        start, end = span_ms
        windows = max(0, -(-(end - start) // resolution_ms))
        first_ms, stratum, samples = self._totals.within(start, end)
        totals = np.zeros((len(self._strata), windows))
        window = (first_ms.astype(np.int64) - start) // resolution_ms
        np.add.at(totals, (stratum.astype(np.int64), window), samples)
        ids = list(self._strata)
        present = np.flatnonzero(totals.any(axis=1)).tolist()
        strata = {row: named.get(ids[row]) or Stratum.of({"stratum": str(ids[row])}) for row in present}
        order = sorted(present, key=strata.__getitem__)
        keys, counts, counted = self._sums(start, end, order, asked)
        return StrataMatrix(
            start=start / 1000,
            resolution_s=resolution_ms / 1000,
            strata=tuple(strata[row] for row in order),
            totals=totals[order],
            series=keys,
            samples=counts,
            counted=counted,
        )

    def width_s(self, end_ms: int) -> float:
        """Return the width of the last window of counts that begins before a time; 0 where none does."""
        first_ms, last_ms, *_ = self._counts.within(0, end_ms)
        return float(last_ms[-1] - first_ms[-1]) / 1000 if len(first_ms) else 0.0

    def _sums(
        self, start: int, end: int, strata: Sequence[int], asked: Collection[SeriesKey] | None
    ) -> tuple[tuple[SeriesKey, ...], FloatArray, tuple[float, float]]:
        """Return series with a sample in windows wholly inside, sorted, and their counts (series, strata).

        And the time that those windows are of.
        """
        if asked is not None and not asked:
            return (), np.zeros((0, len(strata))), (0.0, 0.0)
        first_ms, last_ms, stratum, series, samples = self._counts.within(start, end)
        inside = last_ms <= end
        rank = np.full(len(self._strata), -1)
        rank[list(strata)] = np.arange(len(strata))
        keys = list(self._series)
        column, row = rank[stratum[inside].astype(np.int64)], series[inside].astype(np.int64)
        known = column >= 0
        cell = row[known] * len(strata) + column[known]
        found = np.bincount(cell, samples[inside][known], minlength=len(keys) * len(strata))
        counts: FloatArray = found.astype(np.float64).reshape(len(keys), len(strata))
        wanted = None if asked is None else set(asked)
        order = sorted(
            (i for i in np.flatnonzero(counts.any(axis=1)).tolist() if wanted is None or keys[i] in wanted),
            key=keys.__getitem__,
        )
        some = bool(inside.any())
        edges = (float(first_ms[inside].min()), float(last_ms[inside].max())) if some else (0.0, 0.0)
        return tuple(keys[i] for i in order), counts[order], (edges[0] / 1000, edges[1] / 1000)


class _Columns:
    """Parallel columns of numbers, sorted by the first when they are asked for."""

    def __init__(self, columns: int) -> None:
        self._chunks: list[tuple[FloatArray, ...]] = [tuple(np.empty(0) for _ in range(columns))]
        self._sorted = True

    def add(self, *columns: NDArray[np.number]) -> None:
        self._chunks.append(tuple(np.asarray(column, dtype=np.float64) for column in columns))
        self._sorted = False

    def within(self, start: int, end: int) -> tuple[FloatArray, ...]:
        """Return the rows whose first column lies in [start, end)."""
        if not self._sorted:
            columns = [np.concatenate(parts) for parts in zip(*self._chunks, strict=True)]
            order = np.argsort(columns[0], kind="stable")
            self._chunks, self._sorted = [tuple(column[order] for column in columns)], True
        columns = list(self._chunks[0])
        low, high = np.searchsorted(columns[0], [start, max(start, end)])
        return tuple(column[low:high] for column in columns)


def _rows_of(index: dict[_Key, int], keys: Iterable[_Key]) -> IntArray:
    """Return the row of each key, which are added to the index."""
    return np.array([index.setdefault(key, len(index)) for key in keys], dtype=np.int64)


def load_strata(held: StrataPoints, data: ServiceArrays) -> None:
    """Take in who sent the samples of a service."""
    ids = [stratum.id for stratum in data.strata]
    start_ms, width_ms, coarse_ms = map(to_ms, (data.start, data.window_s, data.stack_window_s))
    row, window = np.nonzero(data.stratum_totals)
    held.add_totals((ids, row), start_ms + window * width_ms, data.stratum_totals[row, window])
    if (counts := data.stratum_samples) is not None:
        first_ms = start_ms + counts.window * coarse_ms
        spans_ms = (first_ms, first_ms + coarse_ms)
        held.add_counts((data.series, counts.series), (ids, counts.stratum), spans_ms, counts.samples)


def strata_columns(data: ServiceArrays) -> dict[str, list[Any]]:
    """Return the rows of ``strata`` of a service."""
    rows = [stratum.row for stratum in data.strata]
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    return columns | {"service": [data.service] * len(rows), "time": [data.start] * len(rows)}


def add_strata_rows(table: Table, held: StrataPoints, data: Mapping[str, list[Any]]) -> None:
    """Add counted rows of one service by stratum."""
    times_ms = np.array(data["window"], dtype=np.int64)
    samples, every = np.array(data["samples"], dtype=np.float64), np.arange(len(times_ms))
    if table == "strata_totals":
        held.add_totals((data["stratum"], every), times_ms, samples)
        return
    spans_ms = (times_ms, times_ms + np.rint(1000 * np.array(data["width_s"])).astype(np.int64))
    if table == "strata_stacks":
        held.add_stacks(data["stack_id"], data["stratum"], spans_ms, samples)
        return
    series = map(SeriesKey, data["kind"], data["subroutine"])
    held.add_counts((series, every), (data["stratum"], every), spans_ms, samples)
