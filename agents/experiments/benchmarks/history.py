"""Results of many commits: one series for each benchmark, in the order of commits."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from agents.experiments.benchmarks.results import (
    FileResults,
    ResultFile,
    commit_of,
    commits_of,
    find_format,
    format_names,
)
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError, file_errors

HIDDEN_RESULTS = (".asv", ".benchmarks")
"""Folders that tools keep results in by default."""

MOST_BYTES = 256 * 1024**2
"""Largest file of results."""


@dataclass(frozen=True, slots=True)
class BenchmarkSeries:
    """One benchmark over commits.

    Args:
        name: Name of the benchmark, with its parameters.
        unit: Unit of its values.
        more_is_better: Whether a fall is the regression.
        levels: (commits,) the median of the repetitions, NaN where it was not run.
    """

    name: str
    unit: str
    more_is_better: bool
    levels: FloatArray


@dataclass(frozen=True, slots=True)
class BenchmarkHistory:
    """All benchmarks over the same commits, oldest first; ``commits`` names them by id, or by their file."""

    commits: tuple[str, ...]
    times: FloatArray  # (commits,) epoch seconds, NaN where no file says it
    series: tuple[BenchmarkSeries, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
    """Results of one file, and the commit that they belong to."""

    path: Path
    format: str
    results: FileResults
    commit: str


@dataclass(slots=True)
class RunsReading:
    """Runs that were read, and the files that were passed over."""

    runs: list[BenchmarkRun] = field(default_factory=list)
    unknown: list[Path] = field(default_factory=list)  # files of folders that hold no results

    @property
    def invalid(self) -> int:
        """Number of entries without a measurement in all files."""
        return sum(run.results.invalid for run in self.runs)


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
        raise ConfigError(f"{', '.join(map(str, paths[:3]))}: no results of {', '.join(format_names())}")
    return reading


def arrange(runs: Sequence[BenchmarkRun], order: Sequence[str] = ()) -> BenchmarkHistory:
    """Put runs in the order of commits, and the repetitions of one commit together.

    Args:
        runs: In the order in which files were named, which decides where nothing else does.
        order: Ids of commits, oldest first, such as git's. Without it commits are in the order of time, if
            each file has one. Runs of commits that ``order`` lacks are left out.
    """
    position = {sha: number for number, sha in enumerate(order)}
    if order:
        runs = [replace(run, commit=sha) for run in runs if (sha := _resolved(run, order, position))]
    times: dict[str, float] = {}
    for run in runs:
        times[run.commit] = np.fmin(times.get(run.commit, math.nan), run.results.time)
    commits = list(times)
    if order:
        commits.sort(key=position.__getitem__)
    elif all(map(math.isfinite, times.values())):
        commits.sort(key=times.__getitem__)
    column = {commit: number for number, commit in enumerate(commits)}
    values: dict[tuple[str, str], list[list[float]]] = {}
    better: dict[tuple[str, str], bool] = {}
    for run in runs:
        for measurement in run.results.measurements:
            key = measurement.name, measurement.unit
            better[key] = measurement.more_is_better
            values.setdefault(key, [[] for _ in commits])[column[run.commit]] += measurement.values
    series = tuple(
        BenchmarkSeries(
            name,
            unit,
            better[name, unit],
            np.array([np.median(repetitions) if repetitions else np.nan for repetitions in columns]),
        )
        for (name, unit), columns in values.items()
    )
    return BenchmarkHistory(tuple(commits), np.array([times[commit] for commit in commits]), series)


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
    results = format_.read(content)
    return BenchmarkRun(path, format_.name, results, results.commit or _named(path) or str(path))


def _named(path: Path) -> str:
    """Return the commit that a file or a folder above it is named after."""
    return next((sha for name in _names(path) if (sha := commit_of(name))), "")


def _names(path: Path) -> tuple[str, ...]:
    return path.stem, *reversed(path.parent.parts)


def _resolved(run: BenchmarkRun, order: Sequence[str], position: dict[str, int]) -> str:
    """Return the commit of a run, empty if the order lacks it.

    One abbreviated id in a hundred is digits alone: if ``order`` has such a commit, they are no date.
    """
    named = (digits for name in _names(run.path) for digits in commits_of(name) if digits.isdigit())
    for commit in (run.commit, *named):
        if commit in position:
            return commit
        if whole := next((sha for sha in order if commit and sha.startswith(commit)), ""):
            return whole
    return ""
