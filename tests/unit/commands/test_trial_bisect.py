"""``smidgen trial bisect`` on a real repository of 16 commits, one of which costs more operations."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from pipeline.cli import run, smidgen
from tests.support.repositories import Work

COMMITS = 16
GUILTY = 11
BROKEN = 6

# Operations are counted, and each run adds noise from a seed of its own; awk starts in a millisecond.
COST = """\
printf '\n' >> ../runs
awk -v n="$(wc -l < ../runs)" 'BEGIN { srand(n); print OPERATIONS + (rand() + rand() + rand() - 1.5) * 10 }'
"""


def cost(number: int) -> str:
    return COST.replace("OPERATIONS", "1020" if number >= GUILTY else "1000")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    work = Work(tmp_path_factory.mktemp("repository"))
    for number in range(COMMITS + 1):
        files = {"cost.sh": cost(number), "n": str(number), "ok": "" if number != BROKEN else None}
        if number == 0 or number == BROKEN + 1:
            files["ok"] = ""
        elif number != BROKEN:
            del files["ok"]
        work.commit(f"Commit {number}", files)
    return work


def bisect(work: Work, *arguments: str) -> Result:
    span = [] if "--suspects" in arguments else [f"HEAD~{COMMITS}..HEAD"]
    command = ["trial", "bisect", *span, "--repo", str(work.path), *arguments]
    return CliRunner().invoke(smidgen, command, standalone_mode=False)


def test_the_commit_is_found_under_noise_by_as_many_builds_as_halving_takes(work: Work) -> None:
    found = bisect(work, "--build", "test -e ok", "--run", "sh cost.sh", "--json")
    assert found.return_value == 0
    result = orjson.loads(found.stdout)
    assert result["commits"] == [work.git("rev-parse", f"HEAD~{COMMITS - GUILTY}")]
    assert result["posterior"][0]["title"] == f"Commit {GUILTY}"
    assert result["posterior"][0]["posterior"] >= 0.95
    assert result["before"] == pytest.approx(1000, abs=8)
    assert result["after"] == pytest.approx(1020, abs=8)
    assert result["builds"] <= 7  # both ends, four to halve 16, and perhaps the one that is broken
    assert result["runs"] <= 40
    assert len(work.git("worktree", "list").split("\n")) == 1


def test_another_call_goes_on_with_the_state_of_the_first(work: Work, tmp_path: Path) -> None:
    arguments = ["--run", "sh cost.sh", "--state", str(tmp_path / "state")]
    first = bisect(work, *arguments, "--runs", "4")
    assert first.return_value == 3
    assert "the budget ended before the commit was found: 2 builds, 4 runs for 16 commits" in first.stdout
    found = bisect(work, *arguments)
    assert found.return_value == 0
    assert f"Commit {GUILTY}" in found.stdout
    lines = [orjson.loads(line) for line in (tmp_path / "state").read_bytes().splitlines()]
    assert lines[0]["run"] == "sh cost.sh"
    again = bisect(work, *arguments, "--json")
    assert orjson.loads(again.stdout)["runs"] == sum("value" in line for line in lines)


def test_exit_codes_are_read_as_git_bisect_does(work: Work) -> None:
    found = bisect(
        work, "--exit-code", "--run", f"test -e ok || exit 125; test $(cat n) -lt {BROKEN + 1}", "--json"
    )
    result = orjson.loads(found.stdout)
    assert found.return_value == 0
    titles = {work.git("show", "-s", "--format=%s", sha) for sha in result["commits"]}
    assert titles == {f"Commit {BROKEN}", f"Commit {BROKEN + 1}"}
    assert result["skipped"][0]["reason"] == "run: exit code 125"


def test_suspects_of_benchmarks_give_the_range_and_are_tried_first(work: Work, tmp_path: Path) -> None:
    guilty, last = (work.git("rev-parse", f"HEAD~{COMMITS - number}") for number in (GUILTY, COMMITS))
    suspects = [{"commit": guilty, "posterior": 0.9}, {"commit": last, "posterior": 0.1}]
    path = tmp_path / "change.json"
    path.write_bytes(orjson.dumps({"suspects": suspects, "range": f"HEAD~{COMMITS}..HEAD"}))
    found = bisect(work, "--suspects", str(path), "--run", "sh cost.sh", "--json")
    result = orjson.loads(found.stdout)
    assert (found.return_value, result["commits"]) == (0, [guilty])
    assert result["builds"] <= 5


def test_no_step_is_said_with_another_exit_code(work: Work) -> None:
    found = bisect(work, "--run", "printf 3")
    assert found.return_value == 1
    assert "none of the commits is it: 2 builds" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["HEAD..HEAD", "--run", "printf 1"], "has no commits"),
        (["HEAD", "--run", "printf 1"], "should be A..B"),
        (["nope..HEAD", "--run", "printf 1"], "no commit 'nope'"),
        (["--run", "printf 1"], "give the range A..B"),
        (["HEAD~2..HEAD"], "--run"),
        (["HEAD~2..HEAD", "--run", "x", "--benchmark", "b"], "is one of --results"),
        (["HEAD~2..HEAD", "--run", "x", "--exit-code", "--results", "b"], "not with --exit-code"),
        (["HEAD~2..HEAD", "--run", "x", "--suspects", "a", "--event", "b"], "not with --suspects"),
        (["HEAD~2..HEAD", "--run", "x", "--suspects", "missing.json"], "missing.json"),
        (["HEAD~2..HEAD", "--run", "printf no"], "an end of the range, cannot be measured: its last line"),
        (["HEAD~2..HEAD", "--run", "printf 1", "--build", "false"], "cannot be measured: build: exit code 1"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str], reason: str, work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trial", "bisect", *arguments, "--repo", str(work.path)]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert "Traceback" not in error
    assert len(work.git("worktree", "list").split("\n")) == 1
