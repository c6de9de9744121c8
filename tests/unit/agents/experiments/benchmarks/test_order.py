"""Order of commits: certain by a repository, times or numbers in names, or refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agents.experiments.benchmarks.order import CommitOrder, OrderBasis, commit_order
from agents.experiments.benchmarks.results import (
    BenchmarkRun,
    FileResults,
    Measurement,
    ResultFile,
    find_format,
)
from pipeline.model.errors import ConfigError

FORMAT = find_format(ResultFile.of(Path("a"), b"BenchmarkSum 1 1 ns/op"))
assert FORMAT


def runs(
    names: Sequence[str],
    commits: Sequence[str] = (),
    commit_times: Sequence[float] = (),
    run_times: Sequence[float] = (),
) -> list[BenchmarkRun]:
    """Return runs of files; without ``commits`` each is of a commit of its own."""
    missing = [math.nan] * len(names)
    assert FORMAT
    return [
        BenchmarkRun(Path(name), FORMAT, FileResults([], commit_time=made, run_time=ran), commit)
        for name, commit, made, ran in zip(
            names, commits or names, commit_times or missing, run_times or missing, strict=True
        )
    ]


@pytest.mark.parametrize(
    ("names", "oldest_first"),
    [
        pytest.param("run-10 run-9 run-2", "run-2 run-9 run-10", id="a counter without zeros"),
        pytest.param("7-abc0001 8-fff0000 6-bcd0002", "6-bcd0002 7-abc0001 8-fff0000", id="beside ids"),
        pytest.param("2-1234567 1-abc0001 3-7654321", "1-abc0001 2-1234567 3-7654321", id="ids of digits"),
        pytest.param("2026-02-01 2026-01-31 2025-12-31", "2025-12-31 2026-01-31 2026-02-01", id="dates"),
        pytest.param("2026-02-01 2026-01-31", "2026-01-31 2026-02-01", id="dates of one year"),
        pytest.param("20260201_093000 20260131_180000", "20260131_180000 20260201_093000", id="no hyphens"),
        pytest.param("1700000100 1700000000", "1700000000 1700000100", id="epoch seconds"),
        pytest.param("a/2/out a/10/out", "a/2/out a/10/out", id="a number of a folder"),
        pytest.param("12-pr40 13-pr41", "12-pr40 13-pr41", id="two numbers that rise together"),
    ],
)
def test_numbers_in_names_count_commits(names: str, oldest_first: str) -> None:
    assert commit_order(runs(names.split())) == CommitOrder(tuple(oldest_first.split()), OrderBasis.NAMES)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param("abc0001 fff0000 bcd0002", id="ids alone"),
        pytest.param("old new", id="words"),
        pytest.param("jan-2 feb-1", id="other texts"),
        pytest.param("31-01-2026 01-02-2026", id="dates, day first"),
        pytest.param("1-pr9 2-pr8", id="two numbers that contradict each other"),
        pytest.param("v1.9.2 v1.10.0 v2.0.1", id="versions whose parts do not rise together"),
        pytest.param("x86_64-1 arm64-2", id="other machines"),
        pytest.param("1-a 1-b", id="one number twice"),
    ],
)
def test_an_order_that_is_not_certain_is_refused(names: str) -> None:
    with pytest.raises(ConfigError, match=r"not known.*--repo, or --in-order"):
        commit_order(runs(sorted(names.split())))
    assert commit_order(runs(sorted(names.split())), in_order=True).commits == tuple(sorted(names.split()))


@pytest.mark.parametrize(
    ("names", "commits", "oldest_first"),
    [
        pytest.param("gcc/9 gcc/10 clang/9 clang/10", "yxyx", "yx", id="folders"),
        pytest.param("gcc/9 gcc/10 clang/9", "yxy", "yx", id="a folder that lacks a commit"),
        pytest.param("gcc/9 gcc/10 clang/1 clang/2", "yxxy", "", id="folders that contradict each other"),
        pytest.param("gcc/9 clang/10", "yx", "", id="folders of one commit each"),
    ],
)
def test_names_of_other_texts_count_if_they_agree(names: str, commits: str, oldest_first: str) -> None:
    named = runs(names.split(), commits)
    if oldest_first:
        assert commit_order(named) == CommitOrder(tuple(oldest_first), OrderBasis.NAMES)
    else:
        with pytest.raises(ConfigError, match="not known"):
            commit_order(sorted(named, key=lambda run: run.path))


def test_names_in_another_order_than_their_own_were_given_on_purpose() -> None:
    given = ("fff0000", "abc0001", "bcd0002")
    assert commit_order(runs(given)) == CommitOrder(given, OrderBasis.GIVEN)
    assert commit_order(runs(["2", "10", "1"])).basis is OrderBasis.NAMES
    with pytest.raises(ConfigError, match="not known"):
        commit_order(runs(given, (), [1, NAN, 0], []))
    for folders in (["two/aab", "two/bbb", "one/aac", "one/bbc"], ["one/a", "two/b"]):
        with pytest.raises(ConfigError, match="not known"):
            commit_order(runs(folders))


NAN = math.nan


@pytest.mark.parametrize(
    ("commit_times", "run_times", "oldest_first", "basis"),
    [
        pytest.param([3, 1, 2], [1, 2, 3], "bca", OrderBasis.COMMIT_TIMES, id="both"),
        pytest.param([2, NAN, 3], [1, 3, 2], "acb", OrderBasis.RUN_TIMES, id="a commit time is missing"),
        pytest.param([2, 5, 5], [1, 3, 2], "acb", OrderBasis.RUN_TIMES, id="commits of one second"),
        pytest.param([3, NAN, 2], [1, 3, 2], "", None, id="a commit time is missing, measured newest first"),
        pytest.param([5, 5, 2], [1, 3, 2], "", None, id="commits of one second, measured newest first"),
        pytest.param([5, 5, 2], [1, NAN, 2], "", None, id="neither"),
        pytest.param([], [1, 1, 2], "", None, id="runs of one second"),
    ],
)
def test_times_give_the_order_if_all_commits_have_their_own(
    commit_times: list[float], run_times: list[float], oldest_first: str, basis: OrderBasis | None
) -> None:
    timed = runs("abc", (), commit_times, run_times)
    if basis is None:
        with pytest.raises(ConfigError, match="not known"):
            commit_order(timed)
    else:
        assert commit_order(timed) == CommitOrder(tuple(oldest_first), basis)


def test_files_without_a_time_are_named_beside_others() -> None:
    with pytest.raises(ConfigError, match=r"1 of 3 files have no time \(b\), and no number"):
        commit_order(runs("abc", (), (), [1, NAN, 2]))


def test_the_first_run_of_a_commit_counts_and_a_run_without_a_time_does_not() -> None:
    timed = runs("abcd", "xyxy", (), [5, 4, NAN, NAN])
    assert commit_order(timed) == CommitOrder(("y", "x"), OrderBasis.RUN_TIMES)
    counted = runs(["1", "2", "3"], "xyx")
    assert commit_order(counted) == CommitOrder(("x", "y"), OrderBasis.NAMES)
    repeated = runs(["5-run1", "4-run1", "5-run2", "4-run2"], "xyxy")
    assert commit_order(repeated) == CommitOrder(("y", "x"), OrderBasis.NAMES)


def test_one_commit_needs_no_order_and_a_repository_has_one() -> None:
    assert commit_order(runs("ab", "xx")).commits == ("x",)
    assert commit_order([]).commits == ()
    assert commit_order(runs("abc"), "cab") == CommitOrder(("c", "a", "b"), OrderBasis.REPOSITORY)


def test_times_of_runs_that_contradict_numbers_in_names_are_refused() -> None:
    assert commit_order(runs("123", (), (), [1.0, 2.0, 3.0])).basis == OrderBasis.RUN_TIMES
    with pytest.raises(
        ConfigError, match="not certain: the times of runs and the numbers in the files' names"
    ):
        commit_order(runs("123", (), (), [3.0, 1.0, 2.0]))
    assert commit_order(runs("123", (), [3.0, 1.0, 2.0])).basis == OrderBasis.COMMIT_TIMES


def with_hosts(measured: Sequence[BenchmarkRun], hosts: str) -> list[BenchmarkRun]:
    return [
        replace(
            run, results=replace(run.results, measurements=[Measurement("a", "s", (1.0,), (("host", host),))])
        )
        for run, host in zip(measured, hosts, strict=True)
    ]


def test_times_of_a_host_whose_clock_is_wrong_give_no_order() -> None:
    def times(behind: float) -> list[float]:
        return [1.0, 2.0, 3.0, 4.0, 2.5 - behind, 4.5 - behind]  # host b measured y and w, too

    timed = with_hosts(runs(["a", "b", "c", "d", "e", "f"], "xyzwyw", (), times(0)), "aaaabb")
    assert commit_order(timed) == CommitOrder(tuple("xyzw"), OrderBasis.RUN_TIMES)
    timed = with_hosts(runs(["a", "b", "c", "d", "e", "f"], "xyzwyw", (), times(100)), "aaaabb")
    with pytest.raises(ConfigError, match="hosts measured them in different orders .* a clock were wrong"):
        commit_order(timed)
    # Hosts that share no commit have series of their own, each in its own order.
    apart = with_hosts(runs("abcd", "xzyw", (), [1.0, 2.0, -99.0, -98.0]), "aabb")
    assert commit_order(apart).commits == tuple("ywxz")
