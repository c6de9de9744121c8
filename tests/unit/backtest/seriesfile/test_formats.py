"""Series files: the same series in every format, what is assumed of them, and what is refused."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.backtest.seriesfile import Decimal, Series, read_series
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError

T0 = 1_700_000_000

Many = Mapping[str, FloatArray]
"""Series by name, all at the seconds from T0 on."""


def read(tmp_path: Path, name: str, content: bytes, *, plain: bool = True) -> tuple[tuple[Series, ...], str]:
    (tmp_path / name).write_bytes(content)
    notes: list[str] = []
    found = read_series(tmp_path / name, plain=plain, note=notes.append)
    assert len(notes) <= 1
    return found, "".join(notes).replace(f"{tmp_path}/", "")


def wide_csv(delimiter: str, number: Callable[[float], str] = repr) -> Callable[[Many], bytes]:
    def write(many: Many) -> bytes:
        rows = zip(*many.values(), strict=True)
        lines = [
            delimiter.join(["time", *many]),
            *(
                delimiter.join([str(T0 + i), *(f'"{number(float(x))}"' for x in row)])
                for i, row in enumerate(rows)
            ),
        ]
        return "\n".join(lines).encode()

    return write


def long_csv(many: Many) -> bytes:
    rows = [
        f"s,{name},{T0 + i},{x!r}" for name, values in many.items() for i, x in enumerate(values.tolist())
    ]
    return "\n".join(["service,metric,timestamp,value", *rows]).encode()


def records(many: Many) -> list[dict[str, object]]:
    return [
        {"metric": name, "ts": (T0 + i) * 1000, "value": x}
        for name, values in many.items()
        for i, x in enumerate(values.tolist())
    ]


def prometheus(many: Many) -> bytes:
    result = [
        {
            "metric": {"__name__": name, "job": "s"},
            "values": [[T0 + i, repr(x)] for i, x in enumerate(values.tolist())],
        }
        for name, values in many.items()
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def graphite(many: Many) -> bytes:
    targets = [
        {"target": name, "datapoints": [[x, T0 + i] for i, x in enumerate(values.tolist())]}
        for name, values in many.items()
    ]
    return json.dumps(targets).encode()


def columns(many: Many) -> dict[str, list[float]]:
    points = len(next(iter(many.values())))
    return {"time": [float(T0 + i) for i in range(points)], **{k: v.tolist() for k, v in many.items()}}


def parquet(table: Mapping[str, object]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(table), file)
    return file.getvalue()


def grouped(decimal: str, thousands: str) -> Callable[[float], str]:
    def write(number: float) -> str:
        swapped = {",": thousands, ".": decimal}
        return "".join(swapped.get(c, c) for c in f"{number:,.20f}")

    return write


FORMATS: dict[str, Callable[[Many], bytes]] = {
    "long CSV": long_csv,
    "wide CSV": wide_csv(","),
    "tabs": wide_csv("\t"),
    "semicolons": wide_csv(";"),
    "semicolons and decimal commas": wide_csv(";", lambda x: repr(x).replace(".", ",")),
    "commas between thousands": wide_csv(",", grouped(".", ",")),
    "points between thousands": wide_csv("\t", grouped(",", ".")),
    "spaces between thousands": wide_csv(";", grouped(",", "\u202f")),
    "apostrophes between thousands": wide_csv(",", grouped(".", "’")),
    "a unit": wide_csv(",", lambda x: f"{x!r} ms"),
    "gzip": lambda many: gzip.compress(long_csv(many)),
    "UTF-16": lambda many: wide_csv("\t")(many).decode().encode("utf-16"),
    "JSON records": lambda many: json.dumps(records(many), indent=1).encode(),
    "JSON lines": lambda many: "\n".join(map(json.dumps, records(many))).encode(),
    "JSON columns": lambda many: json.dumps(columns(many)).encode(),
    "Prometheus": prometheus,
    "Graphite": graphite,
    "wide Parquet": lambda many: parquet(columns(many)),
    "wide Parquet by type": lambda many: parquet(
        {"when": pa.array([T0 + i for i in range(len(next(iter(many.values()))))], pa.timestamp("s")), **many}
    ),
}

# Of few digits, so that none is lost.
NUMBERS = st.floats(-(2.0**40), 2.0**40).map(lambda x: round(x * 1024) / 1024)
MANY = st.integers(1, 8).flatmap(
    lambda points: st.dictionaries(
        st.sampled_from(["a", "b", "p99 latency", "x{y}"]),
        st.lists(NUMBERS, min_size=points, max_size=points).map(lambda x: np.array([*x, 0.5])),
        min_size=1,
    )
)


@pytest.mark.slow
@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS.keys())
@given(many=MANY)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_what_is_written_is_read(write: Callable[[Many], bytes], many: Many, tmp_path: Path) -> None:
    for plain in (True, False):
        found, _ = read(tmp_path, "file", write(many), plain=plain)
        assert sorted(one.metric for one in found) == sorted(many)
        for one in found:
            np.testing.assert_array_equal(one.values, many[one.metric])
            assert one.timestamps is not None
            np.testing.assert_array_equal(one.timestamps, T0 + np.arange(len(one.values)))


QUANTITIES = {
    "thousands": (["1,234,567", "1,234"], [1234567, 1234], "value: commas between thousands"),
    "thousands in India": (["12,34,567", "9"], [1234567, 9], "commas between thousands"),
    "points and a comma": (["1.234,5", "1.234"], [1234.5, 1234], "decimal commas; value: points between"),
    "spaces": (["1 234,5", "7"], [1234.5, 7], "value: decimal commas; value: spaces between thousands"),
    "one decimal comma says it": (["1,234", "12,5"], [1.234, 12.5], "value: decimal commas"),
    "a 0 in front says it": (["0,123", "1,234"], [0.123, 1.234], "value: decimal commas"),
    "millions of points": (["1.234.567", "1.234"], [1234567, 1234], "value: points between thousands"),
    "a unit": (["12 ms", "1.5ms", "0"], [12, 1.5, 0], "value: values in ms"),
    "units of time": (["900 µs", "12 ms", "1.5 s"], [0.0009, 0.012, 1.5], "values in µs, in ms, in s as s"),
    "sizes": (["512 MiB", "1.2 GiB"], [2**29, 1.2 * 2**30], "values in MiB, in GiB as B"),
    "rates": (["1.2 K req/s", "950 req/s"], [1200, 950], "values in K req/s, in req/s as req/s"),
    "a unit, and none where nothing is": (["12 %", "", "0"], [12, np.nan, 0], "values in %"),
    "per cent": (["45 %", "45.5%"], [45, 45.5], "values in %"),
    "short numbers": (["1.2k", "3 Mil", "950"], [1200, 3e6, 950], "as plain numbers"),
    "money": (["$1,234.50", "$2"], [1234.5, 2], "values in $"),
    "a minus of typesetters": (["\u22125 ms", "+2 ms"], [-5, 2], "values in ms"),
    "numbers of programs": (["1e3", "1_000", ["2", "ms"][0]], [1000, 1000, 2], ""),
    "underscores with a unit": (["1_000 ms", "1 ms"], [1000, 1], "value: underscores between thousands"),
    "decimal points with a unit": (["1.234 s", "5.678 s"], [1.234, 5.678], "values in s"),
}


SEMICOLONS = {
    "decimal commas": ("t;value", "1,5 999", [1.5, 999], "decimal commas"),
    "decimal points": ("t;value", "1.5 999", [1.5, 999], ""),
    "three decimals after commas": ("t;value", "1,234 5,678", [1.234, 5.678], "decimal commas"),
    "points and a comma": ("t;value", "1.002 0,5", [1002, 0.5], "points between thousands"),
    "another series": ("t;a;b", "999;0,5 1.002;0,7", [999, 1002], "points between thousands"),
    "another series with points": ("t;a;b", "999;0.5 1.002;0.7", [999, 1.002], ""),
    "a column that is left out": ("t;value;load", "999;0,5 1.002;0,7", [999, 1002], "decimals as in load"),
    "exponents": ("t;value", "1.234e3 9.990e2", [1234, 999], ""),
    "such a column with points": ("t;value;load", "999;0.5 1.002;0.7", [999, 1.002], "decimals as in load"),
}


@pytest.mark.parametrize(("names", "rows", "wanted", "said"), SEMICOLONS.values(), ids=SEMICOLONS.keys())
def test_the_file_says_what_stands_before_decimals(
    tmp_path: Path, names: str, rows: str, wanted: list[float], said: str
) -> None:
    lines = [f"{T0 + second};{row}" for second, row in enumerate(rows.split())]
    (series, *_), note = read(tmp_path, "s", "\n".join([names.replace("t;", "time;"), *lines]).encode())
    assert series.values.tolist() == wanted
    assert said in note


EITHER = {
    "semicolons": ("timestamp;value\n1;999\n2;1.002\n3;998\n", "point"),
    "semicolons, three decimals throughout": ("timestamp;value\n1;1.999\n2;1.002\n", "point"),
    "semicolons and commas": ("timestamp;value\n1;999\n2;1,002\n", "comma"),
    "semicolons, several series": ("timestamp;a;b\n1;999;5\n2;1.002;6\n", "point"),
    "tabs": ("timestamp\ta\tb\n1\t999\t5\n2\t1.002\t6\n", "point"),
    "a single column": ("999\n1.002\n998\n", "point"),
    "with a unit": ("timestamp;value\n1;999 ms\n2;1.002 ms\n", "point"),
}


def test_times_say_what_stands_before_decimals(tmp_path: Path) -> None:
    content = f"time;v\n{T0},5;1.234\n{T0 + 1},5;999\n".encode()
    (series,), note = read(tmp_path, "s", content)
    assert series.values.tolist() == [1234, 999]
    assert "value: decimals as in timestamp" in note


@pytest.mark.parametrize(("content", "mark"), EITHER.values(), ids=EITHER.keys())
def test_numbers_of_either_notation_are_refused_and_decimal_settles_them(
    tmp_path: Path, content: str, mark: str
) -> None:
    (tmp_path / "s").write_text(content)
    with pytest.raises(ConfigError, match=rf"decimals after its {mark}, and no other cell .* --decimal"):
        read_series(tmp_path / "s", plain=True)
    decimals: tuple[Decimal, ...] = ("point", "comma")
    for decimal in decimals:
        series, *_ = read_series(tmp_path / "s", plain=True, decimal=decimal)
        assert (1.002 if decimal == mark else 1002.0) in series.values


@pytest.mark.parametrize(
    "content",
    [
        "timestamp\ta\tb\n1\t1.999\t5\n2\t1.002\t6\n",  # three decimals throughout, beside whole numbers
        "timestamp\ta\tb\n1\t1.999\t5\n2\t0\t6\n3\t1.002\t6\n",
        "timestamp,a\n1,1.999\n2,999\n3,1.002\n",  # written by a program
        '[{"time": 1, "a": "1.002"}, {"time": 2, "a": "999"}]',
    ],
)
def test_points_of_programs_stand_before_decimals(tmp_path: Path, content: str) -> None:
    (series, *_), _ = read(tmp_path, "s", content.encode())
    assert 1.002 in series.values


LAST_COLUMNS = {
    "an empty column": ("timestamp,a,b,\n1,1_000,2,\n2,3,4,\n", "2 columns as series"),
    "empty columns": ("timestamp,a,b,,,\n1,1_000,2,,,\n2,3,4,,,\n", "2 columns as series"),
    "rows alone": ("timestamp,a,b\n1,1_000,2,\n2,3,4\n", "2 columns as series"),
    "a line for Excel": ("sep=;\r\ntimestamp;a;b\r\n1;1_000;2\r\n2;3;4\r\n", "2 columns as series"),
    "an index": (",timestamp,a,b\n0,1,1_000,2\n1,2,3,4\n", "without a column that has no name"),
}


@pytest.mark.parametrize(("content", "said"), LAST_COLUMNS.values(), ids=LAST_COLUMNS.keys())
def test_columns_without_a_name_are_no_series(tmp_path: Path, content: str, said: str) -> None:
    series, note = read(tmp_path, "s", content.encode())
    assert [(item.metric, item.values.tolist()) for item in series] == [("a", [1000, 3]), ("b", [2, 4])]
    assert said in note


@pytest.mark.parametrize(("cells", "wanted", "said"), QUANTITIES.values(), ids=QUANTITIES.keys())
def test_numbers_as_people_write_them(
    tmp_path: Path, cells: list[str], wanted: list[float], said: str
) -> None:
    content = "\n".join(["timestamp\tvalue", *(f"{T0 + i}\t{cell}" for i, cell in enumerate(cells))])
    (series,), note = read(tmp_path, "s", content.encode())
    assert series.values == pytest.approx(wanted, rel=1e-12, nan_ok=True)
    assert said in note
    assert bool(said) == bool(note)


def test_each_series_of_a_wide_file_has_its_own_unit(tmp_path: Path) -> None:
    content = "Time,used,wait\n2024-01-01 00:00:00,1.5 GiB,12 ms\n2024-01-01 00:01:00,512 MiB,13 ms\n"
    (used, wait), note = read(tmp_path, "export.csv", content.encode(), plain=False)
    assert (used.metadata.unit, wait.metadata.unit) == ("By", "ms")
    assert used.values.tolist() == [1.5 * 2**30, 2**29]
    assert (used.service, wait.service) == ("export", "export")
    assert note == (
        "export.csv: taken as: service export (--service names another); 2 columns as series; "
        "times without an offset are UTC; value: values in GiB, in MiB as B; value: values in ms"
    )


def test_a_missing_value_of_a_wide_file_is_no_point_of_a_backtest(tmp_path: Path) -> None:
    content = f"time,a,b,c\n{T0},1,,\n{T0 + 1},2,3,\n".encode()
    found, _ = read(tmp_path, "s.csv", content, plain=False)
    assert [(one.metric, one.values.tolist()) for one in found] == [("a", [1, 2]), ("b", [3])]
    found, _ = read(tmp_path, "s.csv", content)
    assert [len(one.values) for one in found] == [2, 2, 2]


@pytest.mark.parametrize(
    ("first", "values"),
    [
        ("5 ms", [5, 6]),
        ("1 234", [1234, 6]),
        ("99th percentile", [6]),
        ("3 s", [3, 6]),
        ("p99", [6]),
        ("", [np.nan, 6]),
    ],
)
def test_a_single_column_may_begin_with_its_name(tmp_path: Path, first: str, values: list[float]) -> None:
    unit = first.partition(" ")[2] if first[:1] in "35" else ""
    (series,), _ = read(tmp_path, "s.csv", f"{first}\n6 {unit}\n".encode())
    assert series.values == pytest.approx(values, nan_ok=True)


ASSUMED = {
    "milliseconds": (f"timestamp,value\n{T0}000,1\n", "times in milliseconds"),
    "years": ("timestamp,value\n1871,1\n", "times are years"),
    "no names": (f"{T0},1\n{T0 + 1},2\n", "no names, so timestamp and value"),
    "no names, and decimal commas": (
        "2024-01-01;1,5\n2024-01-02;2,5\n",
        "no names, so timestamp and value; value: decimal commas",
    ),
    "dates": ("timestamp,value\n2024-01-01,1\n", ""),
    "a separator in the name of a series": (f"timestamp,p50;web\n{T0},1\n", "1 column as series"),
    "columns that are left out": (f"timestamp,value,host\n{T0},1,a\n", "without host"),
    "labels that are left out": (
        f"timestamp,value,host\n{T0},1,a\n{T0 + 1},1,b\n",
        "without host (2 values)",
    ),
    "an index, as pandas writes it": (f",timestamp,value\n0,{T0},1\n", "without a column that has no name"),
    "times beside times": (f"timestamp,time,a\n{T0},5,1\n{T0 + 1},6,2\n", "1 column as series; without time"),
    "labels": (f"[[{T0}, 1], [{T0 + 1}, 2]]", "pairs of time and value"),
    "nothing": (f"timestamp,value\n{T0},1\n", ""),
}


@pytest.mark.parametrize(("content", "said"), ASSUMED.values(), ids=ASSUMED.keys())
def test_what_is_assumed_is_said(tmp_path: Path, content: str, said: str) -> None:
    _, note = read(tmp_path, "s", content.encode())
    assert note == (f"s: taken as: {said}" if said else "")


RESERVATIONS = {
    "nothing": ({"isPartial": False, "warnings": [], "infos": None}, {}, ""),
    "a partial answer": ({"isPartial": True}, {}, "; a partial answer (isPartial), which lacks data"),
    "a warning": ({"warnings": ["no store matched"]}, {}, "an answer with warnings: 'no store matched'"),
    "warnings": ({"warnings": ["first", "second"]}, {}, "an answer with warnings: 'first' and 1 more"),
    "infos": ({"infos": ["metric might not be a counter"]}, {}, "infos: 'metric might not be a counter'"),
    "histograms": ({}, {"histograms": [[T0, {}], [T0 + 1, {}]]}, "without 2 histograms of 1 series"),
}


@pytest.mark.parametrize(("answer", "entry", "said"), RESERVATIONS.values(), ids=RESERVATIONS.keys())
def test_what_an_answer_of_prometheus_says_against_its_data_is_said(
    tmp_path: Path, answer: dict[str, object], entry: dict[str, object], said: str
) -> None:
    content = json.loads(prometheus({"a": np.array([1.0, 2.0])}))
    content["data"]["result"][0] |= entry
    _, note = read(tmp_path, "s", json.dumps(content | answer).encode())
    assert said in note
    assert bool(said) == (note != "s: taken as: service by the label job")


def test_columns_of_parquet_that_are_left_out_are_said(tmp_path: Path) -> None:
    table = {"timestamp": [T0, T0 + 1], "value": [1.0, 2.0], "host": ["a", "b"]}
    assert read(tmp_path, "s", parquet(table))[1] == "s: taken as: without host"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1\n2\nthree\n")))
    with pytest.raises(ConfigError, match="stdin:3: value: not a number: 'three'"):
        read_series(Path("-"), plain=True)


REFUSED = {
    "either": ("timestamp;value\n1;1,5\n2;x,y\n", "s:3: value: not a number: 'x,y'"),
    "thousands or decimals": (
        'timestamp,value\n1,"1,234"\n2,5\n',
        "s:2: value: '1,234' may have thousands or decimals after its comma, and no other cell says which",
    ),
    "both at once": ("timestamp\tvalue\n1\t1.234,5\n2\t1,234.5\n", "s:3: value: not a number as the cells"),
    "units of two kinds": ("timestamp,value\n1,12 ms\n2,13 MB\n", "s:3: value: 13 is in MB, where others of"),
    "a unit that lacks": (
        "timestamp,value\n1,12 ms\n2,13\n",
        "s:3: value: 13 is without a unit",
    ),
    "no names": ("1700000000,1,2\n", "s:1: no names of columns; put a first line such as timestamp,a,b"),
    "two of a name": ("time,a,a\n1,2,3\n", "s:1: a: column stands twice"),
    "JSON cut off": ('{"a": [1, 2', "s:1: not JSON: unexpected end of data"),
    "NaN": ('[{"value": 1},\n {"value": NaN}]', "s:2: not JSON: NaN, for which JSON has null"),
    "a line of JSON": ('{"value": 1}\n{"value": 2\n', "s:2: not JSON"),
    "a cell of a line": ('{"value": 1}\n\n{"value": "x"}\n', "s:3: value: not a number: 'x'"),
    "nested": ('[{"value": [1]}]', "s: row 1: value: should be a number or a text"),
    "true": ("[1, true]", "s: row 2: value: not a number: 'true'"),
    "another shape": ('{"data": {"a": 1}}', "s: JSON in no shape that is read"),
    "lengths": ('{"time": [1], "a": [1, 2]}', "s: columns of different lengths: time 1, a 2"),
    "nothing": ("[]", "s: holds no point"),
    "times alone": (f"timestamp\n{T0}\n", "s: no column 'value'; it has timestamp"),
    "InfluxDB": ('{"results": [{"series": []}]}', "s: an answer of InfluxDB; ask for CSV"),
    "several answers": (
        '{"status": "success", "data": {}}\n{"status": "success", "data": {}}\n',
        "s: several answers of Prometheus; give each one by itself",
    ),
    "VictoriaMetrics": (
        '{"metric": {"__name__": "up"}, "values": [1], "timestamps": [1]}\n',
        "s: an export of VictoriaMetrics; ask for query_range",
    ),
    "Prometheus without data": (
        '{"status": "error", "error": "parse error"}',
        "s: an answer of Prometheus without data: parse error",
    ),
    "a scalar": (
        '{"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}',
        "s: an answer of Prometheus that holds no series; ask for query_range",
    ),
    "no series": (
        '{"status": "success", "data": {"resultType": "matrix", "result": []}}',
        "s: holds no point",
    ),
    "units of a column": (
        "timestamp,value,unit\n1,12,ms\n2,,\n3,12000,us\n",
        "s:4: unit: us, where the series is in ms before",
    ),
    "values before times": (
        f"[[12, {T0}], [null, {T0 + 1}]]",
        "s: pairs whose second number is rather the time",
    ),
    "values before ms": (
        f"[[12, {T0}000], [13, {T0 + 1}000]]",
        "s: pairs whose second number is rather the time",
    ),
    "a text among columns": ("time,a,host\n1,2,web\n", "s:2: host: not a number: 'web'"),
}


def test_what_is_said_of_the_series_of_a_wide_file_is_of_each(tmp_path: Path) -> None:
    content = b"timestamp,a,b,unit,direction\n1,2,3,ms,up\n2,3,4,ms,up\n"
    series, _ = read(tmp_path, "s", content)
    assert [(one.metric, one.metadata.unit, one.metadata.direction) for one in series] == [
        ("a", "ms", "up"),
        ("b", "ms", "up"),
    ]


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, "s", content.encode())
    text = str(error.value).replace(f"{tmp_path}/", "")
    assert text.startswith(message)
    assert "\n" not in text
