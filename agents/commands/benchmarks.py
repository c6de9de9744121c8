"""``smidgen benchmarks watch``: which commits changed which benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress

from pipeline.commands.request import argument, json_option, option, takes
from pipeline.commands.tables import print_json_lines, print_table, text_columns
from pipeline.commands.terminal import print_note
from pipeline.files.listing import listed
from pipeline.files.values import pairs
from pipeline.model.errors import ConfigError
from pipeline.model.units import counted

if TYPE_CHECKING:  # scipy takes a second to load; a wrong option should be refused at once
    from agents.experiments.benchmarks import BenchmarkChange, BenchmarkHistory, RunsReading
    from agents.source.changes import Commit

_EXAMPLES = """\b
Examples:
  smidgen benchmarks watch results --repo .
  smidgen benchmarks watch results --last 10 --threshold 0.02
  smidgen benchmarks watch results --json
"""

_MOST_COMMITS = 20_000  # newest commits of a repository that are read
_MOST_SUSPECTS = 5  # shown in the table
_TITLE = 60  # characters of a commit's title in the table
_SHORT = 12  # characters of a commit's id


@click.group()
def benchmarks() -> None:
    """Follow results of benchmarks over commits."""


@dataclass(frozen=True, slots=True)
class _Suspects:
    """The commits that may have made a change: those that were measured, or all of the repository's."""

    ids: Sequence[str]
    posterior: Sequence[float]  # unmeasured commits share that of the next measured commit
    commits: Sequence[Commit]  # the same with author and title, where there is a repository


