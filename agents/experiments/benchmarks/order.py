"""Order of the commits of runs: by a repository, by times, by numbers in the names of files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agents.experiments.benchmarks.results import COMMIT_ID, UUID, BenchmarkRun, Labels
from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError

_TOKEN = re.compile(rf"{UUID.pattern}|{COMMIT_ID.pattern}|[0-9]+|[^0-9]")
_ID = re.compile(rf"{UUID.pattern}|[0-9a-f]{{7,64}}")
_YEARS = range(1970, 2100)


class OrderBasis(StrEnum):
    """What gives the order of commits."""

    REPOSITORY = "repository"
    GIVEN = "given"
    COMMIT_TIMES = "commit_times"
    RUN_TIMES = "run_times"
    NAMES = "names"


@dataclass(frozen=True, slots=True)
class CommitOrder:
    """Ids of commits, or their files where nothing says a commit, oldest first, and what gives the order."""

    commits: tuple[str, ...]
    basis: OrderBasis


def commit_order(
    runs: Sequence[BenchmarkRun], order: Sequence[str] = (), *, in_order: bool = False
) -> CommitOrder:
    """Return the order of the commits of runs.

    Args:
        runs: Runs of commits in ``order``, if there is one.
        order: All commits of a repository, oldest first.
        in_order: The runs are in the order of commits. They are too if nothing else gives one, and somebody
            named them in another order than that of names.

    Raises:
        ConfigError: the order is not certain: two commits have one time, or one has none, and no number in
            the names of files counts them, or what would order them contradicts something else.
    """
    commits = tuple(dict.fromkeys(run.commit for run in runs))
    if order:
        position = {sha: number for number, sha in enumerate(order)}
        return CommitOrder(tuple(sorted(commits, key=position.__getitem__)), OrderBasis.REPOSITORY)
    if in_order or len(commits) < 2:
        return CommitOrder(commits, OrderBasis.GIVEN)
    keys: dict[OrderBasis, list[tuple[float, ...]]] = {
        OrderBasis.COMMIT_TIMES: [(run.results.commit_time,) for run in runs],
        OrderBasis.RUN_TIMES: [(run.results.run_time,) for run in runs],
        OrderBasis.NAMES: _name_keys(runs),
    }
    if _are_contradictory(runs):
        keys[OrderBasis.RUN_TIMES] = [(math.nan,)] * len(runs)
    times = _firsts(runs, keys[OrderBasis.COMMIT_TIMES])
    orders = {
        basis: certain
        for basis, values in keys.items()
        if (certain := _certain(runs, values)) and _rises(times[commit][0] for commit in certain)
    }
    if orders:
        basis = next(iter(orders))
        if basis is OrderBasis.RUN_TIMES and orders.get(OrderBasis.NAMES, orders[basis]) != orders[basis]:
            raise ConfigError(
                f"the order of {len(commits)} commits is not certain: the times of runs and the numbers in "
                "the files' names contradict each other, as if old commits were measured later or a clock "
                "were wrong; give --repo, or --in-order if the files are named or given oldest first"
            )
        return CommitOrder(orders[basis], basis)
    if _is_on_purpose([run.path for run in runs]) and _rises(times[commit][0] for commit in commits):
        return CommitOrder(commits, OrderBasis.GIVEN)
    raise ConfigError(
        f"the order of {len(commits)} commits is not known: {_untimed(runs, times)}, and no number in the "
        "files' names counts them; give --repo, or --in-order if the files are given oldest first"
    )


def _are_contradictory(runs: Sequence[BenchmarkRun]) -> bool:
    """True if one environment measured commits in another order than all together, by the times of runs.

    The clock of a host may be wrong: then commits that it measured as well seem to be older than others.
    """
    timed = [run for run in runs if not math.isnan(run.results.run_time)]
    firsts = _firsts(timed, [(run.results.run_time,) for run in timed])
    environments: dict[Labels, list[BenchmarkRun]] = {}
    for run in timed:
        labels = next((item.labels for item in run.results.measurements), ())
        environments.setdefault(labels, []).append(run)
    for part in environments.values():
        own = _firsts(part, [(run.results.run_time,) for run in part])
        if not _rises(firsts[commit][0] for commit in sorted(own, key=own.__getitem__)):
            return True
    return False


def _is_on_purpose(paths: Sequence[Path]) -> bool:
    """True if files are not in the order that folders and patterns give: that of names, in each folder."""
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    groups = [paths] if len(folders) == len(paths) else folders.values()
    return any(list(group) != sorted(group) for group in groups)


def _rises(times: Iterable[float]) -> bool:
    """True if no time that is not NaN is before an earlier one of the sequence."""
    certain = [time for time in times if not math.isnan(time)]
    return certain == sorted(certain)


def _untimed(runs: Sequence[BenchmarkRun], times: Mapping[str, tuple[float, ...]]) -> str:
    """Return why times do not order runs, given the times of their commits."""
    of_commits = sum(math.isnan(time) for (time,) in times.values())
    if 0 < of_commits < len(times):
        return f"the time of {of_commits} of {len(times)} commits is missing"
    untimed = [
        run.path.name
        for run in runs
        if math.isnan(run.results.commit_time) and math.isnan(run.results.run_time)
    ]
    names = f" ({listed(untimed)})" if len(untimed) < len(runs) else ""
    if untimed:
        return f"{len(untimed)} of {len(runs)} files have no time{names}"
    if _are_contradictory(runs):
        return "hosts measured them in different orders by the times of runs, as if a clock were wrong"
    return "some have the same time"


def _certain(runs: Sequence[BenchmarkRun], keys: Sequence[tuple[float, ...]]) -> tuple[str, ...]:
    """Return the commits of runs by their smallest keys; nothing if one has none, or two have the same."""
    firsts = _firsts(runs, keys)
    if len(set(firsts.values())) < len({run.commit for run in runs}):
        return ()
    is_known = not any(math.isnan(key[0]) for key in firsts.values())
    return tuple(sorted(firsts, key=firsts.__getitem__)) if is_known else ()


def _firsts(
    runs: Sequence[BenchmarkRun], keys: Sequence[tuple[float, ...]]
) -> Mapping[str, tuple[float, ...]]:
    """Return the smallest key of each commit's runs, NaN where none has one; without keys, nothing."""
    firsts: dict[str, tuple[float, ...]] = {}
    for run, key in zip(runs, keys, strict=False):
        first = firsts.get(run.commit, key)
        firsts[run.commit] = key if math.isnan(first[0]) else min(first, key)
    return firsts


