"""CSV of InfluxDB: tables with annotations, without them, after a pivot, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.backtest.seriesfile import read_series
from pipeline.model.errors import ConfigError

T = "2026-02-10T00:0{}:00Z"
START = 1_770_681_600.0
ANNOTATIONS = (
    "#group,false,false,true,true,false,false,true,true,true",
    "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string",
    "#default,_result,,,,,,,,",
)
NAMES = ",result,table,_start,_stop,_time,_value,_field,_measurement,host"


def row(minute: int, value: str, field: str = "p99", host: str = "a") -> str:
    return f",,0,{T.format(0)},{T.format(9)},{T.format(minute)},{value},{field},latency,{host}"


def read(lines: Sequence[str], folder: Path, said: list[str] | None = None) -> dict[str, list[float]]:
    path = folder / "s.csv"
    path.write_text("\r\n".join(lines) + "\r\n")
    series = read_series(path, plain=True, note=said.append if said is not None else None)
    assert all(one.timestamps is not None and one.timestamps[0] >= START for one in series)
    return {one.metric: one.values.tolist() for one in series}


@pytest.mark.parametrize("annotations", [ANNOTATIONS, (), ANNOTATIONS[::-1]])
def test_tables_are_series_by_measurement_field_and_tags(annotations: Sequence[str], tmp_path: Path) -> None:
    first = [*annotations, NAMES, row(1, "1.5"), row(2, "2.5")]
    second = ["", *annotations, NAMES, row(1, "3", field="p50"), row(1, "4", host="b")]
    assert read([*first, *second], tmp_path) == {
        'latency.p99{host="a"}': [1.5, 2.5],
        'latency.p50{host="a"}': [3.0],
        'latency.p99{host="b"}': [4.0],
    }


def test_columns_of_a_pivot_are_series(tmp_path: Path) -> None:
    lines = [
        "#group,false,false,false,true,true,false,false",
        "#datatype,string,long,dateTime:RFC3339,string,string,double,string",
        "#default,_result,,,,,7,",
        ",result,table,_time,_measurement,host,p99,note",
        f",,0,{T.format(1)},latency,a,1.5,slow",
        f",,0,{T.format(2)},latency,a,,",
    ]
    assert read(lines, tmp_path) == {'latency.p99{host="a"}': [1.5, 7.0]}


def test_values_that_are_no_numbers_are_left_out_and_said(tmp_path: Path) -> None:
    text = ANNOTATIONS[1].replace("double", "string")
    lines = [*ANNOTATIONS, NAMES, row(1, "1.5"), "", text, NAMES, row(1, "v41", field="version")]
    said: list[str] = []
    assert read(lines, tmp_path, said) == {'latency.p99{host="a"}': [1.5]}
    assert "without 1 values that are no numbers" in said[0]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            ["#datatype,string,string", ",error,reference", ",query too large,897"],
            "3: InfluxDB's error: query",
        ),
        (
            [ANNOTATIONS[1], NAMES.replace("_time", "_at"), row(1, "1")],
            "2: a table of InfluxDB without _time",
        ),
        ([*ANNOTATIONS, NAMES, row(1, "1") + ",x"], "5: 11 columns, where the table has 10"),
        ([*ANNOTATIONS, NAMES, row(1, "much")], "5: value: "),
        ([*ANNOTATIONS, NAMES, row(1, "1"), row(1, "2")], "a point at this time already"),
        ([*ANNOTATIONS, NAMES], "CSV of InfluxDB without numbers"),
    ],
)
def test_what_holds_no_series_is_refused(lines: Sequence[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why) as refusal:
        read(lines, tmp_path)
    assert "\n" not in str(refusal.value)
