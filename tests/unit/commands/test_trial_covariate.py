"""``smidgen trial verdict``: files with a column of requests, and metrics that explain others."""

from __future__ import annotations

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

HEADER = "trial,side,metric,value"


def covariate_file(
    path: Path, trials: int, *, effect: float = 0.0, shift: float = 0.0, without: Sequence[int] = ()
) -> Path:
    """Write trials in which ``cpu`` follows ``before``; some lack that."""
    rng = np.random.default_rng(trials)
    lines = [HEADER]
    for number in range(trials):
        machine = rng.normal(1.0, 0.02, 2)
        for side, factor in zip("AB", machine, strict=True):
            worse = 1.0 + (effect if side == "B" else 0.0)
            for metric, level in (("cpu", factor * worse), ("before", factor + shift * (side == "B"))):
                if metric == "cpu" or number not in without:
                    values = 100.0 * level * rng.normal(1.0, 0.005, 20)
                    lines += [f"t{number},{side},{metric},{value:.6f}" for value in values]
    path.write_text("\n".join(lines))
    return path


def request_file(path: Path, *, effect: float, trials: int = 1, column: str = "request") -> Path:
    """Write trials whose requests differ in cost; side A serves five more, and one point has none."""
    rng = np.random.default_rng(1)
    lines = [f"{HEADER},{column}"]
    for number in range(trials):
        cost = rng.lognormal(3.0, 0.4, 60)
        for side, served in (("A", np.arange(60)), ("B", np.arange(5, 60))):
            values = cost[served] * rng.normal(1.0, 0.01, len(served)) * (1.0 + effect * (side == "B"))
            lines += [
                f"{number},{side},cpu,{value:.6f},0{request}"
                for request, value in zip(served, values, strict=True)
            ]
        lines.append(f"{number},A,cpu,20,")
    path.write_text("\n".join(lines))
    return path


def verdict(path: Path, *arguments: str) -> dict[str, object]:
    result = CliRunner().invoke(
        smidgen, ["trial", "verdict", str(path), "--json", *arguments], standalone_mode=False
    )
    assert result.exception is None, result.output
    (line,) = result.output.splitlines()
    found = orjson.loads(line)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("effect", "decision"), [(0.03, "fail"), (0.0, "pass")])
def test_pairs_decide_by_one_trial(tmp_path: Path, effect: float, decision: str) -> None:
    found = verdict(request_file(tmp_path / "t.csv", effect=effect))
    assert (found["decision"], found["model"]) == (decision, "paired-by-request")
    assert found["requests"] == {"pairs": 55, "only_a": 5, "only_b": 0}
    points = verdict(request_file(tmp_path / "u.csv", effect=effect, column="note"))
    assert (points["decision"], "requests" in points) == ("not enough", False)


def test_requests_are_shown_to_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trial", "verdict", str(request_file(tmp_path / "t.csv", effect=0.0))]) == 0
    said = "55 pairs of the same request, 5 requests of side A alone, 0 of side B alone"
    assert said in capsys.readouterr().out


def test_trials_with_requests_can_be_left_to_another_model(tmp_path: Path) -> None:
    path = request_file(tmp_path / "t.csv", effect=0.0)
    assert verdict(path, "--model", "t-test-none")["decision"] == "not enough"


@pytest.mark.parametrize("history", [True, False])
@pytest.mark.parametrize(("effect", "decision"), [(0.02, "fail"), (0.0, "pass")])
def test_a_covariate_decides_what_trials_alone_do_not(
    tmp_path: Path, history: bool, effect: float, decision: str
) -> None:
    path = covariate_file(tmp_path / "t.csv", 8, effect=effect)
    arguments = ["--covariate", "cpu=before"]
    if history:
        past = covariate_file(tmp_path / "aa.csv", 60, without=[3, 7])
        arguments += ["--history", str(past)]
    found = verdict(path, *arguments)
    assert (found["metric"], found["decision"]) == ("cpu", decision)
    used = found["covariate"]
    assert isinstance(used, dict)
    assert (used["covariate"], used["use"]) == ("before", "history" if history else "trials")
    assert used["variance_fell"] > 0.9


@pytest.mark.parametrize(
    ("trials", "shift", "said"),
    [
        (8, 0.0, "adjusted by before: the variance of trials' differences fell by 9"),
        (8, 0.2, "not adjusted, as side B changes the covariate: before itself differs by +2"),
        (3, 0.0, "not adjusted by before: that takes 20 A/A trials, or 5 trials"),
    ],
)
def test_what_a_covariate_did_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trials: int, shift: float, said: str
) -> None:
    path = covariate_file(tmp_path / "t.csv", trials, shift=shift)
    run(["trial", "verdict", str(path), "--covariate", "cpu=before"])
    assert said in capsys.readouterr().out


def test_a_history_without_the_covariate_is_no_hindrance(tmp_path: Path) -> None:
    path = covariate_file(tmp_path / "t.csv", 8)
    past = covariate_file(tmp_path / "aa.csv", 50, without=range(50))
    found = verdict(path, "--covariate", "cpu=before", "--history", str(past))
    used = found["covariate"]
    assert isinstance(used, dict)
    assert used["use"] == "trials"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--covariate", "cpu"], "should be METRIC=COVARIATE"),
        (["--covariate", "cpu="], "should be METRIC=COVARIATE"),
        (["--covariate", "cpu=cpu"], "the covariate should be another metric"),
        (["--covariate", "cpu=nope"], "no metric 'nope'; it has before, cpu"),
        (["--covariate", "nope=cpu"], "no metric 'nope'"),
        (["--covariate", "cpu=before", "--covariate", "cpu=before"], "a metric has one covariate"),
        (["--covariate", "cpu=before", "--covariate", "before=cpu"], "is not explained itself"),
        (["--covariate", "cpu=before"], "trial t2: before: no points, which explain cpu"),
        (["--covariate", "cpu=before", "--worse-down", "before"], "no metric 'before'; it has cpu"),
        (["--model", "paired-by-request"], "has no column 'request'"),
    ],
)
def test_bad_covariates_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], error: str
) -> None:
    lacks = [2] if "no points" in error else []
    path = covariate_file(tmp_path / "t.csv", 4, without=lacks)
    assert run(["trial", "verdict", str(path), *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert error in lines[0]


def test_covariates_are_of_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trial", "verdict", "--experiment", "e", "--service", "s", "--covariate", "a=b"]) == 2
    assert "--covariate" in capsys.readouterr().err


def test_requests_may_be_numbers(tmp_path: Path) -> None:
    rows = pa_csv.read_csv(request_file(tmp_path / "t.csv", effect=0.0))
    assert pa.types.is_integer(rows["request"].type)
    pq.write_table(rows, tmp_path / "t.parquet")
    assert verdict(tmp_path / "t.parquet")["requests"] == {"pairs": 55, "only_a": 5, "only_b": 0}