def _name_keys(runs: Sequence[BenchmarkRun]) -> list[tuple[float, ...]]:
    """Return the numbers by which names count, nothing if they do not.

    Names of other texts, such as ``gcc/7.txt`` and ``clang/7.txt``, count if those of each text that has all
    commits agree; the key of other names is NaN.
    """
    keys = _numbers([str(run.path) for run in runs], [run.commit for run in runs])
    groups: dict[tuple[str, ...], list[int]] = {}
    for at, run in enumerate(runs):
        words = _TOKEN.findall(str(run.path))
        groups.setdefault(
            tuple(word for word in words if not (word.isdecimal() or _ID.fullmatch(word))), []
        ).append(at)
    if keys or len(groups) < 2:
        return keys
    orders: set[tuple[str, ...]] = set()
    keys = [(math.nan,)] * len(runs)
    commits = len({run.commit for run in runs})
    for positions in groups.values():
        part = [runs[at] for at in positions]
        if len({run.commit for run in part}) < commits:
            continue
        numbers = _numbers([str(run.path) for run in part], [run.commit for run in part])
        orders.add(_certain(part, numbers))
        for at, number in zip(positions, numbers if len(orders) == 1 else (), strict=False):
            keys[at] = number
    return keys if len(orders) == 1 and () not in orders else []


def _numbers(names: Sequence[str], commits: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the numbers by which names count; nothing if texts differ, or numbers contradict each other.

    Several numbers count if they rise together, or if they are a date, year first.
    """
    rows = [_TOKEN.findall(name) for name in names]
    columns = list(zip(*rows, strict=True)) if len({len(row) for row in rows}) == 1 else []
    numeric = [tuple(map(int, column)) if all(map(str.isdecimal, column)) else () for column in columns]
    texts = [column for column, numbers in zip(columns, numeric, strict=True) if not numbers]
    if any(len(set(column)) > 1 and not all(map(_ID.fullmatch, column)) for column in texts):
        return []
    numeric = [numbers for numbers in numeric if numbers]
    counting = [numbers for numbers in numeric if len(set(numbers)) > 1]
    of_commits = [
        numbers for numbers in counting if len(set(zip(commits, numbers, strict=True))) == len(set(commits))
    ]
    counting = of_commits or counting
    keys = list(zip(*counting, strict=True))
    rises = all(list(numbers) == sorted(numbers) for numbers in zip(*sorted(keys), strict=True))
    return keys if rises or _is_date(numeric, counting) else []


def _is_date(numeric: Sequence[Sequence[int]], counting: Sequence[Sequence[int]]) -> bool:
    """True if the numbers that count are a date, year first: 2026-01-31, or 20260131."""
    first = numeric.index(counting[0])
    year_ahead = first > 0 and all(number in _YEARS for number in numeric[first - 1])
    if year_ahead or all(number in _YEARS for number in counting[0]):
        months = counting[0] if year_ahead else numeric[first + 1] if first + 1 < len(numeric) else ()
        return all(1 <= number <= 12 for number in months)
    return all(number // 10_000 in _YEARS and 1 <= number // 100 % 100 <= 12 for number in counting[0])
