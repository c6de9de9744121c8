"""Counts of gCPU as series × windows, within bounds of memory, and their rollups.

A rollup has the counts of all series in one window of a scan: one row per series, for all partitions and
minutes. It is valid while ``totals`` has the same number of samples in the window as before the rollup was
made. Counts are only added, and ``totals`` is written after ``gcpu``: an equal number means that nothing was
added since, and late samples change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.model import BoolArray, FloatArray, SeriesKey
from pipeline.storage import queries

MOST_CELLS = 2_000_000
"""Most counts that one query returns, about 50 MB; further queries return the rest of a service."""

MOST_ROLLED = 200
"""Most windows of one rollup query, whose URL holds their totals."""

Columns = Callable[[str, int, Mapping[str, Any]], Sequence[Sequence[Any]]]
"""Runs a query with a number of columns and parameters, and returns the columns."""

Numbers = Callable[[str, Mapping[str, Any]], NDArray[np.void]]
"""Runs a query of numbers with parameters, and returns its rows with the columns as fields."""

Run = Callable[[str, Mapping[str, Any]], None]
"""Runs a statement with parameters."""

_MOST_TEXT = 100  # characters


@dataclass(frozen=True, slots=True)
class StoredWindows:
    """Windows of one service; the end may cut the last one."""

    service: str
    start_ms: int
    end_ms: int
    resolution_ms: int

    def __len__(self) -> int:
        return max(0, -(-(self.end_ms - self.start_ms) // self.resolution_ms))

    @property
    def whole(self) -> int:
        """Number of windows that are not cut."""
        return max(0, (self.end_ms - self.start_ms) // self.resolution_ms)

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of queries."""
        return {
            "service": self.service,
            "start": self.start_ms,
            "end": self.end_ms,
            "resolution": self.resolution_ms,
            "width_s": self.resolution_ms / 1000,
        }

    def part(self, first: int, last: int) -> StoredWindows:
        """Return the windows from ``first`` up to, without, ``last``."""
        start_ms = self.start_ms + first * self.resolution_ms
        end_ms = min(self.end_ms, self.start_ms + last * self.resolution_ms)
        return replace(self, start_ms=start_ms, end_ms=end_ms)


@dataclass(frozen=True, slots=True)
class _Part:
    """Windows to read from one table, and the index of the first among all windows."""

    table: Literal["gcpu", "gcpu_rollup"]
    windows: StoredWindows
    first: int = 0
    totals: FloatArray | None = (
        None  # (windows,) rows must have this total; NaN: no row of the window is used
    )


@dataclass(frozen=True, slots=True)
class SeriesSlice:
    """Series of one query: their rows of the matrix, and the parameters that select them."""

    first: int
    last: int
    values: Mapping[str, Any]


