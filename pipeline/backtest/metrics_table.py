"""The file of a data set's service-level metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.analysis.detect.metric_direction import DIRECTIONS
from pipeline.backtest.checks import check_moments, check_service
from pipeline.backtest.seriesfile import METADATA
from pipeline.backtest.tables import Columns, Texts, read_parquet, write_parquet
from pipeline.model import MetricPoints


def write_metrics(service: str, metrics: Sequence[MetricPoints], path: Path) -> None:
    """Write the points of a service's metrics, and what is said of them where anything is.

    Raises:
        ConfigError: the file cannot be written to.
    """
    sizes = [len(points.values) for points in metrics]
    of_row = np.repeat(np.arange(len(sizes)), sizes)
    nothing = np.empty(0)
    write_parquet(
        path,
        {
            "service": Texts(np.zeros(len(of_row), dtype=np.int64), (service,)),
            "metric": Texts(of_row, tuple(points.metric for points in metrics)),
            "timestamp": np.concatenate([nothing, *(points.timestamps for points in metrics)]),
            "value": np.concatenate([nothing, *(points.values for points in metrics)]),
            "setup": np.array([points.setup for points in metrics], dtype=np.bool_)[of_row],
            **{
                name: Texts(of_row, tuple(getattr(points, name) for points in metrics))
                for name in METADATA
                if any(getattr(points, name) for points in metrics)
            },
        },
    )


def read_metrics(path: Path, service: str) -> tuple[MetricPoints, ...]:
    """Read the metrics of a service, sorted by name; none if there is no file.

    Raises:
        ConfigError: the row and column that is wrong.
    """
    if not path.exists():
        return ()
    columns = read_parquet(path)
    check_service(columns, service)
    names, setup = columns.texts("metric"), columns.flags("setup")
    timestamps, values = columns.numbers("timestamp"), columns.numbers("value")
    check_moments(columns, timestamps)
    said = {name: _said(columns, name) for name in METADATA if name in columns.names}
    found = []
    key = names.codes * 2 + setup
    order = np.lexsort((timestamps, key))
    bounds = np.flatnonzero(np.diff(key[order], prepend=-1, append=-1))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rows = order[first:last]
        name = names.values[int(names.codes[rows[0]])]
        # What is said last counts.
        metadata = {column: texts.values[int(texts.codes[rows[-1]])] for column, texts in said.items()}
        is_setup = bool(setup[rows[0]])
        found.append(MetricPoints(service, name, timestamps[rows], values[rows], is_setup, **metadata))
    return tuple(sorted(found, key=lambda points: (points.metric, points.setup)))


def _said(columns: Columns, name: str) -> Texts:
    """Return a column of metadata, in which a text may be missing."""
    texts = columns.texts(name, missing="")
    if name == "direction":
        for code, direction in enumerate(texts.values):
            if direction not in ("", *DIRECTIONS) and code in texts.codes:
                row = int(np.flatnonzero(texts.codes == code)[0])
                columns.refuse(row, name, f"should be {', '.join(DIRECTIONS)}, not {direction[:40]!r}")
    return texts
