"""Results of many commits: one series for each benchmark, in the order of commits."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agents.experiments.benchmarks.order import CommitOrder, commit_order
from agents.experiments.benchmarks.results import (
    BenchmarkRun,
    LeftOut,
    Measurement,
    ResultFile,
    commit_of,
    commits_of,
    find_format,
    format_names,
)
from agents.experiments.benchmarks.series import (
    BenchmarkSeries,
    SeriesIdentity,
    identified,
    series_of,
    titled,
)
from pipeline.model.errors import ConfigError, file_errors

HIDDEN_RESULTS = (".asv", ".benchmarks")
"""Folders that tools keep results in by default."""

MOST_BYTES = 256 * 1024**2
"""Largest file of results."""


@dataclass(frozen=True, slots=True)
class BenchmarkHistory:
    """All benchmarks over the same commits."""

    order: CommitOrder
    series: tuple[BenchmarkSeries, ...]

    @property
    def commits(self) -> tuple[str, ...]:
        """Ids of the commits, oldest first, or their files where nothing says a commit."""
        return self.order.commits


@dataclass(slots=True)
class RunsReading:
    """Runs that were read, and the files that were passed over."""

    runs: list[BenchmarkRun] = field(default_factory=list)
    unknown: list[Path] = field(default_factory=list)  # files of folders that hold no results

    @property
    def left_out(self) -> Counter[LeftOut]:
        """Number of entries without a measurement in all files, by reason."""
        total: Counter[LeftOut] = Counter()
        for run in self.runs:
            total.update(run.results.left_out)
        return total

    @property
    def dirty(self) -> int:
        """Number of files that were measured with changes that were not committed."""
        return sum(run.results.dirty for run in self.runs)


def read_results(paths: Sequence[Path], advance: Callable[[], object] = lambda: None) -> RunsReading:
    """Read files, and all files under folders that hold results.

    Raises:
        ConfigError: a file that was named cannot be read or is of no known format, or nothing is left.
    """
    reading = RunsReading()
    for path in paths:
        for file in _files(path):
            advance()
            run = _read(file)
            if run:
                reading.runs.append(run)
            elif path == file:
                raise ConfigError(f"{path}: holds no results of {', '.join(format_names())}")
            else:
                reading.unknown.append(file)
    if not any(run.results.measurements for run in reading.runs):
        counts = ", ".join(f"{count:,} {reason}" for reason, count in reading.left_out.items())
        raise ConfigError(
            f"{', '.join(map(str, paths[:3]))}: no results of {', '.join(format_names())}"
            f"{f'; left out: {counts}' if counts else ''}"
        )
    reading.runs = _with_commits(reading.runs)
    return reading


def arrange(
    runs: Sequence[BenchmarkRun],
    order: Sequence[str] = (),
    *,
    in_order: bool = False,
    across: Collection[str] = (),
) -> BenchmarkHistory:
    """Put runs in the order of commits, and the repetitions of one commit and one identity together.

    Results belong to one series if name, scale of the unit, statistic and all labels are the same.

    Args:
        runs: In the order in which files were named.
        order: Ids of commits, oldest first, such as git's. Runs of commits that ``order`` lacks are left out.
        in_order: The runs are in the order of commits.
        across: Labels in which the results of one series may differ.

    Raises:
        ConfigError: nothing gives the order of the commits, or no result has a label of ``across``.
    """
    runs = [run for run in runs if run.results.measurements]
    if order:
        position = {sha: number for number, sha in enumerate(order)}
        runs = [replace(run, commit=sha) for run in runs if (sha := _resolved(run, order, position))]
    ordered = commit_order(runs, order, in_order=in_order)
    column = {commit: number for number, commit in enumerate(ordered.commits)}
    measured: dict[SeriesIdentity, list[tuple[int, Measurement]]] = {}
    for run, measurement, identity in identified(runs, across):
        measured.setdefault(identity, []).append((column[run.commit], measurement))
    series = [series_of(identity, entries, len(column)) for identity, entries in measured.items()]
    return BenchmarkHistory(ordered, tuple(titled(series)))


def _files(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        return [path]
    paths = []
    with file_errors(path):
        for folder, folders, names in os.walk(path):
            folders[:] = [name for name in folders if not name.startswith(".") or name in HIDDEN_RESULTS]
            paths += [Path(folder) / name for name in names]
        return sorted(file for file in paths if file.is_file())


def _read(path: Path) -> BenchmarkRun | None:
    with file_errors(path), path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{path}: more than {MOST_BYTES // 1024**2} MiB")
    try:
        content = ResultFile.of(path, data)
    except ConfigError:
        return None
    format_ = find_format(content)
    if not format_:
        return None
    try:
        results = format_.read(content)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return BenchmarkRun(path, format_, results, results.commit)


def _with_commits(runs: Sequence[BenchmarkRun]) -> list[BenchmarkRun]:
    """Return runs with the commits that their names say, where their files say none.

    A folder that all files share, such as a container's ``/builds/3fabc12d``, names no commit of theirs.
    """
    shared = Path(os.path.commonpath([run.path.parent.absolute() for run in runs])) if runs[1:] else None
    named = []
    for run in runs:
        path = run.path.absolute().relative_to(shared) if shared else run.path
        ids = (sha for name in _names(path) if (sha := commit_of(name)))
        named.append(replace(run, commit=run.commit or next(ids, "") or str(run.path)))
    return named


def _names(path: Path) -> tuple[str, ...]:
    return path.stem, *reversed(path.parent.parts)


def _resolved(run: BenchmarkRun, order: Sequence[str], position: dict[str, int]) -> str:
    """Return the commit of a run, empty if the order lacks it or has several of that abbreviation.

    One abbreviated id in a hundred is digits alone: if ``order`` has such a commit, they are no date.
    """
    named = (digits for name in _names(run.path) for digits in commits_of(name) if digits.isdigit())
    for commit in (run.commit, *named):
        if commit in position:
            return commit
        whole = [sha for sha in order if commit and sha.startswith(commit)]
        if len(whole) == 1:
            return whole[0]
    return ""
