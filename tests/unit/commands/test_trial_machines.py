"""``smidgen trial machines`` and ``smidgen trial match``: files in, factors and pairs out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner, Result

from pipeline.cli import run, smidgen

MACHINES = [(f"m{number}", "ab"[number % 2], f"0{number // 2 % 3}") for number in range(30)]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    lines = ["metric,machine,arch,kernel,value"]
    for machine, arch, kernel in MACHINES * 20:
        value = 100 + 20 * (arch == "a") + rng.normal(0, 8 if kernel == "01" else 2)
        lines += [f"cpu,{machine},{arch},{kernel},{value}", f"p99,{machine},{arch},{kernel},1"]
    path = tmp_path / "results.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    path = tmp_path / "machines.csv"
    path.write_text("\n".join(["machine,arch,kernel", *(",".join(one) for one in MACHINES)]))
    return path


def trial(*arguments: str | Path) -> Result:
    return CliRunner().invoke(smidgen, ["trial", *map(str, arguments)], standalone_mode=False)


def test_factors_and_levels_to_avoid(results: Path) -> None:
    found = orjson.loads(trial("machines", results, "--metric", "cpu", "--json").output)
    assert found["factors"] == ["arch"]
    assert found["explained"] == pytest.approx(found["explained_by_all"], abs=0.02)
    avoided = [(each["factor"], each["level"]) for each in found["levels"] if each["avoid"]]
    assert avoided == [("kernel", "01")]  # which a number would have lost its zero of
    assert found["spread_of_matching"][0] < found["spread_of_matching"][1]


def test_table(results: Path) -> None:
    output = trial("machines", results, "--metric", "cpu").output
    assert "machines should match in arch, which explain" in output
    assert "avoid" in output
    assert "spread of one machine:" in output


def test_pairs_match_and_are_drawn_again_by_seed(machines: Path) -> None:
    arguments = ("match", machines, "--factor", "arch,kernel", "--avoid", "kernel=01", "--pairs", "6")
    first, again = (trial(*arguments, "--seed", "3", "--json") for _ in range(2))
    assert first.return_value == 0
    assert first.output == again.output
    of = {machine: (arch, kernel) for machine, arch, kernel in MACHINES}
    for line in first.output.splitlines():
        pair = orjson.loads(line)
        assert of[pair["a"]] == of[pair["b"]]
        assert of[pair["a"]][1] != "01"


def test_too_few_pairs_are_said(machines: Path) -> None:
    found = trial("match", machines, "--factor", "arch,kernel", "--pairs", "99")
    assert found.return_value == 1
    assert "only 12 pairs of 30 machines match in arch, kernel" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["machines", "{results}"], "several metrics: choose with --metric: cpu, p99"),
        (["machines", "{results}", "--metric", "cpv"], "--metric cpv: {results} has cpu, p99"),
        (["machines", "{results}", "--metric", "cpu", "--factor", "ram"], "no column 'ram'"),
        (["machines", "{results}", "--metric", "cpu", "--factor", "arch,,ram"], "holds an empty name"),
        (["machines", "{machines}"], "no column 'value'"),
        (["machines", "{few}"], "no column is a factor; it has value"),
        (["machines", "{zero}"], "values should be more than 0"),
        (
            ["match", "{machines}", "--factor", "arch", "--avoid", "kernel=9"],
            "no such level; there are 00, 01, 02",
        ),
        (["match", "{machines}", "--factor", "arch", "--avoid", "kernel"], "should be FACTOR=LEVEL"),
        (["match", "{results}", "--factor", "arch"], "row 2: machine: stands twice"),
        (["match", "{machines}"], "Missing option '--factor'"),
        (["machines", "{none}"], "No such file"),
    ],
)
def test_mistakes_are_said_in_one_line(
    results: Path,
    machines: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    reason: str,
) -> None:
    names = {"results": results, "machines": machines, "none": tmp_path / "none.csv"}
    for name, text in (("few", "value\n3\n"), ("zero", "arch,value\na,0\n")):
        names[name] = tmp_path / f"{name}.csv"
        names[name].write_text(text)
    assert run(["trial", *(argument.format(**names) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert reason.format(**names) in error
    assert "Traceback" not in error
