"""Counts of a dataset's folder: totals and series, of the whole service and by strata."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.backtest.checks import Grid, added, check_once, compact, read_counts
from pipeline.backtest.labels import (
    LabelColumns,
    check_labels,
    folded,
    label_columns,
    label_names,
    read_labels,
)
from pipeline.backtest.tables import Columns, Texts, read_parquet, write_parquet
from pipeline.files.listing import listed
from pipeline.model import METRIC_KINDS, FloatArray, IntArray, MetricKind, SeriesKey, is_gcpu
from pipeline.model.errors import ConfigError
from pipeline.model.strata import Stratum, StratumCounts

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Totals:
    """All samples of a service by window, and by stratum if the file has label columns."""

    grid: Grid
    labels: LabelColumns
    position: IntArray  # (rows,) windows
    counts: FloatArray  # (rows,)
    strata: tuple[Stratum, ...]  # strata counted separately; empty without label columns
    kept: IntArray  # (distinct strata of the file,) positions in ``strata``

    @cached_property
    def whole(self) -> FloatArray:
        """(windows,) samples of the service."""
        whole: FloatArray = added(self.position, self.counts, (1, self.grid.windows))[0]
        return whole

    @cached_property
    def by_stratum(self) -> FloatArray:
        """(strata, windows) samples of the strata that are counted separately."""
        shape = len(self.strata), self.grid.windows
        if not self.strata:
            return np.zeros(shape)
        cells = self.kept[self.labels.rows] * self.grid.windows + self.position
        return added(cells, self.counts, shape)

    @cached_property
    def row_of(self) -> dict[Stratum, int]:
        """Position of each stratum among the distinct ones of the file."""
        return {stratum: row for row, stratum in enumerate(self.labels.strata)}

    def of(self, stratum: IntArray, position: IntArray) -> FloatArray:
        """Return (rows,) totals of the file's strata at windows, 0 where the file has none."""
        cells = self.labels.rows * self.grid.windows + self.position
        order = np.argsort(cells)
        wanted = stratum * self.grid.windows + position
        nearest = np.minimum(np.searchsorted(cells, wanted, sorter=order), max(len(cells) - 1, 0))
        if not len(cells):
            return np.zeros(len(wanted))
        return np.where(cells[order[nearest]] == wanted, self.counts[order[nearest]], 0.0)


@dataclass(frozen=True, slots=True)
class SeriesCounts:
    """The counts of series, sorted by kind and name."""

    series: tuple[SeriesKey, ...]
    samples: FloatArray  # (series, windows)
    by_stratum: StratumCounts | None


def write_totals(
    path: Path, grid: Grid, totals: FloatArray, strata: Sequence[Stratum], by_stratum: FloatArray
) -> None:
    """Write the totals of windows, or of strata and windows if there are strata.

    Raises:
        ConfigError: the file cannot be written, or a label has the name of a column.
    """
    row, position = np.nonzero(by_stratum if strata else totals[np.newaxis])
    counts = by_stratum[row, position] if strata else totals[position]
    write_parquet(
        path,
        {
            "service": Texts(np.zeros(len(row), dtype=np.int64), (grid.service,)),
            "timestamp": grid.start + position * grid.width_s,
            "total": counts.astype(np.int64),
            **(label_columns(strata, row) if strata else {}),
        },
    )


def write_series(
    path: Path, grid: Grid, series: Sequence[SeriesKey], samples: FloatArray, totals: FloatArray
) -> None:
    """Write the counts of series in windows.

    Raises:
        ConfigError: the file cannot be written.
    """
    row, position = np.nonzero(samples)
    write_parquet(
        path,
        {
            **_series_columns(grid, series, row, position),
            "samples": samples[row, position].astype(np.int64),
            "total": totals[position].astype(np.int64),
        },
    )


def write_strata(
    path: Path, grid: Grid, series: Sequence[SeriesKey], strata: Sequence[Stratum], counts: StratumCounts
) -> None:
    """Write the counts of series by stratum and stack window; ``grid`` has the stack windows.

    Raises:
        ConfigError: the file cannot be written, or a label has the name of a column.
    """
    write_parquet(
        path,
        {
            **_series_columns(grid, series, counts.series, counts.window),
            "samples": counts.samples.astype(np.int64),
            **label_columns(strata, counts.stratum),
        },
    )


