"""Counts of one service as dense matrices: a scan is a slice of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.model import FloatArray, SeriesKey
from pipeline.storage.points import Frames

_MOST_BINNED = 4
"""Re-binned copies that are kept: one for each resolution in use."""


class DenseCounts:
    """Counts of series × windows from ``start_ms`` on, by windows of any width and alignment."""

    def __init__(self, series: Sequence[SeriesKey], counts: FloatArray, start_ms: int, width_ms: int) -> None:
        order = sorted(range(len(series)), key=series.__getitem__)
        self._series = [series[i] for i in order]
        # Rows that are in order already are not copied: they may be most of the memory there is.
        self._counts = counts if order == list(range(len(order))) else counts[order]
        self._start_ms = start_ms
        self._width_ms = width_ms
        self._binned: dict[tuple[int, int], tuple[int, FloatArray]] = {}
        self._row_of = {key: row for row, key in enumerate(self._series)}

    def sums(
        self,
        start_ms: int,
        end_ms: int,
        resolution_ms: int,
        names: Sequence[SeriesKey] | None = None,
    ) -> tuple[list[SeriesKey], FloatArray]:
        """Return the series with a sample in [start, end), sorted, and their counts by windows.

        Windows are aligned to ``start_ms``. The matrix may be a view, and is not to be written to. With
        ``names``, only series among them are looked at.
        """
        windows = max(0, -(-(end_ms - start_ms) // resolution_ms))
        position, counts = self._between(start_ms, end_ms, resolution_ms)
        series = self._series
        if names is not None:
            rows = sorted({self._row_of[key] for key in names if key in self._row_of})
            series, counts = [series[row] for row in rows], counts[rows]
        present = counts.any(axis=1)
        whole = present.all()
        if whole and counts.shape[1] == windows:
            return series, counts
        padded = np.zeros((int(present.sum()), windows))
        padded[:, position : position + counts.shape[1]] = counts if whole else counts[present]
        return [series[i] for i in np.flatnonzero(present).tolist()], padded

    def _between(self, start_ms: int, end_ms: int, resolution_ms: int) -> tuple[int, FloatArray]:
        """Return counts by windows, and the place of the first of them; what lies around them is 0."""
        if resolution_ms < self._width_ms or (end_ms - start_ms) % resolution_ms:
            return self._sum(start_ms, end_ms, resolution_ms)
        first, counts = self._aligned(resolution_ms, start_ms % resolution_ms)
        position = (first - start_ms) // resolution_ms
        wanted = counts[:, max(0, -position) : max(0, (end_ms - first) // resolution_ms)]
        return (max(0, position) if wanted.shape[1] else 0), wanted

    def _aligned(self, resolution_ms: int, phase_ms: int) -> tuple[int, FloatArray]:
        """Return all counts by windows that start at multiples of the resolution plus the phase."""
        if resolution_ms == self._width_ms and self._start_ms % resolution_ms == phase_ms:
            return self._start_ms, self._counts
        key = (resolution_ms, phase_ms)
        if key not in self._binned:
            if len(self._binned) >= _MOST_BINNED:
                self._binned.pop(next(iter(self._binned)))
            first = (self._start_ms - phase_ms) // resolution_ms * resolution_ms + phase_ms
            end = self._start_ms + self._counts.shape[1] * self._width_ms
            position, counts = self._sum(first, end, resolution_ms)
            self._binned[key] = (first + position * resolution_ms, counts)
        return self._binned[key]

    def _sum(self, start_ms: int, end_ms: int, resolution_ms: int) -> tuple[int, FloatArray]:
        at = self._start_ms + self._width_ms * np.arange(self._counts.shape[1])
        first, last = np.searchsorted(at, [start_ms, end_ms])
        if first >= last:
            return 0, np.zeros((len(self._series), 0))
        position = (at[first:last] - start_ms) // resolution_ms
        begins = np.flatnonzero(np.diff(position, prepend=-1))
        sums = np.add.reduceat(self._counts[:, first:last], begins, axis=1)
        at_position = position[begins] - position[0]
        if len(at_position) == at_position[-1] + 1:
            return int(position[0]), sums
        spread = np.zeros((len(self._series), int(at_position[-1]) + 1))
        spread[:, at_position] = sums
        return int(position[0]), spread


class DenseStacks:
    """Counts of stacks × stack windows, as running sums."""

    def __init__(
        self,
        ids: NDArray[np.uint64],
        stacks: Sequence[Frames],
        counts: FloatArray,
        start_ms: int,
        width_ms: int,
    ) -> None:
        self._ids = ids
        self._stacks = stacks
        self._width_ms = width_ms
        self._starts = start_ms + width_ms * np.arange(counts.shape[1])
        self._running = np.zeros((len(ids), counts.shape[1] + 1))
        np.cumsum(counts, axis=1, out=self._running[:, 1:])

    def within(
        self, spans_ms: Sequence[tuple[int, int]]
    ) -> tuple[NDArray[np.uint64], list[Frames], FloatArray]:
        """Return ids, stacks and counts (stacks, spans) of windows that lie wholly inside a span."""
        counts = np.zeros((len(self._ids), len(spans_ms)))
        for position, (start, end) in enumerate(spans_ms):
            first = int(np.searchsorted(self._starts, start))
            last = max(first, int(np.searchsorted(self._starts + self._width_ms, end, side="right")))
            counts[:, position] = self._running[:, last] - self._running[:, first]
        present = np.flatnonzero(counts.any(axis=1))
        return self._ids[present], [self._stacks[i] for i in present.tolist()], counts[present]
