"""Tables of requests by period, of two releases: what `smidgen release requests` reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.analysis.published.liao2021.baseline import SlowerType, compare_response_times
from pipeline.backtest.seriesfile import Series, read_series
from pipeline.commands.terminal import print_note
from pipeline.files.listing import listed
from pipeline.model import FloatArray, is_time_column, time_column, time_type
from pipeline.model.errors import ConfigError
from pipeline.releases.requests import ReleasePeriods, Releases, align, joined, merged, periods_a_point


class RequestTable:
    """The series of one release's file.

    Args:
        path: Of the file.
        starts: (periods,) epoch seconds, ascending.
        columns: Name → (periods,) values.
    """

    def __init__(self, path: Path, starts: FloatArray, columns: dict[str, FloatArray]) -> None:
        self.path = path
        self.starts = starts
        self.columns = columns

    @classmethod
    def read(cls, path: Path) -> RequestTable:
        """Read a file whose series have the same times."""
        all_series = read_series(path, plain=True)
        starts = all_series[0].timestamps
        if starts is None:
            raise ConfigError(f"{path}: has no column of times")
        for series in all_series:
            if series.timestamps is None or not np.array_equal(series.timestamps, starts):
                raise ConfigError(f"{path}: {series.metric}: has other times than {all_series[0].metric}")
        if len(starts) < 2:
            raise ConfigError(f"{path}: has {len(starts)} period, and two at least are needed")
        return cls(path, starts, {series.metric: series.levels for series in all_series})

    @property
    def width_s(self) -> float:
        """Length of a period: the smallest distance between two starts."""
        return float(np.diff(self.starts).min())


def build_releases(
    sides: Sequence[RequestTable], extra: Sequence[Series], metric: str, metrics: Sequence[str]
) -> Releases:
    """Return both releases' periods with one metric; columns of other metrics are not types."""
    names = dict.fromkeys(name for side in sides for name in side.columns)
    types = tuple(name for name in names if name not in metrics and not is_time_column(name))
    if not types:
        raise ConfigError(f"{sides[0].path}: has no type of request beside the metrics")
    return Releases(types, *(_periods(side, extra, metric, types) for side in sides))


def slower_types(sides: Sequence[RequestTable], alpha: float) -> list[SlowerType]:
    """Compare response times alone (Liao et al., §2); each period's mean is one observation."""
    old, new = (
        {
            time_type(name): values[np.isfinite(values)]
            for name, values in side.columns.items()
            if is_time_column(name)
        }
        for side in sides
    )
    if not old or not new:
        path = sides[1 if old else 0].path
        raise ConfigError(
            f"--baseline: {path}: has no response times, such as a column {time_column('GET /')}"
        )
    return compare_response_times(old, new, alpha)


def _periods(
    side: RequestTable, extra: Sequence[Series], metric: str, types: tuple[str, ...]
) -> ReleasePeriods:
    """Return a release's periods with a metric; periods are made as long as the metric's points are apart."""
    for name in types:
        if name in side.columns and (side.columns[name] < 0.0).any():
            raise ConfigError(f"{side.path}: {name}: has a count that is negative")
    values, many = _metric(side, extra, metric)
    if many > 1:
        print_note(
            f"{side.path}: {metric} has a point each {many * side.width_s:g} s: {many} periods are one"
        )
    return merged(joined(side.starts, side.columns, values, types), side.width_s, many)


def _metric(side: RequestTable, extra: Sequence[Series], name: str) -> tuple[FloatArray, int]:
    """Return a metric's value in each period of a release, and how many of them its points are apart."""
    if name in side.columns:
        return side.columns[name], 1
    for series in extra:
        if series.metric == name:
            if series.timestamps is None:
                raise ConfigError(f"--metrics: {name}: has no times")
            times = series.timestamps[np.isfinite(series.levels)]
            values = align(side.starts, side.width_s, series.timestamps, series.levels)
            return values, periods_a_point(side.width_s, times)
    names = (*side.columns, *(series.metric for series in extra))
    raise ConfigError(f"--metric: no series {name!r}; there are {listed(names, name)}")