def read_totals(path: Path, grid: Grid) -> Totals:
    """Read totals.parquet; its columns of text besides ``service`` are labels.

    Raises:
        ConfigError: the file, row and column that is wrong.
    """
    columns = read_parquet(path)
    position = grid.positions(columns)
    counts = read_counts(columns, "total")
    names = label_names(columns)
    check_labels(columns, names)
    labels = read_labels(columns, names)
    check_once(columns, labels.rows * grid.windows + position)
    sums = added(labels.rows, counts, (1, len(labels.strata)))[0]
    if not labels.names:
        return Totals(grid, labels, position, counts, (), np.zeros(1, dtype=np.int64))
    strata, folded_into = folded(labels.strata, sums, grid.windows)
    if len(strata) < len(labels.strata):
        apart = len(strata) - 1
        log.warning("%s: %d strata, of which the %d largest are kept apart", path, len(labels.strata), apart)
    return Totals(grid, labels, position, counts, strata, folded_into)


def read_series(path: Path, totals: Totals, stack_grid: Grid) -> SeriesCounts:
    """Read series.parquet; label columns are those of totals.parquet, all or some or none of them.

    Raises:
        ConfigError: the file, row and column that is wrong.
    """
    columns, grid = read_parquet(path), totals.grid
    position = grid.positions(columns)
    counts = read_counts(columns, "samples")
    total = columns.numbers("total")
    stratum = _strata_of(columns, totals)
    wanted = totals.whole[position] if stratum is None else totals.of(stratum, position)
    if len(wrong := np.flatnonzero(total != wanted)):
        first = int(wrong[0])
        columns.refuse(first, "total", f"{total[first]:.0f} here, {wanted[first]:.0f} in totals.parquet")
    if len(wrong := np.flatnonzero(counts > total)):
        first = int(wrong[0])
        columns.refuse(first, "samples", f"{counts[first]:.0f} of a total of {total[first]:.0f}")
    series, row = _series_of(columns)
    hint = _unknown_labels(columns, totals)
    if stratum is None:
        check_once(columns, row * grid.windows + position, hint=hint)
        by_stratum = None
    else:
        distinct = len(totals.labels.strata)
        keys = (row * distinct + stratum) * grid.windows + position
        order = check_once(columns, keys, hint=hint)
        folded_into = totals.kept[stratum]
        window = np.minimum((position * grid.width_s // stack_grid.width_s), stack_grid.windows - 1)
        by_stratum = summed(row[order], folded_into[order], window[order].astype(np.int64), counts[order])
    samples = added(row * grid.windows + position, counts, (len(series), grid.windows))
    return SeriesCounts(series, samples, by_stratum)


def read_strata(path: Path, found: SeriesCounts, totals: Totals, stack_grid: Grid) -> SeriesCounts:
    """Read strata.parquet, the counts of series by labels and stack window; it may be missing.

    Raises:
        ConfigError: the file, row and column that is wrong; or series.parquet has labels, or other sums.
    """
    if not path.exists():
        return found
    columns = read_parquet(path)
    position = stack_grid.positions(columns)
    counts = read_counts(columns, "samples")
    stratum = _strata_of(columns, totals)
    if stratum is None:
        raise ConfigError(f"{path}: no label column; totals.parquet has {listed(totals.labels.names)}")
    if found.by_stratum is not None:
        raise ConfigError(f"{path}: series.parquet has labels already")
    row_of = {series: row for row, series in enumerate(found.series)}
    series, row = _series_of(columns)
    known_rows = np.array([row_of.get(key, -1) for key in series], dtype=np.int64)
    row = known_rows[row]
    if len(wrong := np.flatnonzero(row < 0)):
        columns.refuse(int(wrong[0]), "metric", "not in series.parquet")
    distinct = len(totals.labels.strata)
    order = check_once(columns, (row * distinct + stratum) * stack_grid.windows + position)
    _check_sums(columns, row, position, counts, found, totals.grid, stack_grid)
    by_stratum = summed(row[order], totals.kept[stratum][order], position[order], counts[order])
    return SeriesCounts(found.series, found.samples, by_stratum)


def _check_sums(
    columns: Columns,
    row: IntArray,
    position: IntArray,
    counts: FloatArray,
    file_series: SeriesCounts,
    grid: Grid,
    stack_grid: Grid,
) -> None:
    """Check that the strata of a series add up to it in every stack window."""
    windows = stack_grid.windows
    window = np.minimum(np.arange(grid.windows) * grid.width_s // stack_grid.width_s, windows - 1)
    wanted = np.zeros((len(file_series.series), windows))
    np.add.at(wanted.T, window.astype(np.int64), file_series.samples.T)
    sums = added(row * windows + position, counts, (len(file_series.series), windows))
    if len(wrong := np.argwhere(sums != wanted)):
        series, at = wrong[0].tolist()
        rows = np.flatnonzero((row == series) & (position == at))
        kind, name = file_series.series[series]
        text = f"{sums[series, at]:.0f} of {kind} {name} here, {wanted[series, at]:.0f} in series.parquet"
        if not len(rows):
            raise ConfigError(f"{columns.path}: samples: {text}")
        columns.refuse(int(rows[0]), "samples", text)


def summed(series: IntArray, stratum: IntArray, window: IntArray, counts: FloatArray) -> StratumCounts:
    """Add up counts by series, stratum and window; entries come in the order of these."""
    if not len(series):
        return StratumCounts(series, stratum, window, counts)
    strata, windows = int(stratum.max()) + 1, int(window.max()) + 1
    keys = (series * strata + stratum) * windows + window
    order = np.argsort(keys, kind="stable")
    firsts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    sums = np.add.reduceat(counts[order], firsts)
    used = keys[order][firsts][sums > 0]
    rest, window = np.divmod(used, windows)
    series, stratum = np.divmod(rest, strata)
    return StratumCounts(series, stratum, window, sums[sums > 0])


def _strata_of(columns: Columns, totals: Totals) -> IntArray | None:
    """Return (rows,) indexes into the distinct strata of totals.parquet; None without their labels."""
    names = [name for name in totals.labels.names if name in columns.names]
    if not names:
        return None
    labels = read_labels(columns, names)
    positions = np.array([totals.row_of.get(stratum, -1) for stratum in labels.strata], dtype=np.int64)
    rows = positions[labels.rows]
    if len(wrong := np.flatnonzero(rows < 0)):
        _refuse_stratum(columns, names[0], int(wrong[0]), labels)
    return rows


def _refuse_stratum(columns: Columns, name: str, row: int, labels: LabelColumns) -> None:
    """Raise a ConfigError about the labels of a row."""
    stratum = labels.strata[labels.rows[row]]
    pairs = [("host", stratum.host), ("release", stratum.release), *stratum.labels]
    shown = ", ".join(f"{key} {value!r}" for key, value in pairs if value) or "no label"
    columns.refuse(row, name, f"no row of totals.parquet has {shown}")


def _unknown_labels(columns: Columns, totals: Totals) -> str:
    """Return the hint for a repeated row, if a column of text distinguishes the two; else ""."""
    names = [name for name in label_names(columns) if name not in totals.labels.names]
    return f" ({names[0]!r} is no label: totals.parquet has no such column)" if names else ""


def _series_of(columns: Columns) -> tuple[tuple[SeriesKey, ...], IntArray]:
    """Return the series of a file, sorted by kind and name, and the (rows,) index of each row's series."""
    kinds, names = columns.texts("metric_kind"), columns.texts("metric")
    allowed = {kind for kind in METRIC_KINDS if is_gcpu(kind)}
    for code, kind in enumerate(kinds.values):
        if kind not in allowed and code in kinds.codes:
            columns.refuse(int(np.flatnonzero(kinds.codes == code)[0]), "metric_kind", f"unknown: {kind!r}")
    count = len(kinds.values)
    used, row = compact(names.codes * count + kinds.codes, max(len(names.values) * count, 1))
    keys = [SeriesKey(_kind(kinds.values[k % count]), names.values[k // count]) for k in used.tolist()]
    row_of = {key: position for position, key in enumerate(sorted(set(keys)))}
    return tuple(row_of), np.array([row_of[key] for key in keys], dtype=np.int64)[row]


def _kind(name: str) -> MetricKind:
    return next(kind for kind in METRIC_KINDS if kind == name)


def _series_columns(
    grid: Grid, series: Sequence[SeriesKey], row: IntArray, position: IntArray
) -> dict[str, Texts | NDArray[Any]]:
    kinds = sorted({kind for kind, _ in series})
    kind_of = np.array([kinds.index(kind) for kind, _ in series], dtype=np.int64)
    return {
        "service": Texts(np.zeros(len(row), dtype=np.int64), (grid.service,)),
        "metric_kind": Texts(kind_of[row], tuple(kinds)),
        "metric": Texts(row, tuple(name for _, name in series)),
        "timestamp": grid.start + position * grid.width_s,
    }
