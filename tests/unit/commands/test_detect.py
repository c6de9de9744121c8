"""``smidgen detect`` over files: what it finds in which format, and every mistake in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any, get_args

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.backtest.seriesfile import Duplicates
from pipeline.cli import run
from pipeline.commands.detect import detect
from tests.unit.commands.test_backtest import T0, stepped, write_csv


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_detect_prints_one_object_a_series(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        ("shop", name, T0 + 60 * i, value)
        for name, step in (("b", -10), ("a", 10), ("c", 0))
        for i, value in reversed(list(enumerate(stepped(50, step, seed=len(name)))))
    ]
    write_csv(folder / "s.csv", "service,metric,timestamp,value", rows)
    assert run(["detect", "s.csv", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["series"] for one in found] == ["a", "b", "c"]
    assert set(found[0]) == {"series", "change_points"}
    (point,) = found[0]["change_points"]
    assert set(point) == {"index", "timestamp", "before", "after", "p_value"}
    assert (point["index"], point["timestamp"]) == (200, "2023-11-14T03:20:00.000Z")
    assert (point["before"], point["after"]) == (pytest.approx(50, abs=0.5), pytest.approx(60, abs=0.5))
    assert found[1]["change_points"][0]["after"] < found[1]["change_points"][0]["before"]
    assert found[2]["change_points"] == []


PLAIN = {
    "a column": (lambda v: "\n".join(map(str, v)), "value", None),
    "a column with its name": (lambda v: "\n".join(["ms", *map(str, v)]), "value", None),
    "timestamp and value": (
        lambda v: "\n".join(["timestamp,value", *(f"{T0 + 60 * i},{x}" for i, x in enumerate(v))]),
        "value",
        "2023-11-14T03:20:00.000Z",
    ),
}


@pytest.mark.parametrize(("write", "name", "timestamp"), PLAIN.values(), ids=PLAIN.keys())
def test_detect_takes_plain_files(
    folder: Path, capsys: pytest.CaptureFixture[str], write: Any, name: str, timestamp: str | None
) -> None:
    (folder / "s.csv").write_text(write(stepped(50, 10)))
    assert run(["detect", "s.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (point,) = found["change_points"]
    assert (found["series"], point["index"], point["timestamp"]) == (name, 200, timestamp)


def test_detect_of_counts_looks_at_their_ratio(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(2)
    rows = []
    for i in range(120):
        total = 1000 if i % 2 else 4000  # load alone is no change
        rows.append(("s", "f", T0 + 60 * i, rng.binomial(total, 0.2 if i < 60 else 0.3), total))
    write_csv(folder / "s.csv", "service,metric,timestamp,samples,total", rows)
    assert run(["detect", "s.csv"]) == 0
    assert "1 change point in 1 series" in capsys.readouterr().out


def test_series_of_several_services_are_distinguished(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(s, "m", T0 + i, 1) for s in ("b", "a") for i in range(5)]
    write_csv(folder / "s.csv", "service,metric,timestamp,value", rows)
    assert run(["detect", "s.csv", "--json"]) == 0
    assert [json.loads(x)["series"] for x in capsys.readouterr().out.splitlines()] == ["a/m", "b/m"]


def test_detect_names_a_mistake(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.csv").write_text("1\n2\nthree\n")
    assert run(["detect", "s.csv"]) == 2
    assert "s.csv:3: value: not a number: 'three'" in capsys.readouterr().err


TIMES: dict[str, tuple[Any, str]] = {
    "dates long ago": (lambda i: f"{1871 + i}-01-01", "1901-01-01T00:00:00.000Z"),
    "years": (lambda i: 1871 + i, "1901-01-01T00:00:00.000Z"),
    "years of a data frame": (lambda i: f"{1871 + i}.0", "1901-01-01T00:00:00.000Z"),
    "dates, and a year alone": (lambda i: f"{1871 + i}-01-01" if i else "1871", "1901-01-01T00:00:00.000Z"),
    "months": (lambda i: f"{1950 + i // 12}-{1 + i % 12:02}", "1952-07-01T00:00:00.000Z"),
    "weeks": (lambda i: f"2020-W{1 + i:02}", "2020-07-27T00:00:00.000Z"),
    "before the epoch": (lambda i: -86400 * (100 - i), "1969-10-23T00:00:00.000Z"),
    "the first seconds of the epoch": (lambda i: 990 + i, "1970-01-01T00:17:00.000Z"),
}


@pytest.mark.parametrize(("time", "wanted"), TIMES.values(), ids=TIMES.keys())
def test_detect_takes_any_date(
    folder: Path, capsys: pytest.CaptureFixture[str], time: Any, wanted: str
) -> None:
    values = stepped(50, 10)[170:222]  # the step is at 30
    write_csv(folder / "s.csv", "timestamp,value", [(time(i), value) for i, value in enumerate(values)])
    assert run(["detect", "s.csv", "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["change_points"]
    assert (point["index"], point["timestamp"]) == (30, wanted)


@pytest.mark.parametrize("name", ["Date", "time", "@timestamp", "TS"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_with_the_newest_first_is_read_in_order_of_time(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    values = stepped(50, 10)[::-1]
    dates = [date(1800 + i, 1, 1) for i in range(len(values))][::-1]
    if kind == "csv":
        write_csv(folder / "s.csv", f"{name},value", list(zip(dates, values, strict=True)))
    else:
        pq.write_table(pa.table({name: dates, "value": values}), folder / "s.parquet")
    assert run(["detect", f"s.{kind}", "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["change_points"]
    assert (point["index"], point["timestamp"]) == (200, "2000-01-01T00:00:00.000Z")
    assert point["after"] > point["before"]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        pytest.param("when,value", "'when' may be", id="unknown"),
        pytest.param(",value", "'' may be", id="without a name"),
        pytest.param("date,time,value", "'date' or 'time' may be", id="two"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_detect_does_not_guess_the_order(
    folder: Path, capsys: pytest.CaptureFixture[str], header: str, said: str, kind: str
) -> None:
    names = header.split(",")
    if kind == "csv":
        write_csv(folder / "s.csv", header, [[i] * len(names) for i in range(9)])
    else:
        pq.write_table(pa.table({name: list(range(9)) for name in names}), folder / "s.parquet")
    assert run(["detect", f"s.{kind}"]) == 2
    assert f"s.{kind}: no column 'timestamp', which {said}; name it so" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "nan", "NaN", "null", "NA", "n/a", "None"])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_missing_value_keeps_its_index(
    folder: Path, capsys: pytest.CaptureFixture[str], columns: int, text: str
) -> None:
    cells = [str(value) for value in stepped(50, 10)]
    cells[0] = cells[77] = cells[-1] = text
    rows = [cell if columns == 1 else f"{T0 + 60 * i},{cell}" for i, cell in enumerate(cells)]
    (folder / "s.csv").write_text("\n".join([("value", "timestamp,value")[columns - 1], *rows]) + "\n")
    assert run(["detect", "s.csv", "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["change_points"]
    assert point["index"] == 200


@pytest.mark.parametrize(
    ("lead", "index"),
    [("", 200), ("\n\n\n", 203), ("value\n", 200), ("value\n\n\n\n", 203), ("\n\nvalue\n", 200)],
    ids=["none", "before the first value", "name", "after the name", "before the name"],
)
def test_a_blank_line_in_a_single_column_is_a_missing_point(
    folder: Path, capsys: pytest.CaptureFixture[str], lead: str, index: int
) -> None:
    cells = [str(value) for value in stepped(50, 10)]
    cells[5] = cells[6] = ""
    (folder / "s.csv").write_text(lead + "\n".join(cells) + "\n\n")
    assert run(["detect", "s.csv", "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["change_points"]
    assert point["index"] == index


@pytest.mark.parametrize("missing", [float("nan"), None], ids=["NaN", "null"])
@pytest.mark.parametrize("named", [True, False])
def test_parquet_with_dates_and_missing_values(
    folder: Path, capsys: pytest.CaptureFixture[str], missing: float | None, named: bool
) -> None:
    values = [missing if i == 10 else value for i, value in enumerate(stepped(50, 10))]
    dates = [date(1800 + i, 1, 1) for i in range(len(values))]
    table = {"timestamp": dates, "value": values} if named else {"flow": values}
    pq.write_table(pa.table(table), folder / "s.parquet")
    assert run(["detect", "s.parquet", "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["change_points"]
    assert (point["index"], point["timestamp"]) == (200, "2000-01-01T00:00:00.000Z" if named else None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "gone: No such file or directory"),
        ("gone.csv", "gone.csv: No such file or directory"),
        (".", ".: is a directory, no series file"),
        ("s.xlsx", "s.xlsx: an Excel workbook or another zip archive; save it as CSV"),
        ("login", "login: HTML or XML, perhaps the page of a login"),
    ],
)
def test_detect_names_what_is_no_series_file(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    (folder / "s.xlsx").write_bytes(b"PK\x03\x04...")
    (folder / "login").write_text("\n<!doctype html>")
    assert run(["detect", name]) == 2
    assert capsys.readouterr().err == f"smidgen: {message}\n"


REFUSED = {
    "mixed units of time": (
        "timestamp,value\n1700000000000,1\n1700000060,1\n",
        "no time between the years 1 and 9999",
    ),
    "no time": (
        "timestamp,value\n1871-01-01,1\nsoon,1\n",
        "s.csv:3: timestamp: not an ISO 8601 time: 'soon' (one is 2026-",
    ),
    "a missing time": ("timestamp,value\n1871-01-01,1\n,1\n", "s.csv:3: timestamp: missing"),
    "twice": (
        "timestamp,value\n1871,1\n1871,2\n",
        "s.csv:3: timestamp: the series has a point at this time already; --duplicates mean or last",
    ),
    "infinity": ("value\n1\ninf\n", "s.csv:3: value: should be finite, not inf"),
    "a missing total": ("timestamp,samples,total\n1871,1,\n", "s.csv:2: total: missing"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_detect_refuses_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (folder / "s.csv").write_text(text)
    assert run(["detect", "s.csv"]) == 2
    output = capsys.readouterr().err
    assert message in output
    assert output.count("\n") == 1


def test_detect_takes_the_mean_or_the_last_of_several_points(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    level = [1.0] * 20 + [9.0] * 20
    rows = [f"{1900 + i},{value}" for i, value in enumerate(level)]
    rows.insert(11, "1910,4001")  # after 1910's own
    (folder / "s.csv").write_text("\n".join(["timestamp,value", *rows, "1930,"]))
    for duplicates, wanted in (("mean", 9.0), ("last", 9.0)):
        assert run(["detect", "s.csv", "--json", "--duplicates", duplicates]) == 0
        (point,) = json.loads(capsys.readouterr().out)["change_points"]
        assert (point["index"], point["after"]) == (20, pytest.approx(wanted))
    assert run(["detect", "s.csv", "--duplicates", "refuse"]) == 2
    assert run(["detect", "s.csv", "--duplicates", "first"]) == 2


def test_a_wrong_option_is_refused_before_anything_is_loaded_that_only_work_needs() -> None:
    asked = "import sys\nfrom pipeline.cli import run\nrun(['detect', '--nope'])\n"
    checked = (
        "print(sorted({'numpy', 'scipy', 'pyarrow', 'statsmodels', 'pydantic_settings'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", asked + checked], capture_output=True, text=True, check=True)
    assert "No such option" in done.stderr
    assert done.stdout == "[]\n"


def test_what_becomes_of_duplicates_is_what_the_reader_knows() -> None:
    (option,) = (one for one in detect.params if one.name == "duplicates")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == get_args(Duplicates)
