"""``smidgen trial needed``: A/A trials in, numbers of trials out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner, Result

from pipeline.cli import run, smidgen


def trial(*arguments: str | Path) -> Result:
    return CliRunner().invoke(smidgen, ["trial", "needed", *map(str, arguments)], standalone_mode=False)


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    """Return 40 A/A trials: of cpu they differ by 1 % in the mean square, of steps not at all."""
    rng = np.random.default_rng(1)
    differences = rng.normal(0, 1, 40)
    differences *= 0.01 / np.sqrt(np.mean(differences**2))
    lines = ["trial,side,metric,value"]
    for number, difference in enumerate(differences):
        for side, level in (("A", 100.0), ("B", 100.0 * (1 + difference))):
            lines += [f"{number},{side},cpu,{level + wave}" for wave in (-1, 1) * 10]
            lines += [f"{number},{side},steps,7"] * 20
    path = tmp_path / "aa.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_trials_go_with_the_square_of_the_threshold(trials: Path) -> None:
    result = trial(trials, "--threshold", "0.02", "--threshold", "0.002", "--json")
    cpu, steps = (orjson.loads(line) for line in result.stdout.splitlines())
    assert (cpu["metric"], steps["metric"]) == ("cpu", "steps")
    assert len(cpu["differences"]) == 40
    few, many = (each["trials"] for each in cpu["needed"])
    assert few == 2  # two standard deviations of 1 % by the root of 2 are within 2 %
    assert many == pytest.approx((2.02 * 0.01 / 0.002) ** 2, rel=0.05)
    widths = [each["half_width"] for each in cpu["intervals"]]
    assert widths[0] == pytest.approx(2.02 * 0.01, rel=0.01)
    assert widths[3] == pytest.approx(widths[0] / np.sqrt(10))
    assert [each["trials"] for each in steps["needed"]] == [1, 1]


def test_looking_after_every_trial_takes_more(trials: Path) -> None:
    once, each = (
        orjson.loads(trial(trials, "--threshold", "0.005", "--json", *extra).stdout.splitlines()[0])
        for extra in ((), ("--sequential",))
    )
    assert each["needed"][0]["trials"] > once["needed"][0]["trials"]


def test_bars_shrink(trials: Path) -> None:
    lines = trial(trials).stdout.splitlines()
    bars = [line.count("█") for line in lines if "±" in line][:8]
    assert bars == sorted(bars, reverse=True)
    assert bars[0] == 40
    assert any("> 10,000" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "trial,side,metric,value\n1,A,cpu,5\n1,B,cpu,5\n",
            "no metric has two A/A trials that became",
        ),
        ("trial,side,metric\n1,A,cpu\n", "no column 'value'"),
    ],
)
def test_mistakes_are_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    path = tmp_path / "aa.csv"
    path.write_text(text)
    assert run(["trial", "needed", str(path)]) == 2
    assert reason in capsys.readouterr().err
