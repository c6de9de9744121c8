"""Datasets on disk: what is written is read, and every mistake is named by file, row and key."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.backtest.dataset import Dataset, read_dataset, write_dataset
from pipeline.model import MetricMetadata
from pipeline.model.errors import ConfigError
from tests.unit.storage.test_arrays import T0
from tests.unit.storage.test_arrays import build as build_small


def build() -> Dataset:
    data = build_small()
    return replace(data, totals=data.totals + 10)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("dataset")
    write_dataset(replace(build(), truth=({"id": "r1", "delta": 0.1},), meta={"seed": 7}), path)
    return path


def test_what_is_written_is_read(written: Path) -> None:
    data, found = build(), read_dataset(written)
    for key in ("service", "start", "end", "window_s", "stack_window_s", "changes"):
        assert getattr(found, key) == getattr(data, key)
    assert found.names == ("a.f", "b.g")  # c.never had no sample
    np.testing.assert_array_equal(found.samples, data.samples[[1, 0]])
    np.testing.assert_array_equal(found.totals, data.totals)
    rows = [data.stacks.index(stack) for stack in found.stacks]
    np.testing.assert_array_equal(found.stack_samples, data.stack_samples[rows])
    assert [(m.metric, m.setup) for m in found.metrics] == [("rps", False), ("version", True)]
    np.testing.assert_array_equal(found.metrics[0].timestamps, data.metrics[0].timestamps)
    np.testing.assert_array_equal(found.metrics[0].values, data.metrics[0].values)
    assert (found.truth, found.meta) == (({"id": "r1", "delta": 0.1},), {"seed": 7})


def test_what_is_said_of_metrics_is_written_where_anything_is(written: Path, tmp_path: Path) -> None:
    assert set(pq.read_schema(written / "metrics.parquet").names).isdisjoint({"unit", "kind", "direction"})
    rps, version = build().metrics
    write_dataset(replace(build(), metrics=(replace(rps, kind="throughput", unit="1/s"), version)), tmp_path)
    assert "direction" not in pq.read_schema(tmp_path / "metrics.parquet").names
    found = [points.metadata for points in read_dataset(tmp_path).metrics]
    assert found == [MetricMetadata("1/s", "throughput"), MetricMetadata()]


def test_metadata_may_be_missing_and_the_last_counts(written: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(written, tmp_path / "said")
    table = pq.read_table(folder / "metrics.parquet")
    times, names = table["timestamp"].to_pylist(), table["metric"].to_pylist()
    last = max(time for time, name in zip(times, names, strict=True) if name == "rps")
    said = [
        None if name == "version" else "up" if time == last else "down"
        for time, name in zip(times, names, strict=True)
    ]
    pq.write_table(table.append_column("direction", pa.array(said)), folder / "metrics.parquet")
    assert [points.direction for points in read_dataset(folder).metrics] == ["up", ""]
    wrong = table.append_column("direction", pa.array(["sideways"] * len(said)))
    pq.write_table(wrong, folder / "metrics.parquet")
    with pytest.raises(ConfigError, match="row 1: direction: should be up, down, none, not 'sideways'"):
        read_dataset(folder)


def test_a_service_with_nothing_is_written_and_read(tmp_path: Path) -> None:
    data = build()
    empty = replace(
        data,
        kinds=(),
        names=(),
        samples=data.samples[:0],
        totals=data.totals * 0,
        stacks=(),
        stack_samples=data.stack_samples[:0],
        metrics=(),
        changes=(),
    )
    write_dataset(empty, tmp_path)
    found: Dataset = read_dataset(tmp_path)
    assert (found.names, found.stacks, found.metrics, found.changes) == ((), (), (), ())
    assert found.totals.tolist() == [0] * 12


def change_cell(column: str, row: int, value: object) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        table = pq.read_table(path)
        values = table.column(column).to_pylist()
        values[row] = value
        pq.write_table(table.set_column(table.column_names.index(column), column, pa.array(values)), path)

    return spoil


def drop(column: str) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pq.read_table(path).drop_columns([column]), path)


def twice(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), path)


def text(content: str) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        path.write_text(content)

    return spoil


BAD = {
    "no head": ("dataset.json", Path.unlink, "dataset.json: No such file"),
    "head not JSON": ("dataset.json", text("{"), "dataset.json: not JSON"),
    "another version": ("dataset.json", text('{"version": 2}'), "dataset.json: version: should be 1"),
    "no service": ("dataset.json", text('{"version": 1}'), "dataset.json: service: missing"),
    "no totals": ("totals.parquet", Path.unlink, "totals.parquet: No such file"),
    "not Parquet": ("series.parquet", text("hello"), "series.parquet: not a Parquet file"),
    "column missing": ("series.parquet", drop("samples"), "series.parquet: no column 'samples'; it has"),
    "null": ("series.parquet", change_cell("metric", 1, None), "series.parquet: row 2: metric: missing"),
    "negative": ("series.parquet", change_cell("samples", 2, -1), "row 3: samples: negative"),
    "more than the total": ("series.parquet", change_cell("samples", 0, 99), "row 1: samples: 99 of a total"),
    "another total": ("series.parquet", change_cell("total", 0, 77), "row 1: total: 77 here,"),
    "wrong type": ("series.parquet", change_cell("total", 0, None), "row 1: total: missing"),
    "off the grid": ("series.parquet", change_cell("timestamp", 3, T0 + 61), "row 4: timestamp:"),
    "outside": ("totals.parquet", change_cell("timestamp", 0, T0 - 60), "totals.parquet: row 1: timestamp:"),
    "unknown kind": (
        "series.parquet",
        change_cell("metric_kind", 0, "latency"),
        "row 1: metric_kind: unknown",
    ),
    "another service": ("series.parquet", change_cell("service", 4, "other"), "row 5: service: 'other'"),
    "point twice": ("series.parquet", twice, "timestamp: stands in an earlier row"),
    "stack without frames": (
        "stacks.parquet",
        change_cell("stack_id", 0, 5),
        "row 1: stack_id: not in frames",
    ),
    "NaN": ("metrics.parquet", change_cell("value", 0, float("nan")), "row 1: value: should be a finite"),
    "change": ("changes.jsonl", text('{"id": "1"}\n'), "changes.jsonl:1: time: missing"),
    "truth": ("truth.jsonl", text('{"id": "1"}\n\n[]\n'), "truth.jsonl:3: should be a JSON object"),
}


@pytest.mark.parametrize(("name", "spoil", "message"), BAD.values(), ids=BAD.keys())
def test_a_mistake_is_named(
    written: Path, tmp_path: Path, name: str, spoil: Callable[[Path], None], message: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(written, folder)
    spoil(folder / name)
    with pytest.raises(ConfigError) as error:
        read_dataset(folder)
    assert message in str(error.value)