def _directions(values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    for metric, direction in pairs(values):
        if direction not in ("higher", "lower"):
            raise ValueError(f"should be METRIC=higher or METRIC=lower, not {metric}={direction}")
    return pairs(values)


@benchmarks.command(name="watch", epilog=_EXAMPLES)
@takes
def watch(
    paths: tuple[Path, ...] = argument(required=True, metavar="PATH..."),
    repo: Path | None = option(
        metavar="DIR",
        help="Git repository that was measured; its history gives the order, and the commits between.",
    ),
    branch: str = option("HEAD", metavar="REVISION", help="Branch or revision of --repo."),
    last: int | None = option(
        least=1,
        metavar="N",
        help="Show only changes that one of the last N measured commits may have made (default: all); a "
        "change is seen once 4 commits or more have its level.",
    ),
    threshold: float = option(0.0, least=0, help="Smallest relative change that is shown."),
    alpha: float = option(0.05, above=0, most=0.5, help="Share of false alarms among the reported changes."),
    in_order: bool = option(help="The files are given oldest first, those of a folder by name."),
    across: tuple[str, ...] = option(
        metavar="LABEL",
        help="Judge results together that differ in this label, such as host_name; without it, each of its "
        "values has series of its own.",
    ),
    better: tuple[tuple[str, str], ...] = option(
        multiple=True,
        metavar="METRIC=higher|lower",
        parse=_directions,
        help="Direction in which a metric improves where its unit does not say it; METRIC is a unit or a "
        "benchmark's name, as in hits=higher.",
    ),
    as_json: bool = json_option("a change"),
) -> int:
    """Find the commits that made benchmarks slower or faster, for good.

    PATH is a file of results, or a folder that holds some: of pytest-benchmark, asv, pyperf, Google
    Benchmark, JMH, BenchmarkDotNet, vitest, benchmark.js, hyperfine, criterion (estimates.json,
    cargo-criterion, critcmp), Go (go test -bench), in bencher format, or a history of
    github-action-benchmark. A file's commit is what it says, or else a commit's id in its name or a folder's.
    Several files of one commit are repetitions. Without --repo or --in-order, commits are in the order of the
    times that files say, of the numbers in their names, or as given if that is not alphabetical; else the
    command ends.

    Results are compared with those of the same machine, environment, interpreter, package, mode and version,
    as far as the format says them. A metric is judged if it is known whether more of it is better: of times,
    memory and rates it is, of others --better says it.

    Each benchmark is a series over commits; single outliers are passed over, and eight commits are the fewest
    in which a change is seen. What lies between the last commit with the old level and the first with the new
    one is suspected.

    Exit code: 0, 1 if a benchmark got worse, 2 on bad usage or bad files.
    """
    from agents.experiments.benchmarks import Better, arrange, find_changes, read_results

    if repo and in_order:
        raise click.UsageError("--in-order: --repo gives the order")
    commits, is_shallow = _commits(repo, branch) if repo else ([], False)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading results", total=None)
        reading = read_results(paths, lambda: progress.advance(task), across=frozenset(across))
    history = arrange(
        reading.runs,
        [commit.sha for commit in commits],
        in_order=in_order,
        across=frozenset(across),
        directions={metric: Better(direction) for metric, direction in better},
    )
    if last:
        _check_last(last, history)
    left_out = _left_out(reading, history, last)
    if repo:
        left_out |= _unlisted(history, reading, branch, is_shallow=is_shallow)
    _print_left_out(left_out, reading, history, last)
    if history.order.basis == "given" and not in_order and len(history.commits) > 1:
        print_note("commits are in the order in which files are given; --repo has theirs")
    for remark, count in reading.remarks.items():
        print_note(f"{counted(count, 'file')} {_REMARKS[remark]}")
    changes = find_changes(history.series, alpha=alpha, threshold=threshold)
    if last:
        changes = [change for change in changes if change.last >= len(history.commits) - last]
    position = {commit.sha: number for number, commit in enumerate(commits)}
    shown = [(change, _suspects(change, history, commits, position)) for change in changes]
    if as_json:
        print_json_lines({**_to_json(*row, history), "left_out": left_out} for row in shown)
    else:
        benchmarks = len({(series.name, series.unit) for series in history.series})
        title = (
            f"{counted(len(shown), 'change')} in {counted(benchmarks, 'benchmark')} "
            f"over {counted(len(history.commits), 'commit')}"
        )
        if len(history.commits) > 1:
            title += f", ordered by {_BASES[history.order.basis]}"
        if files := len(reading.without_results):
            title += f"; without {counted(files, 'file')} that hold no results"
        print_table(_COLUMNS, [cells for row in shown for cells in _rows(*row)], title=title)
    return 1 if any(change.worse for change in changes) else 0


_BASES = {
    "repository": "the repository",
    "given": "their files as given",
    "commit_times": "the times of commits",
    "run_times": "the times of runs",
    "names": "the numbers in names",
}
"""What orders commits, by its name in JSON."""

_REMARKS = {
    "dirty": "measured with changes that were not committed, and used where a commit has no other result",
    "repetitions": "that say no package: results of one name are taken for repetitions of one benchmark",
}
"""What is said of files, by its name."""

_THINGS = {
    "invalid": ("record", " without a measurement"),
    "failed": ("run", " that failed"),
    "skipped": ("skipped benchmark", ""),
    "aggregate": ("aggregate", " that no level is made of"),
    "baseline": ("result", " of an earlier run (criterion's baselines and ratios)"),
    "ambiguous": ("result", " whose name several benchmarks of one file share, or may share"),
    "commits": ("commit", " that the branch does not have"),
}
"""What is passed over, by its name in JSON."""


def _check_last(last: int, history: BenchmarkHistory) -> None:
    """Say if the last commits are fewer than a change needs to be seen.

    Raises:
        ConfigError: no change would ever be shown, as one that is seen began earlier.
    """
    from agents.experiments.benchmarks import LEAST_COMMITS, newest_seen

    least, commits = newest_seen(history.series), len(history.commits)
    if last < LEAST_COMMITS // 2:
        raise ConfigError(
            f"--last {last}: a change is seen once {least} commits have its level, and none would be shown; "
            f"give {least} or more"
        )
    if last < least:
        print_note(
            f"--last {last}: of {commits:,} commits {least} must have a level, unless it stands out far"
        )


def _left_out(reading: RunsReading, history: BenchmarkHistory, last: int | None) -> dict[str, int]:
    """Return how many files, entries and series are not judged, by reason, without zeros."""
    from agents.experiments.benchmarks import LEAST_COMMITS, is_judged, is_long

    ended = min(last or LEAST_COMMITS // 2, len(history.commits))  # a renamed benchmark ends, too
    counts = {"files": len(reading.unknown) + sum(map(len, reading.foreign.values()))}
    counts |= {str(key): count for key, count in reading.left_out.items()}
    counts["short_series"] = sum(not is_long(series) for series in history.series)
    counts["undirected_series"] = sum(is_long(series) and not is_judged(series) for series in history.series)
    counts["ended_series"] = sum(bool(np.isnan(series.levels[-ended:]).all()) for series in history.series)
    return {name: count for name, count in counts.items() if count}


def _unlisted(
    history: BenchmarkHistory, reading: RunsReading, branch: str, *, is_shallow: bool
) -> dict[str, int]:
    """Return the number of measured commits that the branch lacks, and say if the clone may be why.

    Raises:
        ConfigError: it lacks so many that no change can be seen.
    """
    from agents.experiments.benchmarks import LEAST_COMMITS

    named = {run.commit for run in reading.runs if run.results.measurements}
    have, total = len(history.commits), len(named)
    shallow = "the clone is shallow, and git fetch --unshallow gives it all commits" if is_shallow else ""
    if have < LEAST_COMMITS <= total or not have:
        number = counted(have, "commit") if have else "none"
        why = f" ({shallow})" if shallow else ""
        raise ConfigError(
            f"--repo: {branch} has {number} of the {total:,} measured{why}: {listed(sorted(named))}"
        )
    if have < total and shallow:
        print_note(shallow)
    return {"commits": total - have} if have < total else {}


def _print_left_out(
    left_out: Mapping[str, int], reading: RunsReading, history: BenchmarkHistory, last: int | None
) -> None:
    """Print what is not judged, and why.

    Raises:
        ConfigError: the history is long enough, but no series is judged: nothing can be said of it.
    """
    from agents.experiments.benchmarks import LEAST_COMMITS, changed_labels, is_judged, is_long

    if reading.unknown:
        names = listed([*dict.fromkeys(path.name for path in reading.unknown)])
        print_note(f"passed over {counted(len(reading.unknown), 'file')} without results: {names}")
    for report, paths in reading.foreign.items():
        print_note(f"passed over {counted(len(paths), 'file')} of {report.name}: {report.remedy}")
    for name, (thing, rest) in _THINGS.items():
        if name in left_out:
            print_note(f"passed over {counted(left_out[name], thing)}{rest}")
    short, total, commits = left_out.get("short_series", 0), len(history.series), len(history.commits)
    labels = changed_labels(history.series)
    why = f"results that differ in {listed(labels)} are series of their own (--across LABEL joins them)"
    if short == total and commits >= LEAST_COMMITS:
        reason = f"no series has {LEAST_COMMITS} of {commits:,} commits"
        raise ConfigError(f"{reason}: {why if labels else 'names of benchmarks differ'}")
    if labels:
        print_note(f"{why}, and no change between them is judged")
    if undirected := left_out.get("undirected_series"):
        metrics = dict.fromkeys(
            item.unit or item.name for item in history.series if is_long(item) and not is_judged(item)
        )
        reason = (
            f"{undirected:,} of {total:,} series not judged: it is not known whether more of "
            f"{listed([*metrics])} is better (--better {next(iter(metrics))}=higher, or =lower)"
        )
        if undirected + short == total:
            raise ConfigError(reason)
        print_note(reason)
    if short:
        print_note(f"{short:,} of {total:,} series not judged, with fewer than {LEAST_COMMITS} commits")
    if ended := left_out.get("ended_series"):
        print_note(
            f"{ended:,} of {total:,} series without a result of the last "
            f"{counted(min(last or LEAST_COMMITS // 2, commits), 'commit')}"
        )


def _commits(repo: Path, branch: str) -> tuple[list[Commit], bool]:
    """Return the commits of a branch, oldest first, and whether older ones are missing from the clone."""
    from agents.source.changes import Repository

    repository = Repository(repo)
    commits = repository.commits_since([], branch, at_most=_MOST_COMMITS)
    return commits, bool(commits) and repository.is_cut_off(commits[0])


def _suspects(
    change: BenchmarkChange, history: BenchmarkHistory, commits: Sequence[Commit], position: Mapping[str, int]
) -> _Suspects:
    measured = history.commits[change.first + 1 : change.last + 1]
    mass = change.posterior[change.first + 1 : change.last + 1].tolist()
    if not commits:
        return _Suspects(measured, mass, ())
    ends = [position[sha] + 1 for sha in history.commits[change.first : change.last + 1]]
    parts = [
        share / (end - begin)
        for share, begin, end in zip(mass, ends[:-1], ends[1:], strict=True)
        for _ in range(begin, end)
    ]
    between = commits[ends[0] : ends[-1]]
    return _Suspects([commit.sha for commit in between], parts, between)


_COLUMNS = text_columns(
    ("benchmark", "before", "after", "change", "p-value", "", "suspects"), numbers=range(1, 5)
)


def _rows(change: BenchmarkChange, suspects: _Suspects) -> Iterator[tuple[str, ...]]:
    """Yield the cells of a change with its first suspect, and a row of each further suspect."""
    cells: tuple[str, ...] = (
        change.series.title,
        f"{change.before:.5g} {change.series.unit}".strip(),
        f"{change.after:.5g} {change.series.unit}".strip(),
        f"{change.relative:+.2%}" if np.isfinite(change.relative) else "from 0",
        f"{change.p_value:.1e}",
        "worse" if change.worse else "better",
    )
    for line in _lines(suspects):
        yield (*cells, line)
        cells = ("",) * len(cells)


def _lines(suspects: _Suspects) -> list[str]:
    titles = {commit.sha: f" {commit.title[:_TITLE]}" for commit in suspects.commits}
    shown = [sha[:_SHORT] + titles.get(sha, "") for sha in suspects.ids[:_MOST_SUSPECTS]]
    more = len(suspects.ids) - len(shown)
    return [*shown, f"and {more} more"] if more else shown


def _to_json(change: BenchmarkChange, suspects: _Suspects, history: BenchmarkHistory) -> dict[str, Any]:
    titles = {commit.sha: commit for commit in suspects.commits}
    return {
        "benchmark": change.series.name,
        "unit": change.series.unit,
        "labels": dict(change.series.labels),
        "order": history.order.basis,
        "worse": change.worse,
        "before": change.before,
        "after": change.after,
        "change": change.relative if np.isfinite(change.relative) else None,
        "p_value": change.p_value,
        "commit": history.commits[change.index],
        "last_good": history.commits[change.first],
        "first_bad": history.commits[change.last],
        "range": "..".join(history.commits[sha] for sha in change.suspected),
        "suspects": [
            {"commit": sha, "posterior": part}
            | ({"author": titles[sha].author, "title": titles[sha].title} if sha in titles else {})
            for sha, part in zip(suspects.ids, suspects.posterior, strict=True)
        ],
    }
