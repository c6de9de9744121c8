"""Checks of a dataset's columns: one service, windows of its grid, counts, rows that stand once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.backtest.tables import Columns
from pipeline.messages import fields
from pipeline.model import FloatArray, IntArray
from pipeline.model.errors import ConfigError

MOST_POINTS = 2 * 10**8
"""Largest matrix of a dataset, series × windows: 1.6 GB."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The windows of one service: window i starts at ``start + i * width_s``, epoch seconds."""

    service: str
    start: float
    width_s: float
    windows: int

    def positions(self, columns: Columns) -> IntArray:
        """Return which window each row of a file is of, after a check of its service: (rows,).

        Raises:
            ConfigError: a row is of another service, or its timestamp is no start of a window.
        """
        check_service(columns, self.service)
        timestamps = columns.numbers("timestamp")
        exact = (timestamps - self.start) / self.width_s
        position: IntArray = np.rint(exact).astype(np.int64)
        wrong = (np.abs(exact - position) > 1e-3) | (position < 0) | (position >= self.windows)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            columns.refuse(row, "timestamp", f"{timestamps[row]:.3f} is no start of a window of the dataset")
        return position


def check_size(series: int, windows: int, where: str) -> None:
    """Refuse series of more windows than fit into memory: a wrong timestamp makes such of a small file.

    Raises:
        ConfigError: ``where`` and how many windows that would be.
    """
    if max(series, 1) * windows > MOST_POINTS:
        raise ConfigError(f"{where}: {windows} windows of {series} series are more than fit into memory")


def window_count(start: float, end: float, width_s: float) -> int:
    """Return how many windows of a width cover [start, end)."""
    return max(0, int(np.ceil(min((end - start) / width_s, 2.0**62) - 1e-9)))  # the width may be 1e-300


def check_moments(columns: Columns, timestamps: FloatArray) -> None:
    """Check that times lie between 2000 and 2100.

    Raises:
        ConfigError: the row of the first one that does not.
    """
    outside = (timestamps < fields.EARLIEST_S) | (timestamps >= fields.LATEST_S)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        columns.refuse(row, "timestamp", f"{timestamps[row]:g} is not between 2000 and 2100 in epoch seconds")


def check_service(columns: Columns, service: str) -> None:
    """Check that every row is of one service.

    Raises:
        ConfigError: the row of the first one that is not.
    """
    services = columns.texts("service")
    for code, name in enumerate(services.values):
        if name != service and code in services.codes:
            row = int(np.flatnonzero(services.codes == code)[0])
            columns.refuse(row, "service", f"{name!r}, where dataset.json has {service!r}")


def read_counts(columns: Columns, name: str) -> FloatArray:
    """Return a column of counts: (rows,).

    Raises:
        ConfigError: the row of the first one below 0.
    """
    counts: FloatArray = columns.numbers(name)
    if len(wrong := np.flatnonzero(counts < 0)):
        columns.refuse(int(wrong[0]), name, "negative")
    return counts


def check_once(columns: Columns, keys: Any, name: str = "timestamp", hint: str = "") -> IntArray:
    """Check that no key stands twice, and return the order in which keys rise: (rows,).

    Raises:
        ConfigError: the first row whose key an earlier row has, and ``hint``.
    """
    order: IntArray = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(again):
        columns.refuse(int(order[again + 1].min()), name, f"stands in an earlier row already{hint}")
    return order


def compact(keys: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return the keys that occur, in order, and which of them each key is; keys are within [0, size)."""
    if size > 4 * len(keys) + 10**6:
        used, row = np.unique(keys, return_inverse=True)
        return used, row
    used = np.flatnonzero(np.bincount(keys, minlength=size))
    row_of = np.empty(size, dtype=np.int64)
    row_of[used] = np.arange(len(used))
    return used, row_of[keys]


def added(cells: IntArray, counts: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Return a matrix of the counts added up by cell, row × columns + column."""
    sums = np.bincount(cells, weights=counts, minlength=shape[0] * shape[1])
    return np.asarray(sums, dtype=np.float64).reshape(shape)