class GcpuSeries:
    """Reader of counts of gCPU, through the queries of a store."""

    def __init__(self, columns: Columns, numbers: Numbers, run: Run) -> None:
        self._columns = columns
        self._numbers = numbers
        self._run = run

    def read(
        self, windows: StoredWindows, chosen: Sequence[Mapping[str, Any]] | None
    ) -> tuple[list[SeriesKey], FloatArray, FloatArray]:
        """Return the series with counts in ClickHouse's order, (series, windows) counts, (windows,) totals.

        Args:
            windows: The windows to read.
            chosen: Parameters that select series, in parts that each fit into a URL; None for all series.
        """
        totals = self._totals(windows)  # first: counts added meanwhile make rollups stale, not wrong
        if chosen is not None and not chosen:
            return [], np.zeros((0, len(windows))), totals
        parts = self._parts(windows, totals)
        names: dict[SeriesKey, int] = {}
        query_slices: list[SeriesSlice] = []
        if chosen is None:
            names = self._names(parts, "all", {})
            query_slices = slices(list(names), MOST_CELLS // max(1, len(windows)))
        else:
            for values in chosen:  # parts are in order and have no series in common
                first = len(names)
                names |= self._names(parts, "chosen", values)
                query_slices.append(SeriesSlice(first, len(names), values))
        ids = np.array(list(names.values()), dtype=np.uint64)
        matrix = np.zeros((len(names), len(windows)))
        present = np.zeros(len(names), dtype=np.bool_)
        for query_slice in query_slices:
            rows = slice(query_slice.first, query_slice.last)
            for part in parts:
                self._fill(matrix[rows], present[rows], ids[rows], part, query_slice.values)
        if present.all():
            return list(names), matrix, totals
        return (
            [key for key, is_present in zip(names, present, strict=True) if is_present],
            matrix[present],
            totals,
        )

    def roll_up(self, windows: StoredWindows) -> None:
        """Make the rollups of whole windows that are missing or no longer valid."""
        totals = self._totals(windows)
        missing = np.flatnonzero(~self._rolled_up(windows, totals)[: windows.whole])
        runs = list(_runs(missing))
        if not runs:
            return
        # One query for all runs: rows are ordered by name, so a query of few windows reads all rows too.
        every = windows.part(runs[0][0], runs[-1][1])
        names = list(self._names([_Part("gcpu", every)], "all", {}))
        for first, last in runs:
            part = windows.part(first, last)
            numbers = [int(total) for total in totals[first:last]]
            for query_slice in slices(names, MOST_CELLS // len(part)):
                self._run(queries.ROLL_UP, {**part.values, **query_slice.values, "totals": numbers})
            self._run(queries.ROLL_UP_WHOLE, {**part.values, "totals": numbers})

    def _totals(self, windows: StoredWindows) -> FloatArray:
        counts = self._numbers(queries.TOTALS, windows.values)
        totals = np.zeros(len(windows))
        if len(counts):
            totals[counts["place"]] = counts["count"]
        return totals

    def _rolled_up(self, windows: StoredWindows, totals: FloatArray) -> BoolArray:
        """Return (windows,) whether the rollup of a window is valid."""
        holds = np.zeros(len(windows), dtype=np.bool_)
        if not windows.whole:
            return holds
        rollups = self._numbers(queries.ROLLED_UP, windows.values)
        if len(rollups):
            window = rollups["place"]
            holds[window[totals[window] == rollups["count"]]] = True
            holds[windows.whole :] = False
        return holds

    def _parts(self, windows: StoredWindows, totals: FloatArray) -> list[_Part]:
        """Return the windows to read per table: from gcpu one span with all windows without valid rollup."""
        holds = self._rolled_up(windows, totals)
        stale = np.flatnonzero(~holds)
        if not len(stale):
            return [_Part("gcpu_rollup", windows, totals=totals)]
        first, last = int(stale[0]), int(stale[-1]) + 1
        read = _Part("gcpu", windows.part(first, last), first)
        if last - first == len(windows):
            return [read]
        outside = totals.copy()
        outside[first:last] = np.nan
        return [read, _Part("gcpu_rollup", windows, totals=outside)]

    def _names(
        self, parts: Sequence[_Part], which: Literal["all", "chosen"], values: Mapping[str, Any]
    ) -> dict[SeriesKey, int]:
        """Return the series, in ClickHouse's order, with the hashes by which counts refer to them."""
        names: dict[SeriesKey, int] = {}
        for part in parts:
            parameters = {**part.windows.values, **values}
            kinds, texts, ids = self._columns(queries.GCPU_NAMES[part.table, which], 3, parameters)
            names.update(zip(map(SeriesKey, kinds, texts), ids, strict=True))
        if len(parts) < 2:
            return names
        return dict(sorted(names.items(), key=lambda item: (item[0].kind.encode(), item[0].name.encode())))

    def _fill(
        self,
        matrix: FloatArray,
        present: BoolArray,
        ids: NDArray[np.uint64],
        part: _Part,
        values: Mapping[str, Any],
    ) -> None:
        """Write the counts of one slice of series into their rows, and mark the rows that have any."""
        which = "all" if "beyond" in values else "chosen"
        counts = self._numbers(queries.GCPU_COUNTS[part.table, which], {**part.windows.values, **values})
        if not len(counts) or not len(ids):
            return
        order = np.argsort(ids)
        row = order[np.minimum(np.searchsorted(ids, counts["series"], sorter=order), len(ids) - 1)]
        taken = ids[row] == counts["series"]  # other series were added since the names were read
        if part.totals is not None:
            taken &= part.totals[counts["place"]] == counts["total"]
        row, counts = row[taken], counts[taken]
        matrix[row, part.first + counts["place"].astype(np.intp)] = counts["count"]
        present[row] = True


def slices(keys: Sequence[SeriesKey], size: int) -> list[SeriesSlice]:
    """Cut sorted series into slices of about ``size``, each a span of names of one kind.

    Cuts are made only where a short text separates two names, since the text is part of a URL.
    """
    cut: list[SeriesSlice] = []
    first = 0
    for kind, group in groupby(keys, key=lambda key: key.kind):
        names = [key.name for key in group]
        bounds = [(0, "")]
        for index in range(1, len(names)):
            if index - bounds[-1][0] >= max(1, size) and (text := _divide(names[index - 1], names[index])):
                bounds.append((index, text))
        bounds.append((len(names), ""))
        for (start, text), (end, beyond) in pairwise(bounds):
            cut.append(
                SeriesSlice(first + start, first + end, {"kind": kind, "first": text, "beyond": beyond})
            )
        first += len(names)
    return cut


def _divide(lower: str, upper: str) -> str:
    """Return the shortest prefix of ``upper`` that sorts after ``lower``; "" if it is too long."""
    same = next((i for i, (a, b) in enumerate(zip(lower, upper, strict=False)) if a != b), len(lower))
    return upper[: same + 1] if same < _MOST_TEXT else ""


def _runs(windows: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Yield spans (first, end) of consecutive windows, of at most MOST_ROLLED."""
    for run in np.split(windows, np.flatnonzero(np.diff(windows) != 1) + 1):
        for part in range(0, len(run), MOST_ROLLED):
            chunk = run[part : part + MOST_ROLLED]
            yield int(chunk[0]), int(chunk[-1]) + 1
