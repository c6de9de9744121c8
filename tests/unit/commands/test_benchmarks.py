"""``smidgen benchmarks watch``: files of a real repository's commits in, the guilty commit out."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
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
    late = CliRunner().invoke(smidgen, [*arguments, "--last", "4"], standalone_mode=False)
    assert late.return_value == 0
    assert "0 changes" in late.stdout


def test_the_title_says_how_many_files_hold_no_results(results: Path, tmp_path: Path) -> None:
    for number, path in enumerate(sorted(results.iterdir())):
        name = f"{number:02}-{path.name}"
        (tmp_path / name).write_text("" if number == 5 else path.read_text())
    (tmp_path / "README.md").write_text("Results of benchmarks")
    _, stdout, stderr = watched(tmp_path)
    assert "over 22 commits, ordered by the numbers in names" in " ".join(stdout.split())
    assert "without 1 file that hold" in " ".join(stdout.split())
    assert "passed over 2 files without results" in stderr


def google(number: int, host: str, *benchmarks: object) -> bytes:
    date = f"2026-01-{number + 1:02}T00:00:00Z"
    return orjson.dumps({"context": {"date": date, "host_name": host}, "benchmarks": benchmarks})


def watched(folder: Path, *options: str) -> tuple[int, str, str]:
    answer = CliRunner().invoke(
        smidgen, ["benchmarks", "watch", str(folder), *options], standalone_mode=False
    )
    return answer.return_value, answer.stdout, answer.stderr


def written_by_hosts(folder: Path, hosts: Sequence[str]) -> None:
    """Write results of commits by hosts; from the thirteenth on they are a fifth slower."""
    rng = np.random.default_rng(2)
    for number, host in enumerate(hosts):
        time = rng.normal(100, 1) * (1.2 if number >= 12 else 1.0)
        failed = {"name": "b", "error_occurred": True}
        (folder / f"{number}.json").write_bytes(google(number, host, {"name": "a", "cpu_time": time}, failed))


def test_what_is_left_out_is_said_and_in_json(tmp_path: Path) -> None:
    written_by_hosts(tmp_path, ["old"] * 20 + ["new"] * 4)
    (tmp_path / "notes.txt").write_text("hello")
    code, output, notes = watched(tmp_path, "--json")
    (line,) = output.splitlines()
    change = orjson.loads(line)
    assert code == 1
    assert change["left_out"] == {"files": 1, "failed": 24, "short_series": 1, "ended_series": 1}
    assert change["order"] == "run_times"
    assert change["labels"] == {"format": "google-benchmark", "host_name": "old", "statistic": "median"}
    for note in (
        "passed over 1 file without results",
        "passed over 24 runs that failed",
        "results that differ in host_name are series of their own (--across LABEL joins them)",
        "1 of 2 series not judged, with fewer than 8 commits",
    ):
        assert note in notes
    code, output, notes = watched(tmp_path, "--last", "4")
    assert (code, "0 changes in 1 benchmark over 24 commits, ordered by the times of runs" in output) == (
        0,
        True,
    )
    assert "1 of 2 series without a result of the last 4 commits" in notes


@pytest.mark.parametrize(("commits", "least"), [(8, 4), (64, 4), (144, 6)])
def test_the_fewest_last_commits_that_are_accepted_show_a_change_of_their_first(
    commits: int, least: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(4)
    for number in range(commits):
        time = rng.normal(100, 0.1) * (2 if number >= commits - least else 1)
        (tmp_path / f"{number}.txt").write_text(f"BenchmarkSum-8 1000 {time:.3f} ns/op\n")
    assert watched(tmp_path, "--last", str(least))[0] == 1
    assert run(["benchmarks", "watch", str(tmp_path), "--last", "3"]) == 2
    assert f"a change is seen once {least} commits" in capsys.readouterr().err
    assert ("commits 6 must have a level" in watched(tmp_path, "--last", "4")[2]) == (least > 4)


def test_hosts_of_one_commit_each_are_refused_unless_they_are_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written_by_hosts(tmp_path, [f"ci-{number}" for number in range(24)])
    assert run(["benchmarks", "watch", str(tmp_path)]) == 2
    assert "no series has 8 of 24 commits: results that differ in host_name" in capsys.readouterr().err
    code, output, notes = watched(tmp_path, "--across", "host_name")
    assert (code, "1 change in 1 benchmark" in output, "series" in notes) == (1, True, False)


def test_an_order_that_was_given_is_said(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.txt" for name in ("old", "new")]
    for path in paths:
        path.write_text("BenchmarkSum-8 1000 5 ns/op\n")
    for options, is_said in (([], True), (["--in-order"], False)):
        arguments = ["benchmarks", "watch", *map(str, paths), *options]
        answer = CliRunner().invoke(smidgen, arguments, standalone_mode=False)
        assert "over 2 commits, ordered by their files as given" in answer.stdout
        assert ("commits are in the order in which files are given" in answer.stderr) is is_said


def test_metrics_of_unknown_direction_are_said_and_judged_with_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(24):
        hits = (50 if number < 12 else 40) + number % 3
        (tmp_path / f"{number}.txt").write_text(f"BenchmarkCache-8 9 {100 + number % 3} ns/op {hits} hits\n")
    code, _, notes = watched(tmp_path)
    assert (code, "whether more of hits is better (--better hits=higher, or =lower)" in notes) == (0, True)
    assert [watched(tmp_path, "--better", f"hits={way}")[0] for way in ("higher", "lower")] == [1, 0]
    for path in tmp_path.iterdir():
        path.write_text(path.read_text().replace("ns/op", "loss"))
    assert run(["benchmarks", "watch", str(tmp_path)]) == 2
    assert "2 of 2 series not judged: it is not known whether more of loss, hits" in capsys.readouterr().err


def test_what_holds_no_results_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(24):
        (tmp_path / f"{number}.txt").write_text("BenchmarkCache-8 9 5 ns/op\n")
    (tmp_path / "README.md").write_text("It is fast:\n\nBenchmarkCache-8 9 5 ns/op\n")
    report = tmp_path / "all.csv"
    report.write_text("command,mean,stddev,median,user,system,min,max\n")
    code, _, notes = watched(tmp_path)
    assert code == 0
    assert "passed over 1 file without results: README.md" in notes
    assert "passed over 1 file of hyperfine's console, CSV or Markdown: --export-json FILE writes" in notes
    (tmp_path / "cut.json").write_text('{"context": {}, "benchmarks": [')
    for path, reason in (
        (
            tmp_path / "cut.json",
            "is not one JSON document (cut off, or several in a file), and holds no results",
        ),
        (report, "holds hyperfine's console, CSV or Markdown; --export-json FILE writes"),
        (tmp_path / "README.md", "is a document, and holds no results of pytest-benchmark"),
    ):
        assert run(["benchmarks", "watch", str(path)]) == 2
        assert reason in capsys.readouterr().err


def test_uncommitted_changes_are_said(tmp_path: Path) -> None:
    commit = {"id": "0f3c2a9d", "dirty": True}
    benchmark = {"fullname": "a", "stats": {"median": 1.0}}
    document = {"machine_info": {}, "commit_info": commit, "benchmarks": [benchmark]}
    (tmp_path / "a.json").write_bytes(orjson.dumps(document))
    assert "1 file measured with changes that were not committed" in watched(tmp_path)[2]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["{none}"], "No such file or directory"),
        (["{empty}"], "no results of"),
        (["{results}", "--repo", "{empty}"], "not a git repository"),
        (["{results}", "--repo", "{repository}", "--branch", "nope"], "nope"),
        (["{results}", "--alpha", "0.7"], "--alpha"),
        (["{results}"], "the order of 23 commits is not known: 23 of 23 files have no time"),
        (["{results}", "--repo", "{repository}", "--in-order"], "--in-order: --repo gives the order"),
        (
            ["{results}", "--in-order", "--better", "ns=more"],
            "--better': should be METRIC=higher or METRIC=lower",
        ),
        (["{results}", "--in-order", "--better", "hits=higher"], "--better hits: no result has it, but"),
        (["{results}", "--in-order", "--across", "goos"], "--across goos: no result has this label, but"),
        (
            ["{results}", "--in-order", "--last", "3"],
            "--last 3: a change is seen once 4 commits have",
        ),
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


@pytest.mark.parametrize(
    ("depth", "code", "notes"),
    [
        (1, 2, "HEAD has 1 commit of the 23 measured (the clone is shallow, and git fetch --unshallow"),
        (12, 0, "the clone is shallow, and git fetch --unshallow gives it all commits\n"),
    ],
)
def test_a_shallow_clone_is_said(
    depth: int, code: int, notes: str, repository: Path, results: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", f"--depth={depth}", repository.as_uri(), "clone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        arguments = ["benchmarks", "watch", str(results), "--repo", str(tmp_path / "clone")]
        answer = CliRunner().invoke(smidgen, arguments, standalone_mode=False)
    said = answer.stderr + (str(answer.exception) if answer.exception else "")
    assert (answer.return_value or (2 if answer.exception else 0), notes in said) == (code, True)


def test_a_benchmark_that_was_renamed_is_said(tmp_path: Path) -> None:
    for number in range(24):
        name = "Old" if number < 12 else "New"
        (tmp_path / f"{number}.txt").write_text(f"Benchmark{name}-8 1000 {100 + number % 3} ns/op\n")
    answer = CliRunner().invoke(smidgen, ["benchmarks", "watch", str(tmp_path)], standalone_mode=False)
    assert "1 of 2 series without a result of the last 4 commits" in answer.stderr
