"""Datasets from plain series: points of any spacing become windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.backtest.checks import check_size
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.seriesfile import Series
from pipeline.messages.records import plain
from pipeline.model import FloatArray, IntArray, MetricPoints
from pipeline.model.clock import to_iso
from pipeline.model.errors import ConfigError
from pipeline.settings.workloads import Workload


def common_window_s(workloads: Sequence[Workload]) -> float:
    """Return the widest window, in whole milliseconds, that divides every workload's resolution."""
    return math.gcd(*(round(workload.resolution_s * 1000) for workload in workloads)) / 1000


def build_datasets(series: Sequence[Series], path: Path, *, window_s: float) -> tuple[Dataset, ...]:
    """Return one dataset per service, in the order of their names.

    Samples of the same window add up, as do the totals of a service's distinct times. A series without a row
    at a time of another series of its service had no sample then. There are no stacks.

    Raises:
        ConfigError: two series of a service differ in their total at the same time.
    """
    return tuple(
        _build([entry for entry in series if entry.service == service], path, window_s)
        for service in sorted({entry.service for entry in series})
    )


def _build(series: Sequence[Series], path: Path, window_s: float) -> Dataset:
    times = [entry.timestamps for entry in series if entry.timestamps is not None]
    start = math.floor(min(float(t.min()) for t in times) / window_s) * window_s
    windows = int((max(float(t.max()) for t in times) - start) // window_s) + 1
    counted = [entry for entry in series if entry.totals is not None]
    span = f"{to_iso(start)} to {to_iso(start + windows * window_s)}"
    check_size(len(counted), windows, f"{path}: timestamp: {span}")
    samples = np.zeros((len(counted), windows))
    for row, entry in enumerate(counted):
        np.add.at(samples[row], _positions(entry, start, window_s), entry.values)
    return Dataset(
        service=series[0].service,
        start=start,
        end=start + windows * window_s,
        window_s=window_s,
        stack_window_s=window_s,
        kinds=tuple(entry.kind for entry in counted),
        names=tuple(entry.metric for entry in counted),
        samples=samples,
        totals=_totals(counted, path, start, window_s, windows),
        stacks=(),
        stack_samples=np.zeros((0, windows)),
        metrics=tuple(
            MetricPoints(entry.service, entry.metric, entry.timestamps, entry.values, **plain(entry.metadata))
            for entry in series
            if entry.totals is None and entry.timestamps is not None
        ),
        changes=(),
    )


def _positions(points: Series, start: float, window_s: float) -> IntArray:
    assert points.timestamps is not None
    positions: IntArray = ((points.timestamps - start) // window_s).astype(np.int64)
    return positions


def _totals(counted: Sequence[Series], path: Path, start: float, window_s: float, windows: int) -> FloatArray:
    summed = np.zeros(windows)
    if not counted:
        return summed
    times = np.concatenate([entry.timestamps for entry in counted if entry.timestamps is not None])
    totals = np.concatenate([entry.totals for entry in counted if entry.totals is not None])
    order = np.argsort(times, kind="stable")
    times, totals = times[order], totals[order]
    differ = (np.diff(times) == 0) & (np.diff(totals) != 0)
    if differ.any():
        at = int(np.flatnonzero(differ)[0])
        raise ConfigError(
            f"{path}: total: service {counted[0].service!r} has both {totals[at]:g} and {totals[at + 1]:g} "
            f"at {to_iso(float(times[at]))}; it is the number of all its samples"
        )
    distinct, first = np.unique(times, return_index=True)
    np.add.at(summed, ((distinct - start) // window_s).astype(np.int64), totals[first])
    return summed
