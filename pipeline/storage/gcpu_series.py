"""Counts of gCPU as series × windows, within bounds of memory, and the rollups that they are read from.

A rollup has the counts of all series in one window of a scan: one row per series, however many partitions
and minutes the counts came in. It holds for as long as ``totals`` has the number of samples in the window
that it had before the rollup was made. Counts only add, and ``totals`` is written after ``gcpu``: so where
that number is the same, nothing was added since, and where samples came late, it is another.
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
"""Most counts that one query returns, about 50 MB of them: the rest of a service comes by the next."""

MOST_ROLLED = 200
"""Most windows of one rollup query: their totals travel in its URL."""

Columns = Callable[[str, int, Mapping[str, Any]], Sequence[Sequence[Any]]]
"""Runs a query of so many columns with parameters and returns these."""

Numbers = Callable[[str, Mapping[str, Any]], NDArray[np.void]]
"""Runs a query of numbers with parameters and returns its rows, with its columns as fields."""

Run = Callable[[str, Mapping[str, Any]], None]
"""Runs a statement with parameters."""

_MOST_TEXT = 100  # characters


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one service that are read; the last one may be cut by the end."""

    service: str
    start_ms: int
    end_ms: int
    resolution_ms: int

    def __len__(self) -> int:
        return max(0, -(-(self.end_ms - self.start_ms) // self.resolution_ms))

    @property
    def whole(self) -> int:
        """How many of them are not cut."""
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

    def part(self, first: int, last: int) -> Windows:
        """Return the windows from one to before another."""
        start_ms = self.start_ms + first * self.resolution_ms
        end_ms = min(self.end_ms, self.start_ms + last * self.resolution_ms)
        return replace(self, start_ms=start_ms, end_ms=end_ms)


@dataclass(frozen=True, slots=True)
class _Part:
    """Windows of one table that are read, and where they begin among all."""

    table: Literal["gcpu", "gcpu_rollup"]
    windows: Windows
    first: int = 0
    totals: FloatArray | None = None  # (windows,) what rows must agree with, NaN where none is taken


@dataclass(frozen=True, slots=True)
class Slice:
    """Series that are read by one query: rows of the matrix, and the parameters that choose them."""

    first: int
    last: int
    values: Mapping[str, Any]


class GcpuSeries:
    """Reads counts of gCPU through the queries of a store."""

    def __init__(self, columns: Columns, numbers: Numbers, run: Run) -> None:
        self._columns = columns
        self._numbers = numbers
        self._run = run

    def read(
        self, windows: Windows, chosen: Sequence[Mapping[str, Any]] | None
    ) -> tuple[list[SeriesKey], FloatArray, FloatArray]:
        """Return the series that have counts, as ClickHouse orders them, counts, and totals by windows.

        Args:
            windows: That are read.
            chosen: Parameters that choose series, in parts that each fit into a URL; None for all series.
        """
        totals = self._totals(windows)  # first: what comes in meanwhile makes rollups stale, not wrong
        if chosen is not None and not chosen:
            return [], np.zeros((0, len(windows))), totals
        parts = self._parts(windows, totals)
        names: dict[SeriesKey, int] = {}
        found: list[Slice] = []
        if chosen is None:
            names = self._names(parts, "all", {})
            found = slices(list(names), MOST_CELLS // max(1, len(windows)))
        else:
            for values in chosen:  # parts are in order, and hold no series twice
                first = len(names)
                names |= self._names(parts, "chosen", values)
                found.append(Slice(first, len(names), values))
        ids = np.array(list(names.values()), dtype=np.uint64)
        matrix = np.zeros((len(names), len(windows)))
        present = np.zeros(len(names), dtype=np.bool_)
        for one in found:
            rows = slice(one.first, one.last)
            for part in parts:
                self._fill(matrix[rows], present[rows], ids[rows], part, one.values)
        if present.all():
            return list(names), matrix, totals
        return [key for key, there in zip(names, present, strict=True) if there], matrix[present], totals

    def roll_up(self, windows: Windows) -> None:
        """Make the rollups of whole windows that there are none of, or that hold no more."""
        totals = self._totals(windows)
        missing = np.flatnonzero(~self._rolled_up(windows, totals)[: windows.whole])
        runs = list(_runs(missing))
        if not runs:
            return
        # Once for all: rows are in order of their names, so every look at these reads them all.
        every = windows.part(runs[0][0], runs[-1][1])
        names = list(self._names([_Part("gcpu", every)], "all", {}))
        for first, last in runs:
            part = windows.part(first, last)
            numbers = [int(total) for total in totals[first:last]]
            for one in slices(names, MOST_CELLS // len(part)):
                self._run(queries.ROLL_UP, {**part.values, **one.values, "totals": numbers})
            self._run(queries.ROLL_UP_WHOLE, {**part.values, "totals": numbers})

    def _totals(self, windows: Windows) -> FloatArray:
        found = self._numbers(queries.TOTALS, windows.values)
        totals = np.zeros(len(windows))
        if len(found):
            totals[found["place"]] = found["count"]
        return totals

    def _rolled_up(self, windows: Windows, totals: FloatArray) -> BoolArray:
        """Return of which windows a rollup holds: (windows,)."""
        holds = np.zeros(len(windows), dtype=np.bool_)
        if not windows.whole:
            return holds
        found = self._numbers(queries.ROLLED_UP, windows.values)
        if len(found):
            window = found["place"]
            holds[window[totals[window] == found["count"]]] = True
            holds[windows.whole :] = False
        return holds

    def _parts(self, windows: Windows, totals: FloatArray) -> list[_Part]:
        """Return what is read of each table: of gcpu a span with all windows that no rollup holds of."""
        holds = self._rolled_up(windows, totals)
        others = np.flatnonzero(~holds)
        if not len(others):
            return [_Part("gcpu_rollup", windows, totals=totals)]
        first, last = int(others[0]), int(others[-1]) + 1
        read = _Part("gcpu", windows.part(first, last), first)
        if last - first == len(windows):
            return [read]
        outside = totals.copy()
        outside[first:last] = np.nan
        return [read, _Part("gcpu_rollup", windows, totals=outside)]

    def _names(
        self, parts: Sequence[_Part], which: Literal["all", "chosen"], values: Mapping[str, Any]
    ) -> dict[SeriesKey, int]:
        """Return series with the hash by which counts name them, in ClickHouse's order."""
        names: dict[SeriesKey, int] = {}
        for part in parts:
            given = {**part.windows.values, **values}
            kinds, known, ids = self._columns(queries.GCPU_NAMES[part.table, which], 3, given)
            names.update(zip(map(SeriesKey, kinds, known), ids, strict=True))
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
        """Write the counts of one slice of series into their rows, and note which rows have any."""
        which = "all" if "beyond" in values else "chosen"
        counts = self._numbers(queries.GCPU_COUNTS[part.table, which], {**part.windows.values, **values})
        if not len(counts) or not len(ids):
            return
        order = np.argsort(ids)
        row = order[np.minimum(np.searchsorted(ids, counts["series"], sorter=order), len(ids) - 1)]
        taken = ids[row] == counts["series"]  # others came in since the names were read
        if part.totals is not None:
            taken &= part.totals[counts["place"]] == counts["total"]
        row, counts = row[taken], counts[taken]
        matrix[row, part.first + counts["place"].astype(np.intp)] = counts["count"]
        present[row] = True


def slices(keys: Sequence[SeriesKey], size: int) -> list[Slice]:
    """Cut series that are in order into slices of about so many, each a span of names of one kind.

    It is cut where a short text divides two names, for it travels in a URL.
    """
    found: list[Slice] = []
    first = 0
    for kind, group in groupby(keys, key=lambda key: key.kind):
        names = [key.name for key in group]
        bounds = [(0, "")]
        for index in range(1, len(names)):
            if index - bounds[-1][0] >= max(1, size) and (text := _divide(names[index - 1], names[index])):
                bounds.append((index, text))
        bounds.append((len(names), ""))
        for (start, text), (end, beyond) in pairwise(bounds):
            found.append(Slice(first + start, first + end, {"kind": kind, "first": text, "beyond": beyond}))
        first += len(names)
    return found


def _divide(one: str, other: str) -> str:
    """Return the shortest beginning of the second name that is after the first; empty if it is long."""
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    return other[: same + 1] if same < _MOST_TEXT else ""


def _runs(windows: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Yield spans of windows in a row, from one to before another, of MOST_ROLLED at most."""
    for run in np.split(windows, np.flatnonzero(np.diff(windows) != 1) + 1):
        for part in range(0, len(run), MOST_ROLLED):
            some = run[part : part + MOST_ROLLED]
            yield int(some[0]), int(some[-1]) + 1
