"""Results of many commits: one series for each benchmark, in the order of commits."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from agents.experiments.benchmarks.order import BenchmarkRun, CommitOrder, commit_order
from agents.experiments.benchmarks.results import (
    PROCESSORS,
    Labels,
    LeftOut,
    Measurement,
    ResultFile,
    commit_of,
    commits_of,
    find_format,
    format_names,
)
from agents.experiments.benchmarks.units import unit_of
from pipeline.files.listing import listed
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError, file_errors

HIDDEN_RESULTS = (".asv", ".benchmarks")
"""Folders that tools keep results in by default."""

MOST_BYTES = 256 * 1024**2
"""Largest file of results."""


@dataclass(frozen=True, slots=True)
class BenchmarkSeries:
    """One benchmark over commits, as one machine and one environment measured it.

    Args:
        name: Name of the benchmark, with its parameters.
        unit: Unit of its values; that of the newest commit, if files have several of one scale.
        more_is_better: Whether a fall is the regression.
        levels: (commits,) the median of the repetitions, NaN where it was not run.
        labels: What else identifies it, such as its machine, interpreter or package.
        statistic: What a tool made of its repetitions; ``median`` if files have all of them.
        title: The name, and the labels in which series of this name differ.
    """

    name: str
    unit: str
    more_is_better: bool
    levels: FloatArray
    labels: Labels = ()
    statistic: str = "median"
    title: str = ""


@dataclass(frozen=True, slots=True)
class BenchmarkHistory:
    """All benchmarks over the same commits, oldest first; ``commits`` names them by id, or by their file."""

    commits: tuple[str, ...]
    series: tuple[BenchmarkSeries, ...]
    order: CommitOrder


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
    return reading


def arrange(
    runs: Sequence[BenchmarkRun],
    order: Sequence[str] = (),
    *,
    in_order: bool = False,
    across: Collection[str] = (),
) -> BenchmarkHistory:
    """Put runs in the order of commits, and the repetitions of one commit and one identity together.

    Results belong to one series if format, name, scale of the unit, statistic and all labels are the same.

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
    commits, basis = commit_order(runs, order, in_order=in_order)
    _check_labels(runs, across)
    column = {commit: number for number, commit in enumerate(commits)}
    whole = _whole_names(runs)
    measured: dict[_Identity, list[tuple[int, Measurement]]] = {}
    for run in runs:
        for measurement in run.results.measurements:
            identity = _identity(run.format, measurement, whole, across)
            measured.setdefault(identity, []).append((column[run.commit], measurement))
    series = [_series(identity, entries, len(commits)) for identity, entries in measured.items()]
    return BenchmarkHistory(tuple(commits), tuple(_titled(series)), basis)


@dataclass(frozen=True, slots=True)
class _Identity:
    format: str
    name: str
    dimension: str
    statistic: str
    labels: Labels


def _identity(
    format_: str, measurement: Measurement, whole: Container[str], across: Collection[str]
) -> _Identity:
    labels, name = dict(measurement.labels), measurement.name
    if PROCESSORS in labels and PROCESSORS not in across and (full := _full_name(measurement)) in whole:
        name = full
        del labels[PROCESSORS]
    left = tuple(sorted((key, value) for key, value in labels.items() if key not in across))
    return _Identity(format_, name, unit_of(measurement.unit).dimension, measurement.statistic, left)


def _whole_names(runs: Sequence[BenchmarkRun]) -> set[str]:
    """Return names from which no file takes a number of processors: in other files it is none either."""
    measurements = [measurement for run in runs for measurement in run.results.measurements]
    return {item.name for item in measurements if PROCESSORS not in dict(item.labels)}


def _full_name(measurement: Measurement) -> str:
    return f"{measurement.name}-{dict(measurement.labels)[PROCESSORS]}"


def _series(identity: _Identity, entries: Sequence[tuple[int, Measurement]], commits: int) -> BenchmarkSeries:
    _, newest = max(entries, key=lambda entry: entry[0])
    scale = unit_of(newest.unit).scale
    repetitions: list[list[float]] = [[] for _ in range(commits)]
    for column, measurement in entries:
        factor = unit_of(measurement.unit).scale / scale
        repetitions[column] += [value * factor for value in measurement.values]
    stated = newest.more_is_better
    return BenchmarkSeries(
        identity.name,
        newest.unit,
        unit_of(newest.unit).is_rate if stated is None else stated,
        np.array([np.median(values) if values else np.nan for values in repetitions]),
        identity.labels,
        identity.statistic,
    )


def _titled(series: Sequence[BenchmarkSeries]) -> Iterable[BenchmarkSeries]:
    named: dict[tuple[str, str], list[BenchmarkSeries]] = {}
    for item in series:
        named.setdefault((item.name, item.unit), []).append(item)
    differing = {key: _fewest(items) for key, items in named.items()}
    for item in series:
        labels = _all_labels(item)
        parts = [f"{name}={labels[name]}" for name in differing[item.name, item.unit] if name in labels]
        yield replace(item, title=f"{item.name} ({', '.join(parts)})" if parts else item.name)


def _fewest(series: Sequence[BenchmarkSeries]) -> list[str]:
    """Return few labels that distinguish series."""
    chosen: list[str] = []
    kinds = 1
    for name in differing_labels(series):
        values = {tuple(_all_labels(item).get(label) for label in (*chosen, name)) for item in series}
        if len(values) > kinds:
            chosen.append(name)
            kinds = len(values)
    return chosen


def differing_labels(series: Sequence[BenchmarkSeries]) -> list[str]:
    """Return the labels that not all series of one name share, those that differ least often first."""
    named: dict[str, list[dict[str, str]]] = {}
    for item in series:
        named.setdefault(item.name, []).append(_all_labels(item))
    counts: dict[str, int] = {}
    for labelled in named.values():
        for name in {name: None for labels in labelled for name in labels}:
            kinds = len({labels.get(name) for labels in labelled})
            if kinds > 1:
                counts[name] = max(counts.get(name, 0), kinds)
    return sorted(counts, key=lambda name: (counts[name], name))


def _all_labels(series: BenchmarkSeries) -> dict[str, str]:
    return {**dict(series.labels), "statistic": series.statistic}


def _check_labels(runs: Sequence[BenchmarkRun], across: Collection[str]) -> None:
    names = {name for run in runs for item in run.results.measurements for name, _ in item.labels}
    for name in across:
        if name not in names:
            raise ConfigError(f"--across {name}: no result has this label, but {listed(sorted(names), name)}")


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
    named = (sha for name in _names(path) if (sha := commit_of(name)))
    return BenchmarkRun(path, format_.name, results, results.commit or next(named, "") or str(path))


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
