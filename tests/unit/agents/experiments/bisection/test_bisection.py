"""What a bisection reads and keeps: runs, state files, suspects and work trees."""

from __future__ import annotations

import math
import time
from pathlib import Path

import orjson
import pytest

from agents.experiments.bisection import (
    BisectionTask,
    Journal,
    Workbench,
    read_span,
    read_suspects,
    reading_of,
)
from agents.experiments.bisection.shell import Finished, run_shell
from pipeline.model.errors import ConfigError
from tests.support.repositories import Work

TASK = BisectionTask("a", "b", "make", "run", "number")
HYPERFINE = {"results": [{"command": "one", "times": [1.0, 2.0, 9.0]}, {"command": "two", "times": [5.0]}]}


def finished(code: int | None, output: str = "", errors: str = "") -> Finished:
    return Finished(code, output, errors, 3.0)


@pytest.mark.parametrize(
    ("exit_code", "run", "value", "failure"),
    [
        (False, finished(0, "building\n12.5\n\n"), 12.5, ""),
        (False, finished(0, "nan\n"), None, "its last line is no number: 'nan'"),
        (False, finished(0), None, "its last line is no number: ''"),
        (False, finished(1, "12.5\n", "no such file\n"), None, "run: exit code 1: no such file"),
        (False, finished(None, "12.5\n"), None, "run: took longer than 3 s"),
        (True, finished(0), 0.0, ""),
        (True, finished(1), 1.0, ""),
        (True, finished(127), 1.0, ""),
        (True, finished(125), None, "run: exit code 125"),
        (True, finished(-9), None, "run: signal 9"),
        (True, finished(None), None, "run: took longer than 3 s"),
    ],
)
def test_a_run_measures_a_number_or_says_why_not(
    exit_code: bool,
    run: Finished,
    value: float | None,
    failure: str,
    tmp_path: Path,  # noqa: FBT001
) -> None:
    found = reading_of(exit_code=exit_code, results=None, benchmark=None)(run, tmp_path)
    assert found.failure == failure
    assert math.isnan(found.value) if value is None else found.value == value


def test_a_file_of_results_gives_the_median_of_one_benchmark(tmp_path: Path) -> None:
    (tmp_path / "new.json").write_bytes(orjson.dumps(HYPERFINE))
    read = reading_of(exit_code=False, results=Path("new.json"), benchmark="one")
    assert read(finished(0), tmp_path).value == 2.0
    assert "exit code 3" in read(finished(3), tmp_path).failure
    either = reading_of(exit_code=False, results=Path("new.json"), benchmark=None)
    assert "not one benchmark, but one, two" in either(finished(0), tmp_path).failure
    (tmp_path / "go.txt").write_text("BenchmarkSum-8 9 10 ns/op 16 B/op\nBenchmarkSum-8 9 12 ns/op 16 B/op\n")
    several = reading_of(exit_code=False, results=Path("go.txt"), benchmark="BenchmarkSum")
    assert "but BenchmarkSum B, BenchmarkSum ns" in several(finished(0), tmp_path).failure
    in_ns = reading_of(exit_code=False, results=Path("go.txt"), benchmark="BenchmarkSum ns")
    assert in_ns(finished(0), tmp_path).value == 11.0
    (tmp_path / "go.txt").write_text("BenchmarkSum-8 9 10 ns/op 16 hits\n")
    assert several(finished(0), tmp_path).value == 10.0
    failing = {"results": [{"command": "one", "times": [1.0], "exit_codes": [1]}]}
    (tmp_path / "new.json").write_bytes(orjson.dumps(failing))
    assert "left out: 1 failed" in read(finished(0), tmp_path).failure
    missing = reading_of(exit_code=False, results=Path("other.json"), benchmark=None)
    assert "other.json" in missing(finished(0), tmp_path).failure


def test_a_command_ends_with_its_time_and_what_it_started_too(tmp_path: Path) -> None:
    done = run_shell("sleep 1000 & printf $!; sleep 1000", tmp_path, 0.2)
    assert done.code is None
    state = Path("/proc", done.output.strip(), "stat")
    deadline = time.monotonic() + 60
    while state.exists() and ") Z" not in state.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_state_file_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with Journal(path, TASK) as journal:
        journal.append({"commit": "a", "built": True, "seconds": 2.0})
        journal.append({"commit": "a", "value": 1.5, "seconds": 0.1})
        with pytest.raises(ConfigError, match="another bisection uses it"), Journal(path, TASK):
            pass
    with path.open("ab") as file:
        file.write(b'{"commit": "b", "val')  # its writer was killed
    with Journal(path, TASK) as journal:
        assert [line["commit"] for line in journal.lines] == ["a", "a"]
        journal.append({"commit": "b", "skipped": "build: exit code 2", "of": "build", "seconds": 1.0})
    with Journal(path, TASK) as journal:
        assert len(journal.lines) == 3
    with pytest.raises(ConfigError, match="of another bisection; run differ"):
        Journal(path, BisectionTask("a", "b", "make", "other", "number")).__enter__()


@pytest.mark.parametrize(
    "line", ["nonsense", "[1]", '{"commit": "a"}', '{"commit": "a", "value": "x", "seconds": 1}']
)
def test_a_file_that_is_no_state_is_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    with Journal(path, TASK):
        pass
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ConfigError, match="line 2: is not of a bisection"):
        Journal(path, TASK).__enter__()


@pytest.mark.parametrize(
    ("document", "weights", "span"),
    [
        ([{"commit": "abc"}, {"commit": "def", "weight": 3}], {"abc1": 1.0, "def2": 3.0}, None),
        ({"data": {"root_causes": [{"change": {"id": "def2"}, "score": 0.8}]}}, {"def2": 0.8}, None),
        (
            {
                "suspects": [{"commit": "abc1", "posterior": 0.7}, {"commit": "other", "posterior": 0.3}],
                "range": "a..b",
            },
            {"abc1": 0.7},
            "a..b",
        ),
    ],
    ids=["list", "event", "watch"],
)
def test_suspects_are_read_of_events_benchmarks_and_lists(
    document: object, weights: dict[str, float], span: str | None
) -> None:
    found = read_suspects(orjson.dumps(document) + b'\n{"another": "line"}', "it")
    assert (found.of(["abc1", "def2"]), found.range) == (weights, span)


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"{}", b"3", b'[{"commit": ""}]', b'[{"commit": "a", "weight": -1}]', b'{"data": {}}'],
)
def test_what_holds_no_suspects_is_refused(content: bytes) -> None:
    with pytest.raises(ConfigError, match="it: no event"):
        read_suspects(content, "it")


def test_work_trees_are_gone_afterwards_whatever_happens(tmp_path: Path) -> None:
    work = Work(tmp_path / "repository")
    shas = [work.commit(f"Commit {number}", {"n": str(number)}) for number in range(3)]
    span = read_span(work.path, "main~2..main")
    assert span.versions == tuple(shas)
    folders: list[Path] = []

    def interrupted() -> None:
        with Workbench(work.path) as workbench:
            folders.append(workbench.check_out(shas[1]))
            assert workbench.run(shas[1], "cat n", 60).output == "1"
            assert len(work.git("worktree", "list").split("\n")) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not folders[0].parent.exists()
    assert len(work.git("worktree", "list").split("\n")) == 1
    with pytest.raises(ConfigError, match="nothing is before it|no commit"):
        read_span(work.path, "main~3..main")
