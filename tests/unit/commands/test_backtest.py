"""``smidgen backtest`` over files: what it writes, and every mistake in one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.backtest.dataset import write_dataset
from pipeline.cli import run
from tests.support.fleets import BASE, SLOWER, as_dataset, record

T0 = 1_699_920_000  # a whole day
WORKLOAD = """
name: minutes
{series}
resolution: 1m
rerun_interval: 10m
historical: 2h
analysis: 30m
extended: 10m
threshold: {{relative: 0.05}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gcpu.yaml").write_text(WORKLOAD.format(series=""))
    (tmp_path / "up.yaml").write_text(WORKLOAD.format(series="series: service"))
    return tmp_path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_csv(path: Path, header: str, rows: Sequence[Sequence[object]]) -> None:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


def stepped(level: float, step: float, seed: int = 1, points: int = 300) -> list[float]:
    rng = np.random.default_rng(seed)
    return [level + step * (i >= 200) + float(rng.normal(0, level / 100)) for i in range(points)]


@pytest.mark.parametrize("inside", [True, False], ids=["in the folder", "as a flag"])
@pytest.mark.parametrize(
    ("said", "step", "code"),
    [
        pytest.param({"kind": "muted", "owner": "ada", "end": 2e9}, "muted", "muted", id="muted"),
        pytest.param(
            {"kind": "expected", "subroutine": "cart.*", "cost": 0.9}, "expected", "within", id="expected"
        ),
    ],
)
def test_what_people_said_is_not_reported_and_stands_in_the_ledger(
    folder: Path, said: dict[str, object], step: str, code: str, inside: bool
) -> None:
    recording = record("shop", [(60, BASE), (60, SLOWER)])
    write_dataset(as_dataset(recording), folder / "data")
    message = {"id": "s1", "service": "shop", "time": recording.profiles[0].start, **said}
    (folder / ("data/feedback.jsonl" if inside else "f.jsonl")).write_text(json.dumps(message))
    flags = ["--events", "e.jsonl", "--funnel", "f.json", "--ledger", "l.jsonl"]
    flags += [] if inside else ["--feedback", "f.jsonl"]
    assert run(["backtest", "data", "--workload", "live", *flags]) == 0
    assert lines(folder / "e.jsonl") == []
    (row,) = (one for one in lines(folder / "l.jsonl") if one["step"] == step)
    assert (row["metric"], row["code"], row["subjects"][0]) == ("cart.tax", code, "s1")
    funnel = json.loads((folder / "f.json").read_text())
    assert funnel["reported"] == 0
    assert funnel["steps"][-1] == {"step": step, "remaining": 0}


def test_wrong_feedback_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(as_dataset(record("shop", [(60, BASE)])), folder / "data")
    (folder / "f.jsonl").write_text('{"kind": "muted", "id": "m", "service": "shop", "time": 1.7e9}\n')
    flags = ["--workload", "live", "--events", "e.jsonl", "--feedback", "f.jsonl"]
    assert run(["backtest", "data", *flags]) == 2
    assert capsys.readouterr().err == "smidgen: f.jsonl:1: owner: missing\n"


def test_a_dataset_gives_events_funnel_and_ledger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = record("shop", [(60, BASE), (60, SLOWER)])
    write_dataset(as_dataset(recording), folder / "data")
    flags = ["--events", "e.jsonl", "--funnel", "f.json", "--ledger", "l.jsonl"]
    assert run(["backtest", "data", "--workload", "live", *flags]) == 0
    (event,) = lines(folder / "e.jsonl")
    assert event["data"]["metric"] == "cart.tax"
    assert event["data"]["root_causes"][0]["change"]["id"] == "c1"
    ledger = lines(folder / "l.jsonl")
    funnel = json.loads((folder / "f.json").read_text())
    (row,) = funnel["workloads"]
    assert row["workload"] == "live"
    assert row["change_points"] == len(ledger) + 1 == row["steps"][0]["remaining"]
    left = [step["remaining"] for step in row["steps"]]
    assert left == sorted(left, reverse=True)
    assert left[-1] == row["reported"] == funnel["reported"] == 1
    assert row["scans"] == 23
    assert row["series"] > 100
    for line in ledger:
        assert {"service", "workload", "scan_end", "metric", "step", "statistic", "bound", "reason"} <= set(
            line
        )
    output = capsys.readouterr()
    assert "after went away" in output.out
    assert [path.name for path in folder.glob("*.part")] == []


def test_running_again_writes_the_same(folder: Path) -> None:
    write_dataset(as_dataset(record("shop", [(60, BASE), (60, SLOWER)])), folder / "data")
    for name in ("one", "other"):
        assert run(["backtest", "data", "--workload", "live", "--events", f"{name}.jsonl"]) == 0
    assert (folder / "one.jsonl").read_bytes() == (folder / "other.jsonl").read_bytes() != b""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_of_values_is_scanned_by_the_workloads_windows(folder: Path, suffix: str) -> None:
    """Points at odd times; two services, of which one is asked for."""
    rows = [
        (service, "latency", T0 + 60 * i + (7 * i) % 13, value)
        for service in ("shop", "blog")
        for i, value in enumerate(stepped(50, 10))
    ]
    if suffix == "csv":
        write_csv(folder / "s.csv", "service,metric,timestamp,value", rows)
    else:
        columns = dict(zip(("service", "metric", "timestamp", "value"), zip(*rows, strict=True), strict=True))
        pq.write_table(pa.table(columns), folder / "s.parquet")
    flags = ["--workload", "up.yaml", "--events", "e.jsonl", "--service", "shop"]
    assert run(["backtest", f"s.{suffix}", *flags]) == 0
    (event,) = lines(folder / "e.jsonl")
    data = event["data"]
    assert (data["service"], data["metric"], data["metric_kind"]) == ("shop", "latency", "service")
    assert data["change_time"] == "2023-11-14T03:20:00.000Z"
    assert data["relative"] == pytest.approx(0.2, abs=0.02)


def test_a_file_of_counts_is_gcpu(folder: Path) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for i in range(300):
        for name, share in (("a.f", 0.01 + 0.01 * (i >= 200)), ("a.g", 0.02)):
            stamp = f"2023-11-14T{i // 60:02}:{i % 60:02}:00Z"
            rows.append(("shop", name, stamp, rng.binomial(10_000, share), 10_000))
    write_csv(folder / "s.csv", "service,metric,timestamp,samples,total", rows)
    (folder / "c.jsonl").write_text(
        json.dumps({"id": "c9", "service": "shop", "time": T0 + 60 * 199, "subroutines": ["a.f"]})
    )
    flags = ["--workload", "gcpu.yaml", "--events", "e.jsonl", "--changes", "c.jsonl"]
    assert run(["backtest", "s.csv", *flags]) == 0
    (event,) = lines(folder / "e.jsonl")
    assert (event["data"]["metric"], event["data"]["metric_kind"]) == ("a.f", "subroutine")
    assert event["data"]["change_time"] == "2023-11-14T03:20:00.000Z"


def test_a_run_that_is_stopped_writes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_dataset(as_dataset(record("shop", [(60, BASE)])), folder / "data")
    (folder / "e.jsonl").write_text("as it was")

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline.commands.backtest.run_backtest", stop)
    assert run(["backtest", "data", "--workload", "live", "--events", "e.jsonl"]) == 130
    assert (folder / "e.jsonl").read_text() == "as it was"
    assert sorted(path.name for path in folder.iterdir()) == ["data", "e.jsonl", "gcpu.yaml", "up.yaml"]
    assert "Traceback" not in capsys.readouterr().err


HEAD = "service,metric,timestamp,value\n"
COUNTS = "service,metric,timestamp,samples,total\n"
BAD_FILES = {
    "missing column": ("service,metric,value\ns,m,1\n", "s.csv: no column 'timestamp'; it has service"),
    "no value": ("service,metric,timestamp\ns,m,1700000000\n", "s.csv: no column 'value'"),
    "no total": ("service,metric,timestamp,samples\ns,m,1700000000,1\n", "s.csv: no column 'total'"),
    "both": (
        "service,metric,timestamp,value,samples,total\ns,m,1700000000,1,1,1\n",
        "both value and samples",
    ),
    "bad timestamp": (f"{HEAD}s,m,1700000000,1\ns,m,yesterday,1\n", "s.csv:3: timestamp: not an ISO 8601"),
    "mixed units of time": (
        f"{HEAD}s,m,1700000000000,1\ns,m,1700000060,1\n",
        "s.csv:2: timestamp: 1700000000000 is no time between",
    ),
    "no timestamp": (f"{HEAD}s,m,,1\n", "s.csv:2: timestamp: missing"),
    "NaN": (f"{HEAD}s,m,1700000000,1\n\ns,m,1700000060,nan\n", "s.csv:4: value: should be finite, not nan"),
    "infinite": (f"{HEAD}s,m,1700000000,inf\n", "s.csv:2: value: should be finite"),
    "not a number": (f"{HEAD}s,m,1700000000,fast\n", "s.csv:2: value: not a number: 'fast'"),
    "no metric": (f"{HEAD}s,,1700000000,1\n", "s.csv:2: metric: missing"),
    "negative": (f"{COUNTS}s,m,1700000000,-1,5\n", "s.csv:2: samples: negative: -1"),
    "more than all": (f"{COUNTS}s,m,1700000000,6,5\n", "s.csv:2: samples: 6 of a total of 5"),
    "two totals": (
        f"{COUNTS}s,m,1700000000,1,5\ns,n,1700000000,1,6\n",
        "total: service 's' has both 5 and 6",
    ),
    "twice": (
        f"{HEAD}s,m,1700000000,1\ns,n,1700000000,1\ns,m,2023-11-14T22:13:20Z,2\n",
        "s.csv:4: timestamp: the series has a point at this time",
    ),
    "ragged": (f"{HEAD}s,m,1700000000\n", "s.csv:2: 3 columns, where the header has 4"),
    "unknown kind": (
        "service,metric,metric_kind,timestamp,samples,total\ns,m,latency,1700000000,1,2\n",
        "s.csv:2: metric_kind: should be subroutine or endpoint or metadata",
    ),
    "empty": ("", "s.csv: empty"),
    "only a header": (HEAD, "s.csv: holds no point"),
    "quote left open": (f'{HEAD}s,"m,1700000000,1\n', "s.csv:2: unexpected end of data"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_mistake_in_a_series_file_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    (folder / "s.csv").write_text(content)
    assert run(["backtest", "s.csv", "--workload", "up.yaml", "--events", "e.jsonl"]) == 2
    output = capsys.readouterr().err
    assert message in output
    assert output.count("\n") == 1
    assert not (folder / "e.jsonl").exists()


BAD_USES: dict[str, tuple[list[str], str]] = {
    "missing file": (["gone.csv"], "gone.csv: No such file"),
    "missing folder": (["gone"], "gone: No such file"),
    "no series": (["s.txt"], "s.txt: no column 'timestamp'; it has value"),
    "not UTF-8": (["latin.csv"], "latin.csv:3: not UTF-8 text"),
    "UTF-16 cut off": (["utf16.csv"], "utf16.csv: not UTF-16 text, as its first bytes say: truncated data"),
    "not Parquet": (["bad.parquet"], "bad.parquet: not a Parquet file"),
    "folder without a dataset": (["empty"], "dataset.json: No such file"),
    "unknown service": (["s.csv", "--service", "x"], "s.csv: no service 'x'; it has s"),
    "workload of gCPU": (
        ["s.csv", "--workload", "gcpu.yaml"],
        "no gCPU series (samples, total) for workload",
    ),
    "unknown workload": (["s.csv", "--workload", "nothing"], "no workload file or preset 'nothing'"),
    "changes": (["s.csv", "--changes", "bad.jsonl"], "bad.jsonl:1: not JSON"),
    "output in no folder": (["s.csv", "--funnel", "no/f.json"], "no/f.json: No such file"),
    "one output twice": (["s.csv", "--ledger", "e.jsonl"], "--ledger: e.jsonl is given twice"),
}


def test_a_timestamp_decades_off_is_refused_before_it_fills_the_memory(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "s,m,1700000000,1,9\ns,m,4000000000,1,9\n"
    (folder / "s.csv").write_text(f"service,metric,timestamp,samples,total\n{rows}")
    assert run(["backtest", "s.csv", "--workload", "live", "--events", "e.jsonl"]) == 2
    output = capsys.readouterr().err
    assert "s.csv: timestamp: 2023-11-14T22:13:20.000Z to 2096-10-02" in output
    assert output.count("\n") == 1


@pytest.mark.parametrize(("arguments", "message"), BAD_USES.values(), ids=BAD_USES.keys())
def test_a_wrong_use_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (folder / "s.csv").write_text(f"{HEAD}s,m,1700000000,1\n")
    (folder / "s.txt").write_text("Once upon a time\n1\n")
    (folder / "latin.csv").write_bytes(f"{HEAD}s,m,1700000000,1\ngröße,m,1700000000,1\n".encode("latin-1"))
    (folder / "utf16.csv").write_bytes(HEAD.encode("utf-16")[:-1])
    (folder / "bad.parquet").write_bytes(b"PAR1 it is not")
    (folder / "bad.jsonl").write_text("{")
    (folder / "empty").mkdir()
    if "--workload" not in arguments:
        arguments = [*arguments, "--workload", "up.yaml"]
    assert run(["backtest", *arguments, "--events", "e.jsonl"]) == 2
    output = capsys.readouterr().err
    assert message in output
    assert output.count("\n") == 1


def test_windows_wider_than_the_resolution_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_dataset(as_dataset(record("shop", [(10, BASE)])), folder / "data")
    (folder / "half.yaml").write_text(WORKLOAD.format(series="").replace("1m", "500ms"))
    assert run(["backtest", "data", "--workload", "half.yaml", "--events", "e.jsonl"]) == 2
    assert "windows of 1s are wider than the resolution of workload minutes" in capsys.readouterr().err


def test_what_grows_for_longer_than_a_scan_sees_is_one_event(folder: Path) -> None:
    rng = np.random.default_rng(5)
    hours = np.arange(50 * 24)
    steady = 1000 * (1 - 0.01 * np.maximum(hours / 24 - 12, 0)) + rng.normal(0, 3, len(hours))
    rows = [
        ("shop", "capacity", T0 + 3600 * int(hour), value) for hour, value in zip(hours, steady, strict=True)
    ]
    write_csv(folder / "slow.csv", "service,metric,timestamp,value", rows)
    assert run(["backtest", "slow.csv", "--workload", "ct-supply-long", "--events", "e.jsonl"]) == 0
    kinds = [event["type"].rsplit(".", 1)[1] for event in lines(folder / "e.jsonl")]
    assert kinds[0] == "detected"
    assert set(kinds[1:]) == {"updated"}


@pytest.mark.parametrize(
    ("row", "message"),
    [("s,m,1871-01-01,1", "is no time between 2000 and 2100"), ("s,m,1700000000,", "value: missing")],
)
def test_backtest_still_wants_present_times_and_every_value(
    folder: Path, capsys: pytest.CaptureFixture[str], row: str, message: str
) -> None:
    (folder / "s.csv").write_text(f"service,metric,timestamp,value\n{row}\n")
    assert run(["backtest", "s.csv", "--workload", "up.yaml", "--events", "e.jsonl"]) == 2
    assert message in capsys.readouterr().err


def test_without_workloads_those_of_workers_run_as_far_as_they_can(folder: Path) -> None:
    times = [1_700_000_000 + 1800 * point for point in range(500)]
    rows = [
        *(("shop", "p50", t, 40 + t % 7 + 20 * (t > times[400]), "ms", "") for t in times),
        *(("shop", "score", t, 40 + t % 7 + 20 * (t > times[400]), "", "down") for t in times),
    ]
    write_csv(folder / "s.csv", "service,metric,timestamp,value,unit,direction", rows)
    assert run(["backtest", "s.csv", "--events", "e.jsonl", "--funnel", "f.json"]) == 0
    workloads = {row["workload"] for row in lines(folder / "f.json")[0]["workloads"]}
    assert workloads == {"ct-supply-short", "ct-supply-long", "ct-demand"}
    detected = [event["data"]["metric"] for event in lines(folder / "e.jsonl")]
    assert set(detected) == {"p50"}


def test_without_workloads_data_too_short_for_all_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(folder / "s.csv", "time,p50", [(T0 + 3600 * hour, 1) for hour in range(48)])
    assert run(["backtest", "s.csv", "--events", "e.jsonl"]) == 2
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "smidgen: s.csv: taken as: service s (--service names another); 1 column as series"
    assert err[1].startswith("smidgen: s.csv: 47h of data are too short for all workloads; ct-demand")
    assert len(err) == 2


@pytest.mark.parametrize("name", ["-", "s.csv", "s.parquet"])
def test_a_wide_file_is_scanned_as_metrics_of_its_service(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    rows = [(T0 + 60 * i, a, 7) for i, a in enumerate(stepped(50, 20))]
    if name == "s.parquet":
        times, a, b = zip(*rows, strict=True)
        pq.write_table(pa.table({"time": times, "a": a, "b": b}), folder / name)
    else:
        write_csv(folder / "s.csv", "time,a,b", rows)
    monkeypatch.setattr("sys.stdin", (folder / "s.csv").open() if name == "-" else None)
    arguments = ["backtest", name, "--workload", "up.yaml", "--service", "shop", "--events", "e.jsonl"]
    assert run(arguments) == 0
    (event,) = lines(folder / "e.jsonl")
    assert (event["data"]["service"], event["data"]["metric"]) == ("shop", "a")
    shown = "stdin" if name == "-" else name
    assert capsys.readouterr().err.startswith(f"smidgen: {shown}: taken as: 2 columns as series\n")


def test_a_direction_that_is_none_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(folder / "s.csv", "service,metric,timestamp,value,direction", [("s", "m", 1.7e9, 1, "left")])
    assert run(["backtest", "s.csv", "--workload", "up.yaml", "--events", "e.jsonl"]) == 2
    assert "s.csv:2: direction: should be up, down, none, not 'left'" in capsys.readouterr().err
