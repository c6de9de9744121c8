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


def test_results_of_one_query_are_series_of_their_own(tmp_path: Path) -> None:
    mean, maximum = (ANNOTATIONS[2].replace("_result", result) for result in ("mean", "max"))
    lines = [*ANNOTATIONS[:2], mean, NAMES, row(1, "1"), row(3, "2")]
    lines += ["", *ANNOTATIONS[:2], maximum, NAMES, row(2, "8"), row(4, "9")]
    both = {
        'latency.p99{host="a", result="mean"}': [1.0, 2.0],
        'latency.p99{host="a", result="max"}': [8.0, 9.0],
    }
    assert read(lines, tmp_path) == both
    written = [line.replace(",,0,", ",mean,0,") for line in (row(1, "1"), row(3, "2"))]
    written += [line.replace(",,0,", ",max,1,") for line in (row(2, "8"), row(4, "9"))]
    assert read([NAMES, *written], tmp_path) == both


NS = 1_770_681_600_000_000_000


@pytest.mark.parametrize(
    ("lines", "series"),
    [
        (["name,time,p99", f"web,{NS},1", f"db,{NS + 1},2"], {"web.p99": [1.0], "db.p99": [2.0]}),
        (
            ["name,tags,time,mean,max", f"web,,{NS},1,3", f"web,,{NS + 10**9},2,"],
            {"web.mean": [1.0, 2.0], "web.max": [3.0]},
        ),
        (
            [
                *("name,tags,time,mean", f'web,"host=a,zone=x",{NS},1', f'web,"host=b,zone=x",{NS + 1},2'),
                *("", "name,tags,time,value", f"db,host=a,{NS},9"),
            ],
            {
                'web.mean{host="a", zone="x"}': [1.0],
                'web.mean{host="b", zone="x"}': [2.0],
                'db.value{host="a"}': [9.0],
            },
        ),
        (
            ["name,tags,time,mean", f'web,"zone=us, east",{NS},1', f'web,"zone=us, west",{NS + 1},2'],
            {'web.mean{tags="zone=us, east"}': [1.0], 'web.mean{tags="zone=us, west"}': [2.0]},
        ),
        (
            ["name,time,host,used", f"m,{T.format(1)},a,1", f"m,{T.format(2)},b,2"],
            {'m.used{host="a"}': [1.0], 'm.used{host="b"}': [2.0]},
        ),
    ],
)
def test_influxql_has_series_by_name_tags_and_texts(
    lines: Sequence[str], series: dict[str, list[float]], tmp_path: Path
) -> None:
    said: list[str] = []
    assert read(lines, tmp_path, said) == series
    assert ("labels by host" in said[0]) == ("host" in lines[0])


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
        (
            ["name,tags,time,mean", f"m,,{NS},1", "", "name,tags,name", "databases,,x"],
            "4: a table of InfluxDB",
        ),
        (["name,tags,time,mean", f"m,,{NS},1,2"], "2: 5 columns, where the table has 4"),
        (["name,time,up", f"m,{NS},true"], "without numbers"),
        (["Result: mean", "Table: keys: [_start]"], "influx query --raw"),
        (["name: cpu", "time                mean"], "influx -format csv"),
    ],
)
def test_what_holds_no_series_is_refused(lines: Sequence[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why) as refusal:
        read(lines, tmp_path)
    assert "\n" not in str(refusal.value)
