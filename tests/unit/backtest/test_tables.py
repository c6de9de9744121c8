"""Columns of Parquet files: every type as arrays, and every mistake with file, row and column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.backtest import tables
from pipeline.backtest.tables import Columns, Texts, read_parquet, write_parquet
from pipeline.model.errors import ConfigError

MOMENT = 1_700_000_000


def columns(**values: Any) -> Columns:
    return Columns(Path("x.parquet"), pa.table(values))


def spelt(texts: Texts) -> list[str]:
    return [texts.values[code] for code in texts.codes.tolist()]


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pa.array(["b", "a", "b"]), id="texts"),
        pytest.param(pa.array(["b", "a", "b"]).dictionary_encode(), id="dictionary"),
        pytest.param(pa.array(["b", "a", "b"], pa.large_string()), id="large texts"),
        pytest.param(pa.array(["b", "a", "b"], pa.string_view()), id="views of texts"),
        pytest.param(pa.array([b"b", b"a", b"b"]), id="bytes"),
        pytest.param(
            pa.chunked_array([pa.array(["b"]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]),
            id="chunks with dictionaries of their own",
        ),
    ],
)
def test_texts(column: Any) -> None:
    found = columns(name=column)
    assert spelt(found.texts("name")) == ["b", "a", "b"]
    assert sorted(found.texts("name").values) == ["a", "b"]
    assert found.is_text("name")


def test_numbers_of_any_type() -> None:
    found = columns(whole=pa.array([1, 2], pa.int16()), half=[0.5, 1.5], spelt=["3", "4.5"])
    assert found.numbers("whole").tolist() == [1.0, 2.0]
    assert found.numbers("whole", np.int64).dtype == np.int64
    assert found.numbers("half").tolist() == [0.5, 1.5]
    assert found.numbers("spelt").tolist() == [3.0, 4.5]
    assert not found.is_text("half")


def test_what_is_missing_is_nan_where_it_may_be() -> None:
    assert columns(v=[1.0, None, 3.0]).numbers_or_nan("v") == pytest.approx([1.0, np.nan, 3.0], nan_ok=True)


def test_flags_and_lists() -> None:
    found = columns(setup=[True, False], frames=[["main", "a"], []])
    assert found.flags("setup").tolist() == [True, False]
    assert found.lists("frames") == [("main", "a"), ()]


@pytest.mark.parametrize(
    ("column", "seconds"),
    [
        pytest.param(pa.array([MOMENT], pa.timestamp("s")), float(MOMENT), id="seconds"),
        pytest.param(pa.array([MOMENT * 1000 + 250], pa.timestamp("ms")), MOMENT + 0.25, id="milliseconds"),
        pytest.param(
            pa.array([MOMENT], pa.timestamp("s", tz="Asia/Tokyo")), float(MOMENT), id="with a time zone"
        ),
        pytest.param(
            pa.array([MOMENT * 10**9 + 123_456_789], pa.timestamp("ns")), MOMENT + 0.123456, id="nanoseconds"
        ),
        pytest.param(
            pa.array([2**60], pa.timestamp("ms")), 2**60 / 1e3, id="out of the range of microseconds"
        ),
        pytest.param(pa.array([19_675], pa.date32()), 19_675 * 86_400.0, id="a date"),
    ],
)
def test_moments_are_epoch_seconds(column: Any, seconds: float) -> None:
    found = columns(at=column).moments("at")
    assert found is not None
    assert found.tolist() == [seconds]


def test_a_number_is_no_moment() -> None:
    assert columns(at=[1.0]).moments("at") is None


@pytest.mark.parametrize(
    ("read", "message"),
    [
        pytest.param(
            lambda c: c.numbers("nothing"),
            "x.parquet: no column 'nothing'; it has v, name, gap, wild",
            id="no such column",
        ),
        pytest.param(lambda c: c.numbers("gap"), "x.parquet: row 2: gap: missing", id="missing"),
        pytest.param(
            lambda c: c.numbers("wild"), "x.parquet: row 3: wild: should be a finite number", id="infinite"
        ),
        pytest.param(
            lambda c: c.numbers("name"), "x.parquet: name: should be of type double: ", id="no number"
        ),
        pytest.param(
            lambda c: c.numbers("v", np.int64),
            "x.parquet: v: should be of type int64: ",
            id="no whole number",
        ),
        pytest.param(lambda c: c.refuse(4, "v", "no"), "x.parquet: row 5: v: no", id="what a caller finds"),
    ],
)
def test_mistakes_are_named(read: Callable[[Columns], object], message: str) -> None:
    found = columns(
        v=[1.0, 2.5, 3.0], name=["a", "b", "c"], gap=[1.0, None, None], wild=[1.0, 2.0, float("inf")]
    )
    with pytest.raises(ConfigError) as error:
        read(found)
    assert str(error.value).startswith(message)


def test_of_thousands_of_columns_those_are_named_that_may_be_meant() -> None:
    found = columns(**{f"c{number}": [1.0] for number in range(3000)}, timestmp=[1.0])
    with pytest.raises(ConfigError) as error:
        found.numbers("timestamp")
    assert str(error.value) == (
        "x.parquet: no column 'timestamp'; it has timestmp, c0, c1, c2, c3, c4, c5, c6 and 2,993 more"
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    texts = Texts(np.array([1, 0, 1]), ("a", "b"))
    write_parquet(path, {"name": texts, "v": np.array([1.5, 2.5, 3.5]), "frames": [("x", "y"), (), ("z",)]})
    found = read_parquet(path)
    assert found.names == ("name", "v", "frames")
    assert spelt(found.texts("name")) == ["b", "a", "b"]
    assert found.numbers("v").tolist() == [1.5, 2.5, 3.5]
    assert found.lists("frames") == [("x", "y"), (), ("z",)]


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("service,metric\n")
    with pytest.raises(ConfigError, match=r"text\.parquet: not a Parquet file"):
        read_parquet(tmp_path / "text.parquet")
    with pytest.raises(ConfigError, match=r"absent\.parquet: No such file or directory"):
        read_parquet(tmp_path / "absent.parquet")
    with pytest.raises(ConfigError, match="No such file or directory"):
        write_parquet(tmp_path / "absent" / "t.parquet", {"v": np.zeros(1)})


def test_more_rows_than_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS", 3)
    pq.write_table(pa.table({"v": [1, 1, 1]}), tmp_path / "three.parquet")
    pq.write_table(pa.table({"v": [1, 1, 1, 1]}), tmp_path / "four.parquet")
    assert read_parquet(tmp_path / "three.parquet").numbers("v").tolist() == [1, 1, 1]
    with pytest.raises(ConfigError, match=r"four\.parquet: 4 rows, more than 3"):
        read_parquet(tmp_path / "four.parquet")
