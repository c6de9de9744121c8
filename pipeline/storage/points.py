"""Values of one service in coordinate form, in order of time: what was inserted one row at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.model import FloatArray, IntArray, SeriesKey

Frames = tuple[str, ...]


class Points:
    """Points (series, time, value) that are summed or averaged by windows."""

    def __init__(self) -> None:
        self._keys: dict[SeriesKey, int] = {}
        self._chunks: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._sorted: tuple[list[SeriesKey], IntArray, IntArray, FloatArray] | None = None

    def add(self, series: Sequence[SeriesKey], times_ms: IntArray, values: FloatArray) -> None:
        """Add points, given by three parallel sequences."""
        rows = [self._keys.setdefault(key, len(self._keys)) for key in series]
        self._chunks.append((np.array(rows, dtype=np.int64), times_ms, values))
        self._sorted = None

    def sums(
        self, start_ms: int, end_ms: int, resolution_ms: int, names: Sequence[SeriesKey] | None = None
    ) -> tuple[list[SeriesKey], FloatArray]:
        """Return the series with a point in [start, end), sorted, and their sums; 0 where none is.

        With ``names``, only series among them are looked at.
        """
        series, _, sums = self._by_window(start_ms, end_ms, resolution_ms, names)
        return series, sums

    def means(
        self, start_ms: int, end_ms: int, resolution_ms: int, names: Sequence[SeriesKey] | None = None
    ) -> tuple[list[SeriesKey], FloatArray]:
        """Return the series with a point in [start, end), sorted, and their means; NaN where none is.

        With ``names``, only series among them are looked at.
        """
        series, counts, sums = self._by_window(start_ms, end_ms, resolution_ms, names)
        return series, np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)

    def _by_window(
        self, start_ms: int, end_ms: int, resolution_ms: int, names: Sequence[SeriesKey] | None
    ) -> tuple[list[SeriesKey], IntArray, FloatArray]:
        series, rows, times, values = self._in_order()
        first, last = np.searchsorted(times, [start_ms, max(start_ms, end_ms)])
        rows, times, values = rows[first:last], times[first:last], values[first:last]
        if names is not None:
            asked = set(names)
            chosen = np.array([key in asked for key in series], dtype=np.bool_)[rows]
            rows, times, values = rows[chosen], times[chosen], values[chosen]
        windows = max(0, -(-(end_ms - start_ms) // resolution_ms))
        present = np.flatnonzero(np.bincount(rows, minlength=len(series)))
        position = np.searchsorted(present, rows) * windows + (times - start_ms) // resolution_ms
        size, shape = len(present) * windows, (len(present), windows)
        sums: FloatArray = np.bincount(position, values, minlength=size).astype(np.float64, copy=False)
        counts: IntArray = np.bincount(position, minlength=size).astype(np.int64, copy=False)
        return [series[i] for i in present.tolist()], counts.reshape(shape), sums.reshape(shape)

    def _in_order(self) -> tuple[list[SeriesKey], IntArray, IntArray, FloatArray]:
        """Return the series sorted by name, and all points sorted by time."""
        if self._sorted is None:
            nothing = np.empty(0, dtype=np.int64)
            chunks = [(nothing, nothing, np.empty(0)), *self._chunks]
            rows, times, values = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
            self._chunks = [(rows, times, values)]
            series = sorted(self._keys)
            rank = np.empty(len(series), dtype=np.int64)
            rank[[self._keys[key] for key in series]] = np.arange(len(series))
            order = np.argsort(times, kind="stable")
            self._sorted = series, rank[rows][order], times[order], values[order]
        return self._sorted


class StackPoints:
    """Counts of stacks in windows that each know their own width."""

    def __init__(self) -> None:
        self._frames: dict[int, Frames] = {}
        self._rows: list[tuple[int, int, int, float]] = []  # (stack id, first ms, last ms, samples)

    def add(
        self,
        ids: Sequence[int],
        frames: Sequence[Sequence[str]],
        times_ms: Sequence[int],
        widths_s: Sequence[float],
        samples: Sequence[float],
    ) -> None:
        """Add counts, given by parallel sequences."""
        for row in zip(ids, frames, times_ms, widths_s, samples, strict=True):
            stack_id, stack, first, width_s, count = row
            self._frames.setdefault(int(stack_id), tuple(stack))
            self._rows.append((int(stack_id), int(first), int(first) + round(width_s * 1000), float(count)))

    def frames(self, ids: Sequence[int]) -> list[Frames]:
        """Return the stacks of ids; of one that is not known none."""
        return [self._frames.get(key, ()) for key in ids]

    def within(
        self, spans_ms: Sequence[tuple[int, int]]
    ) -> tuple[NDArray[np.uint64], list[Frames], FloatArray]:
        """Return ids, stacks and counts (stacks, spans) of windows that lie wholly inside a span."""
        found: dict[int, list[float]] = {}
        for stack_id, first, last, count in self._rows:
            for position, (start, end) in enumerate(spans_ms):
                if start <= first and last <= end:
                    found.setdefault(stack_id, [0.0] * len(spans_ms))[position] += count
        counts = np.array(list(found.values())).reshape(len(found), len(spans_ms))
        return np.array(list(found), dtype=np.uint64), [self._frames[key] for key in found], counts
