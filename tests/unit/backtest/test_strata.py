"""Label columns of a dataset's folder: strata are read, add up to the whole, and mistakes are named."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.backtest import labels
from pipeline.backtest.dataset import Dataset, read_dataset, write_dataset
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError
from pipeline.model.strata import Stratum, StratumCounts
from tests.unit.storage.test_arrays import STACK_WINDOW, T0, WINDOW, WINDOWS
from tests.unit.storage.test_arrays import build as build_small

EAST, WEST, CANARY = (
    Stratum.of({"region": "east"}, host="h1", release="r1"),
    Stratum.of({"region": "west"}, host="h2", release="r1"),
    Stratum.of({"region": "west"}, host="h2", release="r2"),
)
NAMES = ("b.g", "a.f")
RATIO = round(STACK_WINDOW / WINDOW)


def cells(seed: int = 1, strata: int = 3) -> tuple[FloatArray, FloatArray]:
    """Samples by series, stratum and window, and totals by stratum and window."""
    rng = np.random.default_rng(seed)
    samples = rng.integers(0, 3, (len(NAMES), strata, WINDOWS)).astype(np.float64)
    return samples, samples.sum(axis=0) + rng.integers(0, 2, (strata, WINDOWS))


def by_stack_window(samples: FloatArray) -> FloatArray:
    summed: FloatArray = samples.reshape(*samples.shape[:2], -1, RATIO).sum(axis=3)
    return summed


def dense(counts: StratumCounts, shape: Sequence[int]) -> FloatArray:
    found = np.zeros(shape)
    np.add.at(found, (counts.series, counts.stratum, counts.window), counts.samples)
    return found


def build(strata: tuple[Stratum, ...] = (EAST, WEST, CANARY), seed: int = 1) -> Dataset:
    samples, totals = cells(seed, len(strata))
    coarse = by_stack_window(samples)
    series, stratum, window = np.nonzero(coarse)
    return replace(
        build_small(),
        kinds=("subroutine",) * 2,
        names=NAMES,
        samples=samples.sum(axis=1),
        totals=totals.sum(axis=0),
        strata=strata,
        stratum_totals=totals,
        stratum_samples=StratumCounts(series, stratum, window, coarse[series, stratum, window]),
    )


def texts(values: Sequence[str | None]) -> Any:
    return pa.array(values, pa.string())


def write_rows(path: Path, strata: Sequence[dict[str, str | None]], seed: int = 1) -> None:
    """A folder as others write it: label columns in series, totals and stacks, plain text."""
    samples, totals = cells(seed, len(strata))
    write_dataset(
        replace(build_small(), kinds=("subroutine",) * 2, names=NAMES, samples=samples.sum(axis=1)), path
    )
    keys = list(strata[0])
    row, stratum, window = np.nonzero(samples)
    columns = {
        "service": ["s"] * len(row),
        "metric_kind": ["subroutine"] * len(row),
        "metric": [NAMES[i] for i in row],
        "timestamp": T0 + window * WINDOW,
        "samples": samples[row, stratum, window],
        "total": totals[stratum, window],
        **{key: texts([strata[i][key] for i in stratum.tolist()]) for key in keys},
    }
    pq.write_table(pa.table(columns), path / "series.parquet")
    stratum, window = np.nonzero(totals)
    columns = {
        "service": ["s"] * len(stratum),
        "timestamp": T0 + window * WINDOW,
        "total": totals[stratum, window],
        **{key: texts([strata[i][key] for i in stratum.tolist()]) for key in keys},
    }
    pq.write_table(pa.table(columns), path / "totals.parquet")
    table = pq.read_table(path / "stacks.parquet")
    doubled = [table.append_column("host", texts([host] * table.num_rows)) for host in ("h1", None)]
    pq.write_table(pa.concat_tables(doubled), path / "stacks.parquet")


ROWS: list[dict[str, str | None]] = [
    {"host": "h1", "release": "r1", "region": "east"},
    {"host": "h2", "release": "r1", "region": ""},
    {"host": "h2", "release": None, "region": "west"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path, ROWS)
    return tmp_path


def test_label_columns_are_read(folder: Path) -> None:
    found = read_dataset(folder)
    samples, totals = cells()
    assert found.strata == (
        Stratum.of({"region": "east"}, host="h1", release="r1"),
        Stratum.of({"region": "west"}, host="h2"),
        Stratum(host="h2", release="r1"),
    )
    order = [0, 2, 1]
    np.testing.assert_array_equal(found.stratum_totals, totals[order])
    np.testing.assert_array_equal(found.totals, totals.sum(axis=0))
    assert found.names == ("a.f", "b.g")
    np.testing.assert_array_equal(found.samples, samples.sum(axis=1)[::-1])
    assert found.stratum_samples is not None
    wanted = by_stack_window(samples)[::-1][:, order]
    np.testing.assert_array_equal(dense(found.stratum_samples, wanted.shape), wanted)
    stacks = build_small().stack_samples
    assert found.stack_samples.sum() == 2 * stacks.sum()  # their labels are summed over


def test_what_is_written_is_read(tmp_path: Path) -> None:
    data = build()
    write_dataset(data, tmp_path)
    found = read_dataset(tmp_path)
    assert found.strata == (EAST, WEST, CANARY)
    assert "host" not in pq.read_schema(tmp_path / "series.parquet").names
    np.testing.assert_array_equal(found.stratum_totals, data.stratum_totals)
    assert found.stratum_samples is not None
    assert data.stratum_samples is not None
    shape = (2, 3, WINDOWS // RATIO)
    np.testing.assert_array_equal(
        dense(found.stratum_samples, shape), dense(data.stratum_samples, shape)[::-1]
    )
    plain = build_small()
    write_dataset(replace(plain, totals=plain.totals + 10), tmp_path)
    again = read_dataset(tmp_path)  # of which nothing is known, where strata were before
    assert (again.strata, again.stratum_samples, again.stratum_totals.shape) == ((), None, (0, WINDOWS))


def test_labels_in_totals_alone(tmp_path: Path) -> None:
    data = replace(build(), stratum_samples=None)
    write_dataset(data, tmp_path)
    found = read_dataset(tmp_path)
    assert found.strata == (EAST, WEST, CANARY)
    assert found.stratum_samples is None
    np.testing.assert_array_equal(found.samples, data.samples[::-1])


def test_a_stratum_of_which_nothing_is_known(tmp_path: Path) -> None:
    write_dataset(build((Stratum(),)), tmp_path)
    found = read_dataset(tmp_path)
    assert found.strata == (Stratum(),)
    np.testing.assert_array_equal(found.stratum_totals, found.totals[np.newaxis])


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 1000), hosts=st.integers(1, 6))
def test_strata_add_up_to_the_whole(tmp_path: Path, seed: int, hosts: int) -> None:
    write_rows(tmp_path, [{"host": f"h{number}", "zone": f"z{number % 2}"} for number in range(hosts)], seed)
    found = read_dataset(tmp_path)
    np.testing.assert_array_equal(found.stratum_totals.sum(axis=0), found.totals)
    assert found.stratum_samples is not None
    summed = dense(found.stratum_samples, (len(found.names), len(found.strata), WINDOWS // RATIO)).sum(axis=1)
    np.testing.assert_array_equal(summed, found.samples.reshape(len(found.names), -1, RATIO).sum(axis=2))


def test_the_smallest_strata_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(labels, "MOST_STRATA", 3)
    write_rows(tmp_path, [{"host": f"h{number}", "zone": "z"} for number in range(8)])
    with caplog.at_level(logging.WARNING):
        found = read_dataset(tmp_path)
    assert "totals.parquet: 8 strata" in caplog.text
    assert len(found.strata) == 4
    assert found.strata[-1] == Stratum.of({"zone": "(other)"}, host="(other)")
    sizes = np.sort(cells(1, 8)[1].sum(axis=1))
    np.testing.assert_array_equal(np.sort(found.stratum_totals[:3].sum(axis=1)), sizes[-3:])
    np.testing.assert_array_equal(found.stratum_totals.sum(axis=0), found.totals)
    assert found.stratum_samples is not None
    assert found.stratum_samples.samples.sum() == found.samples.sum()
    counts = found.stratum_samples
    entries = list(zip(counts.series.tolist(), counts.stratum.tolist(), counts.window.tolist(), strict=True))
    assert sorted(set(entries)) == entries


def test_fewer_strata_are_kept_apart_in_very_many_windows() -> None:
    strata = [Stratum(host=f"h{number:02d}") for number in range(20)]
    samples = np.arange(20, dtype=np.float64)
    kept, row = labels.folded(strata, samples, labels.MOST_STRATUM_POINTS // 4)
    assert kept == (*strata[-4:], Stratum(host="(other)"))
    assert row.tolist() == [4] * 16 + [0, 1, 2, 3]


def change_cell(column: str, row: int, value: object) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        table = pq.read_table(path)
        values = table.column(column).to_pylist()
        values[row] = value
        pq.write_table(table.set_column(table.column_names.index(column), column, pa.array(values)), path)

    return spoil


def drop(column: str) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pq.read_table(path).drop_columns([column]), path)


def add(column: str, value: str) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        table = pq.read_table(path)
        pq.write_table(table.append_column(column, texts([value] * table.num_rows)), path)

    return spoil


def columns_beyond(path: Path) -> None:
    for number in range(labels.MOST_LABELS):
        add(f"label-{number}", "x")(path)


BAD = {
    "stratum without a total": (
        "series.parquet",
        change_cell("host", 2, "h9"),
        "series.parquet: row 3: host: no row of totals.parquet has host 'h9', ",
    ),
    "total of another stratum": ("series.parquet", change_cell("total", 0, 77), "row 1: total: 77 here,"),
    "some of the labels": ("series.parquet", drop("region"), "row 1: host: no row of totals.parquet has"),
    "a long value": ("totals.parquet", change_cell("host", 3, "x" * 300), "row 4: host: longer than 256"),
    "a long name": ("totals.parquet", add("x" * 300, "y"), "name of more than 256 characters"),
    "many columns": (
        "totals.parquet",
        columns_beyond,
        "totals.parquet: 19 columns of labels are more than 16",
    ),
}


@pytest.mark.parametrize(("name", "spoil", "message"), BAD.values(), ids=BAD.keys())
def test_a_mistake_is_named(folder: Path, name: str, spoil: Callable[[Path], None], message: str) -> None:
    spoil(folder / name)
    with pytest.raises(ConfigError) as error:
        read_dataset(folder)
    assert message in str(error.value)


def test_rows_that_only_an_unknown_column_distinguishes(folder: Path) -> None:
    path = folder / "series.parquet"
    table = pq.read_table(path)
    both = [table.append_column("rack", texts([rack] * table.num_rows)) for rack in ("a", "b")]
    pq.write_table(pa.concat_tables(both), path)
    with pytest.raises(ConfigError, match="'rack' is no label: totals.parquet has no such column"):
        read_dataset(folder)


BAD_STRATA = {
    "another sum": (
        change_cell("samples", 1, 55),
        "strata.parquet: row 2: samples: 60 of subroutine b.g here, 7 in",
    ),
    "unknown series": (change_cell("metric", 1, "c.never"), "strata.parquet: row 2: metric: not in series"),
    "unknown labels": (change_cell("host", 0, "h9"), "row 1: host: no row of totals.parquet has host 'h9'"),
    "no labels": (
        lambda path: pq.write_table(pq.read_table(path).drop_columns(["host", "release", "region"]), path),
        "strata.parquet: no label column; totals.parquet has host, release, region",
    ),
}


@pytest.mark.parametrize(("spoil", "message"), BAD_STRATA.values(), ids=BAD_STRATA.keys())
def test_a_mistake_in_strata_is_named(tmp_path: Path, spoil: Callable[[Path], None], message: str) -> None:
    write_dataset(build(), tmp_path)
    spoil(tmp_path / "strata.parquet")
    with pytest.raises(ConfigError) as error:
        read_dataset(tmp_path)
    assert message in str(error.value)


def test_labels_in_series_and_strata(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    write_dataset(build(), other)
    shutil.copy(other / "strata.parquet", folder)
    shutil.copy(other / "totals.parquet", folder)
    with pytest.raises(ConfigError):
        read_dataset(folder)


def test_a_label_that_has_the_name_of_a_column(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="label 'total'"):
        write_dataset(build((Stratum.of({"total": "x"}),)), tmp_path)
