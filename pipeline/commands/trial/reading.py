"""Files of trials: ``trial, side, metric, value``, a row a point, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.backtest.tables import read_table
from pipeline.errors import ConfigError
from pipeline.model import FloatArray, IntArray

SIDES = ("A", "B")


@dataclass(frozen=True, slots=True)
class Points:
    """The points of one metric on both sides of each trial, in the order of the file."""

    metric: str
    trials: tuple[str, ...]
    a: FloatArray  # (trials, points), NaN after a trial's last one
    b: FloatArray


def read_trials(path: Path) -> dict[str, Points]:
    """Return the points of each metric of a CSV or Parquet file.

    Raises:
        ConfigError: what is wrong, with file, and row or trial: a column is missing, a side is neither A nor
            B, a
            value is no finite number or less than 0, or a trial has one side only.
    """
    columns = read_table(path)
    trial, side, metric = (columns.texts(name) for name in ("trial", "side", "metric"))
    values = columns.numbers("value")
    strange = [name for name in side.values if name not in SIDES]
    if strange:
        row = int(np.flatnonzero(side.codes == side.values.index(strange[0]))[0])
        columns.refuse(row, "side", f"should be A or B, is {strange[0]!r}")
    if not len(values):
        raise ConfigError(f"{path}: holds no points")
    on_b = np.array([name == "B" for name in side.values])[side.codes]
    result = {}
    for code, name in enumerate(metric.values):
        rows = np.flatnonzero(metric.codes == code)
        numbers, dense = np.unique(trial.codes[rows], return_inverse=True)
        sides = [_rows_of(dense[of], values[rows[of]], len(numbers)) for of in (~on_b[rows], on_b[rows])]
        names = tuple(trial.values[number] for number in numbers)
        for points, label in zip(sides, SIDES, strict=True):
            empty = np.flatnonzero(np.isnan(points).all(axis=1)) if points.shape[1] else np.arange(1)
            if len(empty):
                raise ConfigError(f"{path}: trial {names[empty[0]]}: {name}: side {label} has no points")
        _check_values(path, name, *sides)
        result[name] = Points(name, names, *sides)
    return result


def _check_values(path: Path, metric: str, a: FloatArray, b: FloatArray) -> None:
    """Refuse what has no relative difference: costs, times and rates are positive."""
    if min(float(np.nanmin(a)), float(np.nanmin(b))) < 0:
        raise ConfigError(f"{path}: {metric}: holds values less than 0, whose share of side A means nothing")
    if not float(np.nanmax(a)):
        raise ConfigError(f"{path}: {metric}: the mean of side A is 0, and nothing is a share of that")


def _rows_of(trial: IntArray, values: FloatArray, trials: int) -> FloatArray:
    """Return values as a row for each trial, in their order: (trials, most points of one)."""
    order = np.argsort(trial, kind="stable")
    counts = np.bincount(trial, minlength=trials)
    column = np.arange(len(trial)) - np.repeat(np.cumsum(counts) - counts, counts)
    result = np.full((trials, int(counts.max(initial=0))), np.nan)
    result[trial[order], column] = values[order]
    return result
