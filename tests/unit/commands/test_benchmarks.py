"""``smidgen benchmarks watch``: files of a real repository's commits in, the guilty commit out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from pipeline.cli import run, smidgen

COMMITS = 24
GUILTY = 15


def git(folder: Path, *arguments: str) -> str:
    names = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q", "-b", "main")
    for number in range(COMMITS):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"Commit {number}")
    return folder


@pytest.fixture(scope="module")
def results(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of every commit but the one after the guilty's parent, named after commits."""
    folder = tmp_path_factory.mktemp("results")
    rng = np.random.default_rng(1)
    shas = git(repository, "rev-list", "--reverse", "main").split()
    for number, sha in enumerate(shas):
        slow = 1.1 if number >= GUILTY else 1.0
        if number != GUILTY:
            lines = [f"BenchmarkSum-8 1000 {rng.normal(100, 1) * slow:.3f} ns/op" for _ in range(3)]
            (folder / f"{sha[:10]}.txt").write_text("\n".join(lines) + "\n")
    return folder


def test_the_repository_gives_order_and_suspects(repository: Path, results: Path) -> None:
    found = CliRunner().invoke(
        smidgen,
        ["benchmarks", "watch", str(results), "--repo", str(repository), "--json"],
        standalone_mode=False,
    )
    assert found.return_value == 1
    (line,) = found.stdout.splitlines()
    change = orjson.loads(line)
    assert (change["benchmark"], change["unit"], change["worse"]) == ("BenchmarkSum", "ns", True)
    assert [one["title"] for one in change["suspects"]] == [f"Commit {GUILTY}", f"Commit {GUILTY + 1}"]
    assert change["suspects"][0]["author"] == "Ann <ann@example.org>"


def test_the_table_and_the_last_commits(repository: Path, results: Path) -> None:
    arguments = ["benchmarks", "watch", str(results), "--repo", str(repository)]
    shown = CliRunner().invoke(smidgen, arguments, standalone_mode=False)
    assert "1 change in 1 benchmark over 23 commits" in shown.stdout
    assert f"Commit {GUILTY}" in shown.stdout
    late = CliRunner().invoke(smidgen, [*arguments, "--last", "3"], standalone_mode=False)
    assert late.return_value == 0
    assert "0 changes" in late.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["{none}"], "No such file or directory"),
        (["{empty}"], "no results of"),
        (["{results}", "--repo", "{empty}"], "not a git repository"),
        (["{results}", "--repo", "{repository}", "--branch", "nope"], "nope"),
        (["{results}", "--alpha", "0.7"], "--alpha"),
        ([], "Missing argument"),
    ],
)
def test_mistakes_are_said_in_one_line(
    repository: Path,
    results: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    reason: str,
) -> None:
    names = {"none": tmp_path / "none", "empty": tmp_path, "results": results, "repository": repository}
    assert run(["benchmarks", "watch", *(argument.format(**names) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert "Traceback" not in error
