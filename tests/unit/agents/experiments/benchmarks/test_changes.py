"""Series of benchmarks over commits, and which commits changed them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from agents.experiments.benchmarks import BenchmarkSeries, Better, arrange, find_changes, read_results
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError


def series(values: FloatArray, name: str = "a", *, more: bool = False) -> BenchmarkSeries:
    return BenchmarkSeries(name, "ops/s" if more else "ns", Better.HIGHER if more else Better.LOWER, values)


def noisy(commits: int, seed: int, step: float = 0.0, at: int = 0) -> FloatArray:
    values = 100 + np.random.default_rng(seed).normal(0, 1, commits)
    values[at:] += step
    return values


@pytest.mark.parametrize(
    ("step", "more", "worse"),
    [(6.0, False, True), (-6.0, False, False), (6.0, True, False), (-6.0, True, True)],
)
@pytest.mark.parametrize("unmeasured", [0, 3])
def test_a_step_is_found_with_its_suspects_and_direction(
    step: float, more: bool, worse: bool, unmeasured: int
) -> None:
    values = noisy(60, 1, step, 40)
    values[40 - unmeasured : 40] = np.nan
    (change,) = find_changes([series(values, more=more)])
    assert (change.first, change.index, change.last) == (39 - unmeasured, 40, 40)
    assert change.worse is worse
    assert change.relative == pytest.approx(step / 100, abs=0.01)


def test_the_suspects_hold_the_commit_as_often_as_they_say() -> None:
    found, held = 0, 0
    for seed in range(60):
        at = 20 + seed % 40
        for change in find_changes([series(noisy(80, seed, 1.5, at))])[:1]:
            found += 1
            held += change.first < at <= change.last
    assert found >= 40
    assert held >= 0.95 * found - 4 * (0.95 * 0.05 * found) ** 0.5


@pytest.mark.slow
def test_suites_that_do_not_change_are_hardly_ever_reported() -> None:
    suites = [[series(noisy(60, 100 * suite + one)) for one in range(20)] for suite in range(10)]
    assert sum(bool(find_changes(suite)) for suite in suites) <= 2


def test_an_outlier_and_few_commits_are_no_change() -> None:
    values = noisy(60, 2)
    values[30] += 50
    assert find_changes([series(values)]) == []
    assert find_changes([series(np.array([1.0, 1.0, 2.0, 2.0]))]) == []


def test_a_rise_from_zero_is_no_ratio() -> None:
    values = np.zeros(24)
    values[12:] = noisy(12, 1)
    (change,) = find_changes([series(values)])
    assert (change.before, change.relative, change.worse) == (0.0, float("inf"), True)


def test_the_threshold_is_relative() -> None:
    steps = [series(noisy(60, 1, 6.0, 40), "large"), series(noisy(60, 3, 3.0, 30), "small")]
    assert [one.series.name for one in find_changes(steps)] == ["small", "large"]
    assert [one.series.name for one in find_changes(steps, threshold=0.05)] == ["large"]


def written(folder: Path, number: int, sha: str, value: float, time: str | None = None) -> Path:
    path = folder / f"{number:03}-{sha}.json"
    document = {"machine_info": {}, "benchmarks": [{"fullname": "a", "stats": {"data": [value, value + 2]}}]}
    path.write_text(json.dumps({**document, "datetime": time} if time else document))
    return path


def test_runs_of_a_commit_are_repetitions_and_files_are_in_order(tmp_path: Path) -> None:
    shas = ["abcdef1", "abcdef2", "abcdef1"]
    paths = [written(tmp_path, number, sha, 10.0 * number) for number, sha in enumerate(shas)]
    (tmp_path / "notes.txt").write_text("hello")
    reading = read_results([tmp_path])
    assert [path.name for path in reading.unknown] == ["notes.txt"]
    history = arrange(reading.runs)
    assert history.commits == ("abcdef1", "abcdef2")
    assert history.series[0].levels.tolist() == [11.0, 11.0]  # of 0, 2, 20 and 22; of 10 and 12
    assert arrange(read_results(paths[::-1]).runs).commits == ("abcdef1", "abcdef2")


def test_hidden_folders_and_what_is_no_file_are_left_out_but_folders_of_results(tmp_path: Path) -> None:
    for name in (".git", ".venv/lib", ".benchmarks/Linux", "sub"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        written(folder, 0, "abcdef1", 1.0)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.json")
    reading = read_results([tmp_path])
    assert len(reading.runs) == 2
    assert reading.unknown == [tmp_path / "gone.json", tmp_path / "pipe.json"]
    assert len(read_results([tmp_path / ".git"]).runs) == 1  # it was asked for


def test_links_to_folders_are_followed_and_each_folder_is_read_once(tmp_path: Path) -> None:
    results, archive = tmp_path / "results", tmp_path / "archive"
    for folder, sha in ((results / "run", "abcdef1"), (archive, "abcdef2")):
        folder.mkdir(parents=True)
        written(folder, 0, sha, 1.0)
    (results / "old").symlink_to(archive)
    (results / "latest").symlink_to(results / "run")
    (results / "above").symlink_to(tmp_path)
    (archive / "back").symlink_to(results)
    assert [run.commit for run in read_results([results]).runs] == ["abcdef2", "abcdef1"]


def test_a_folder_that_cannot_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, 0, "abcdef1", 1.0)
    (tmp_path / "locked").mkdir()
    scan = os.scandir

    def denied(folder: str) -> object:
        if str(folder).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(ConfigError, match="locked: Permission denied"):
        read_results([tmp_path])


def test_times_give_the_order_and_git_does_if_it_is_asked(tmp_path: Path) -> None:
    for sha, day in (("abcdef1", 3), ("abcdef2", 1), ("abcdef3", 2)):
        written(tmp_path, day, sha, 1.0, f"2026-01-0{day}T00:00:00Z")
    runs = read_results([tmp_path]).runs
    assert arrange(runs).commits == ("abcdef2", "abcdef3", "abcdef1")
    order = ["abcdef3" + "0" * 33, "abcdef1" + "0" * 33]
    assert arrange(runs, order).commits == tuple(order)
    assert arrange(runs, [*order, "abcdef1" + "1" * 33]).commits == tuple(order[:1])  # one has two meanings


@pytest.mark.parametrize("content", [b"hello", b"\xff\xfe", b"{}"])
def test_a_named_file_without_results_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="holds no results of pytest-benchmark"):
        read_results([path])
    with pytest.raises(ConfigError, match="no results of"):
        read_results([tmp_path])


def test_an_abbreviation_of_digits_alone_is_a_commit_where_the_order_has_it(tmp_path: Path) -> None:
    order = ["1234567890" + "a" * 30, "abcdef1234" + "b" * 30]
    for name in ("1234567890", "abcdef1234", "20260301"):
        (tmp_path / f"{name}.txt").write_text("BenchmarkSum-8 9 1 ns/op\n")
    runs = read_results([tmp_path]).runs
    assert arrange(runs, order).commits == tuple(order)
    assert {run.commit.endswith(".txt") for run in runs if "abcdef" not in run.commit} == {True}
