"""Counts of gCPU are read in slices, so that reading takes little more memory than the matrix itself."""

from __future__ import annotations

import tracemalloc
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.storage import gcpu_series, queries
from pipeline.storage.gcpu_series import GcpuSeries, StoredWindows

SERIES, WINDOWS, SET = 2000, 1000, 300
NAMES = [f"m.f{number:06d}" for number in range(SERIES)]
TOTAL = np.dtype([("place", np.int64), ("count", np.float64)])
COUNT = np.dtype([("series", np.uint64), ("place", np.int64), ("count", np.float64)])


def columns(_sql: str, _width: int, _values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    return [["subroutine"] * SERIES, NAMES, range(SERIES)]


def numbers(sql: str, values: Mapping[str, Any]) -> NDArray[np.void]:
    if sql != queries.GCPU_COUNTS["gcpu", "all"]:
        return np.empty(0, TOTAL)  # neither totals nor rollups
    first = bisect_left(NAMES, values["first"])
    last = bisect_left(NAMES, values["beyond"]) if values["beyond"] else SERIES
    counts = np.ones((last - first) * SET, COUNT)
    counts["series"] = np.repeat(np.arange(first, last), SET)
    counts["place"] = np.tile(np.arange(SET), last - first)
    return counts


def test_reading_takes_little_more_memory_than_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gcpu_series, "MOST_CELLS", 100 * WINDOWS)
    tracemalloc.start()
    _, matrix, _ = GcpuSeries(columns, numbers, lambda *_: None).read(StoredWindows("s", 0, WINDOWS, 1), None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert matrix.sum() == SERIES * SET
    assert peak < 1.25 * matrix.nbytes
