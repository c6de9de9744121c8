"""``smidgen trial verdict``: a file of trials in, a verdict a metric and an exit code out."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pipeline.cli import run, smidgen
from pipeline.experiments.trials import MODELS

TRIALS = 12


def table(effects: dict[str, float], trials: int = TRIALS, seed: int = 1) -> pa.Table:
    """Return trials of metrics whose side B differs by a share each; ``cpu`` warms up."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(trials):
        for side in ("A", "B"):
            for metric, effect in effects.items():
                values = rng.normal(100.0, 2.0, 60) * (1.0 + (effect if side == "B" else 0.0))
                if metric == "cpu":
                    values *= 1.0 + 0.5 * np.exp(-np.arange(60) / 4.0)
                rows += [(f"t{number}", side, metric, value) for value in values]
    return pa.table(dict(zip(("trial", "side", "metric", "value"), zip(*rows, strict=True), strict=True)))


def verdicts(path: Path, *arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    result = CliRunner().invoke(
        smidgen, ["trial", "verdict", str(path), "--json", *arguments], standalone_mode=False
    )
    assert result.exception is None, result.output
    lines = [orjson.loads(line) for line in result.output.splitlines()]
    return int(result.return_value), {line["metric"]: line for line in lines}


def written(path: Path, rows: pa.Table) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(rows, path)
    else:
        pa_csv.write_csv(rows, path)
    return path


@pytest.mark.parametrize("name", ["trials.csv", "trials.parquet", "anything"])
@pytest.mark.parametrize(
    ("effects", "arguments", "code", "decisions"),
    [
        ({"cpu": 0.0, "p99": 0.0}, [], 0, {"cpu": "pass", "p99": "pass"}),
        ({"cpu": 0.03, "p99": 0.0}, [], 1, {"cpu": "fail", "p99": "pass"}),
        ({"cpu": -0.03}, [], 0, {"cpu": "pass"}),
        ({"cpu": -0.03}, ["--worse-down", "cpu"], 1, {"cpu": "fail"}),
        ({"cpu": 0.0}, ["--threshold", "0.0005"], 3, {"cpu": "not enough"}),
        ({"cpu": 0.03}, ["--metric-threshold", "cpu=0.05"], 0, {"cpu": "pass"}),
        ({"cpu": 0.03}, ["--sequential"], 1, {"cpu": "fail"}),
        ({"cpu": 0.03}, ["--model", "permutation-test-sqrt"], 1, {"cpu": "fail"}),
    ],
)
def test_verdicts(
    tmp_path: Path, name: str, effects: dict[str, float], arguments: list[str], code: int, decisions: object
) -> None:
    path = written(tmp_path / name, table(effects))
    exit_code, found = verdicts(path, *arguments)
    assert {metric: each["decision"] for metric, each in found.items()} == decisions
    assert exit_code == code


def test_warm_up_is_discarded_and_shown(tmp_path: Path) -> None:
    _, found = verdicts(written(tmp_path / "t.csv", table({"cpu": 0.0, "p99": 0.0})))
    lost = found["cpu"]["warm_up"]
    assert isinstance(lost, list)
    assert min(lost) > 5
    assert found["cpu"]["mean_a"] == pytest.approx(100.0, abs=1.0)


def test_history_chooses_the_model(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", table({"p99": 0.03}, trials=4))
    past = written(tmp_path / "past.csv", table({"p99": 0.0}, trials=168, seed=2))
    exit_code, found = verdicts(path, "--history", str(past))
    scores = found["p99"]["scores"]
    assert isinstance(scores, list)
    chosen = next(score for score in scores if score["model"] == found["p99"]["model"])
    assert chosen["holds"]
    assert exit_code == 1
    without, _ = verdicts(path)
    assert without == 1


def test_a_trial_that_never_gets_steady_is_left_out(tmp_path: Path) -> None:
    rows = table({"p99": 0.0})
    values = rows["value"].to_numpy().copy()
    values[:60] += np.arange(60)  # side A of the first trial
    path = written(tmp_path / "t.csv", rows.set_column(3, "value", pa.array(values)))
    _, found = verdicts(path)
    assert found["p99"]["unsteady"] == [0]
    assert found["p99"]["trials"] == TRIALS - 1


def test_many_metrics_share_one_error(tmp_path: Path) -> None:
    effects = {f"m{number}": 0.0 for number in range(200)}
    _, found = verdicts(written(tmp_path / "t.parquet", table(effects, trials=6)), "--threshold", "0.0001")
    assert not [metric for metric, each in found.items() if each["decision"] == "fail"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("trial,side,metric\n1,A,cpu\n", "no column 'value'; it has trial, side, metric"),
        ("trial,side,metric,value\n", "holds no points"),
        ("trial,side,metric,value\n1,C,cpu,3\n", "row 1: side: should be A or B, is 'C'"),
        ("trial,side,metric,value\n1,A,cpu,3\n", "trial 1: cpu: side B has no points"),
        ("trial,side,metric,value\n1,A,cpu,x\n", "value: should be of type double"),
        ("trial,side,metric,value\n1,A,cpu,inf\n", "row 1: value: should be a finite number"),
        ("trial,side,metric,value\n1,A,cpu,0\n1,B,cpu,0\n", "cpu: the mean of side A is 0"),
        ("trial,side,metric,value\n1,A,cpu,-1\n1,B,cpu,2\n", "cpu: holds values less than 0"),
        ("trial,side,metric,value\n1,A\n", "not a CSV file"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, error: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert run(["trial", "verdict", str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert error in lines[0]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--worse-down", "nope"], "no metric 'nope'; it has cpu"),
        (["--metric-threshold", "nope=1"], "no metric 'nope'"),
        (["--metric-threshold", "cpu"], "should be NAME=SHARE"),
        (["--sequential", "--model", "t-test-none"], "leave out --model"),
        (["--model", "confidence-interval-none"], "compares with A/A trials; give them as --history"),
    ],
)
def test_bad_flags_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], error: str
) -> None:
    path = written(tmp_path / "t.csv", table({"cpu": 0.0}, trials=2))
    assert run(["trial", "verdict", str(path), *arguments]) == 2
    assert error in capsys.readouterr().err


def test_table_is_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trial", "verdict", str(written(tmp_path / "t.csv", table({"cpu": 0.03})))]) == 1
    shown = capsys.readouterr().out
    assert "fail" in shown
    assert "warm-up" in shown
    assert "paired-t-test" in shown


def small(*rows: str) -> str:
    return "\n".join(("trial,side,metric,value", *rows, ""))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("trial,side,metric,value,value\n1,A,m,1,2\n", "value: column stands twice"),
        (small('1,A,"",1'), "row 1: metric: missing"),
        (small("1,A,m,NaN"), "row 1: value: should be a finite number"),
        (small("1,A,m,1e200", "1,B,m,1"), "m: values should be 0, or from 1e-100 to 1e+100"),
        (small("1,A,m,1", "1,B,m,1e-310"), "m: values should be 0, or from 1e-100 to 1e+100"),
        (
            small(*(f"{n},{side},m,1" for n in range(20_000) for side in "AB"), *["0,A,m,1"] * 5_000),
            "m: side A: one of 20,000 trials has 5,001 points, which is too uneven",
        ),
    ],
)
def test_odd_files_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, error: str
) -> None:
    test_bad_files_are_refused_in_one_line(tmp_path, capsys, text, error)


