"""Files of trials: ``trial, side, metric, value``, perhaps ``request``; a row a point, by time."""

from __future__ import annotations

import io
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.backtest.seriesfile.content import read_content
from pipeline.backtest.tables import Columns, Texts, parse_table
from pipeline.experiments.trials.verdict import Sides
from pipeline.messages.schema.trials import LARGEST, SMALLEST
from pipeline.model import FloatArray, IntArray
from pipeline.model.errors import ConfigError

_Number = TypeVar("_Number", np.float64, np.int64)

SIDES = ("A", "B")

_MOST_CELLS = 10**8  # most trials times points of the longest trial


@dataclass(frozen=True, slots=True)
class NamedTrials:
    """Points of one metric, and the names of the trials that are its rows."""

    trials: tuple[str, ...]
    sides: Sides


def read_trials(path: Path) -> dict[str, Sides]:
    """Return the points of each metric of a file of trials; see read_named_trials."""
    return {name: trials.sides for name, trials in read_named_trials(path).items()}


def read_named_trials(path: Path, metrics: Container[str] | None = None) -> dict[str, NamedTrials]:
    """Return the points of each metric of a CSV or Parquet file, with the names of trials.

    Args:
        path: The file; ``-`` is standard input. What gzip has packed is unpacked.
        metrics: Those that are returned, if not all; what others hold does not matter.

    Raises:
        ConfigError: what is wrong, with file, and row or trial: a column is missing, a side is neither A nor
            B, a value is no finite number or less than 0, or a trial has one side only.
    """
    columns = _columns(path)
    trial, side, metric = (_names(columns, name) for name in ("trial", "side", "metric"))
    values = columns.numbers("value")
    requests = _requests(columns)
    strange = [name for name in side.values if name not in SIDES]
    if strange:
        columns.refuse(_first_row(side, strange[0]), "side", f"should be A or B, is {strange[0]!r}")
    if not len(values):
        raise ConfigError(f"{columns.path}: holds no points")
    on_b = np.array([name == "B" for name in side.values])[side.codes]
    by_metric = np.argsort(metric.codes, kind="stable")
    bounds = np.cumsum(np.bincount(metric.codes, minlength=len(metric.values)))[:-1]
    result = {}
    for name, rows in zip(metric.values, np.split(by_metric, bounds), strict=True):
        if metrics is not None and name not in metrics:
            continue
        numbers, dense = np.unique(trial.codes[rows], return_inverse=True)
        of_sides = (~on_b[rows], on_b[rows])
        for of, label in zip(of_sides, SIDES, strict=True):
            counts = np.bincount(dense[of], minlength=len(numbers))
            if not counts.all():
                without = trial.values[numbers[int(np.argmin(counts))]]
                raise ConfigError(f"{columns.path}: trial {without}: {name}: side {label} has no points")
            if len(counts) * int(counts.max()) > _MOST_CELLS:
                uneven = f"one of {len(counts):,} trials has {counts.max():,} points, which is too uneven"
                raise ConfigError(f"{columns.path}: {name}: side {label}: {uneven}")
        a, b = (_rows_of(dense[of], values[rows[of]], len(numbers)) for of in of_sides)
        _check_values(columns.path, name, a, b)
        sides = Sides(a, b)
        if requests is not None and (requests[rows] >= 0).any():
            of_a, of_b = (
                _rows_of(dense[of], requests[rows[of]], len(numbers), nothing=-1) for of in of_sides
            )
            sides = Sides(a, b, (of_a, of_b))
        result[name] = NamedTrials(tuple(trial.values[number] for number in numbers), sides)
    return result


def _columns(path: Path) -> Columns:
    content = read_content(path)
    return parse_table(io.BytesIO(content.data), Path(content.name), ("trial", "side", "metric", "request"))


def _names(columns: Columns, name: str) -> Texts:
    """Return a column of texts with values that occur in rows: a category may have none."""
    texts = columns.texts(name)
    used = np.flatnonzero(np.bincount(texts.codes, minlength=len(texts.values)))
    if len(used) < len(texts.values):
        texts = Texts(np.searchsorted(used, texts.codes), tuple(texts.values[code] for code in used))
    if "" in texts.values:
        columns.refuse(_first_row(texts, ""), name, "missing")
    return texts


def _requests(columns: Columns) -> IntArray | None:
    """Return the number of each row's request, -1 where it has none; None if the file has no such column."""
    if "request" not in columns.names:
        return None
    labels = columns.labels("request")
    named = np.array([value != "" for value in labels.values], dtype=np.bool_)
    return np.where(named[labels.codes], labels.codes, -1) if len(named) else labels.codes


def _first_row(texts: Texts, value: str) -> int:
    return int(np.argmax(texts.codes == texts.values.index(value)))


def _check_values(path: Path, metric: str, *sides: FloatArray) -> None:
    """Refuse values without a relative difference: costs, times and rates are positive."""
    if min(float(np.nanmin(side)) for side in sides) < 0:
        raise ConfigError(f"{path}: {metric}: holds values less than 0, whose share of side A means nothing")
    if not float(np.nanmax(sides[0])):
        raise ConfigError(f"{path}: {metric}: the mean of side A is 0, and nothing is a share of that")
    for side in sides:
        if ((side > LARGEST) | ((side > 0) & (side < SMALLEST))).any():
            raise ConfigError(f"{path}: {metric}: values should be 0, or from {SMALLEST:g} to {LARGEST:g}")


def _rows_of(
    trial: IntArray, values: NDArray[_Number], trials: int, nothing: float = np.nan
) -> NDArray[_Number]:
    """Return values as one row for each trial, in order: (trials, most points of one)."""
    order = np.argsort(trial, kind="stable")
    counts = np.bincount(trial, minlength=trials)
    column = np.arange(len(trial)) - np.repeat(np.cumsum(counts) - counts, counts)
    result = np.full((trials, int(counts.max(initial=0))), nothing, dtype=values.dtype)
    result[trial[order], column] = values[order]
    return result
