"""Parts of a matrix of series: some of its rows, or what follows a window."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from pipeline.model import BoolArray, FloatArray, SeriesKey, SeriesMatrix


def rows_by_series(matrix: SeriesMatrix) -> dict[SeriesKey, int]:
    """Return the row of each series of a matrix."""
    return {key: row for row, key in enumerate(matrix.series)}


def select_rows(matrix: SeriesMatrix, rows: Sequence[int]) -> SeriesMatrix:
    """Return some rows of a matrix, in the order given."""
    return replace(
        matrix,
        kinds=tuple(matrix.kinds[row] for row in rows),
        names=tuple(matrix.names[row] for row in rows),
        samples=matrix.samples[list(rows)],
    )


def slice_rows(matrix: SeriesMatrix, first: int, end: int) -> SeriesMatrix:
    """Return the rows [first, end) of a matrix, without a copy of its samples."""
    return replace(
        matrix,
        kinds=matrix.kinds[first:end],
        names=matrix.names[first:end],
        samples=matrix.samples[first:end],
    )


def select_series(matrix: SeriesMatrix, series: Collection[SeriesKey]) -> SeriesMatrix:
    """Return some series of a matrix, in its order; those that it lacks are absent."""
    return select_rows(matrix, [row for key, row in rows_by_series(matrix).items() if key in series])


def first_windows(matrix: SeriesMatrix, windows: int) -> SeriesMatrix:
    """Return a matrix up to a window, without a copy of its samples."""
    return replace(
        matrix,
        samples=matrix.samples[:, :windows],
        totals=matrix.totals[:windows],
        share_factor=None if matrix.share_factor is None else matrix.share_factor[:windows],
    )


def drop_windows(matrix: SeriesMatrix, windows: int) -> SeriesMatrix:
    """Return a matrix without its first windows."""
    return replace(
        matrix,
        start=matrix.start + windows * matrix.resolution_s,
        samples=matrix.samples[:, windows:],
        totals=matrix.totals[windows:],
        share_factor=None if matrix.share_factor is None else matrix.share_factor[windows:],
    )


def has_history(has_data: BoolArray, least: float) -> BoolArray:
    """Return True for series with data for long enough to be judged: (series,).

    A service that runs in office hours, or reports in one window of three, has data for as long as another:
    what counts is how often it had data against how often it has of late, in the last quarter. Of one that
    has been silent since then nothing is known, so it is judged as one that always has data: a trial run long
    before the start is no history.

    Args:
        has_data: (series, windows) of the history, where there is data.
        least: Share of its windows in which a series must have had data, if of late it has in all.
    """
    return np.asarray(has_data.mean(axis=1) >= least_history(has_data, least))


def least_history(has_data: BoolArray, least: float) -> FloatArray:
    """Return the share of the history's windows in which each series must have data: (series,)."""
    recent = has_data[:, -max(1, has_data.shape[1] // 4) :].mean(axis=1)
    return np.asarray(least * np.where(recent > 0, recent, 1.0))