def test_names_are_texts_whatever_they_look_like(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(small(*(f"{name},{side},007,1" for name in ("01", "1", "NA") for side in "AB")))
    _, found = verdicts(path)
    assert found["007"]["trials"] == 3


def test_categories_without_rows_do_not_matter(tmp_path: Path) -> None:
    def categories(codes: list[int], *names: str) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names))

    sides, metrics = categories([1, 2] * 3, "C", "A", "B"), categories([1] * 6, "other", "m")
    rows = pa.table({"trial": list("112233"), "side": sides, "metric": metrics, "value": [1.0] * 6})
    assert verdicts(written(tmp_path / "t.parquet", rows))[1].keys() == {"m"}


def test_standard_input_is_read(tmp_path: Path) -> None:
    text = small(*(f"{n},{side},m,1" for n in range(3) for side in "AB"))
    found = CliRunner().invoke(smidgen, ["trial", "verdict", "-"], input=gzip.compress(text.encode()))
    assert "pass" in found.output


def test_a_history_without_a_metric_is_noted_and_one_without_any_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "t.csv", table({"cpu": 0.0, "p99": 0.0}))
    past = tmp_path / "past.csv"
    past.write_text(small("1,A,p99,1", "1,B,p99,1", "1,A,rare,0", "1,B,rare,0"))
    assert run(["trial", "verdict", str(path), "--history", str(past)]) == 0
    assert capsys.readouterr().err.splitlines() == [f"smidgen: {past}: no A/A trials of cpu"]
    past.write_text(small("1,A,other,1", "1,B,other,1"))
    assert run(["trial", "verdict", str(path), "--history", str(past)]) == 2
    assert "has A/A trials of no metric that is judged; these are cpu, p99" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "give a FILE, or --experiment and --service"),
        (["t.csv", "--experiment", "e"], "give a FILE, or --experiment and --service"),
        (["t.csv", "--service", "s"], "--service: of --experiment"),
        (["--experiment", "e"], "--experiment: say whose, by --service"),
        (["--experiment", "e", "--service", "s", "--alpha", "0.1"], "--alpha: of files"),
        (["--experiment", "e", "--service", "s", "--worse-down", "cpu"], "--worse-down: of files"),
        (["t.csv", "--model", "nope"], "--model: no model 'nope'; there are confidence-interval-none"),
    ],
)
def test_a_file_and_an_experiment_have_flags_of_their_own(
    capsys: pytest.CaptureFixture[str], arguments: Sequence[str], error: str
) -> None:
    assert run(["trial", "verdict", *arguments]) == 2
    assert error in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--factor", "type"], "should be NAME=VALUE"),
        (["--worse-down", "nope"], "no metric 'nope'; it has cpu"),
        (["--metric-threshold", "cpu=0"], "0.0 is not in the range x>0"),
        (["--experiment", "x" * 401], "experiment: longer than 400 characters"),
        (["--time", "2099-01-01T00:00:00Z"], "s in the future"),
    ],
)
def test_what_cannot_be_sent_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], error: str
) -> None:
    path = written(tmp_path / "t.csv", table({"cpu": 0.0}, trials=2))
    flags = ["--service", "s", "--experiment", "e", "--broker", "127.0.0.1:9"]
    assert run(["trial", "publish", str(path), *flags, *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert error in lines[-1]


def test_models_are_listed() -> None:
    result = CliRunner().invoke(smidgen, ["trial", "models", "--available", "--json"], standalone_mode=False)
    names = [orjson.loads(line)["model"] for line in result.output.splitlines()]
    assert names[0] == "t-test-none"
    assert names == list(MODELS)
