"""Series of benchmarks: what identifies one, and what distinguishes those of one name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

from agents.experiments.benchmarks.entries import BRANCH, PACKAGE, PROCESSORS
from agents.experiments.benchmarks.results import BenchmarkRun, Labels, Measurement, Remark, without_ids
from agents.experiments.benchmarks.units import Better, unit_of
from pipeline.files.listing import listed
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError

_SEPARATOR = re.compile(r"[-_ ]+")
_COUNTER = re.compile(
    r"(?:v|r|runs?|rep(?:eat|etition)?|iter(?:ation)?|trial|attempt|round|sample|try|build|job|pr|nightly"
    r"|week|day|sprint|batch|part|release|version|dirty|uncommitt?ed|changes)?(?:[0-9][0-9.:tz+]*)?",
    re.IGNORECASE,
)
"""What counts runs in names of files: 17, run2, v1.2.3, 20260131T180000Z; but not smp8 or py3.11."""
_TRUNKS = {"main", "master", "trunk", "develop"}
"""Names of folders and files that are those of a branch; what stands in their place is another branch."""

_SMALL = re.compile(r"[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class BenchmarkSeries:
    """One benchmark over commits, as one machine and one environment measured it.

    Args:
        name: Name of the benchmark, with its parameters.
        unit: Unit of its values; that of the newest commit, if files have several of one scale.
        better: Direction in which it improves; a change of an unknown one is not judged.
        levels: (commits,) the median of the repetitions, NaN where it was not run.
        labels: What else identifies it, such as its machine, interpreter or package.
        title: The name, and the labels in which series of this name differ.
    """

    name: str
    unit: str
    better: Better
    levels: FloatArray
    labels: Labels = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class SeriesIdentity:
    """What results have in common that are compared; ``dimension`` is the unit on its common scale."""

    name: str
    dimension: str
    labels: Labels


def identified(
    runs: Sequence[BenchmarkRun], across: Collection[str]
) -> Iterator[tuple[BenchmarkRun, Measurement, SeriesIdentity]]:
    """Yield each measurement with its run and identity.

    Beside the labels of the file there are ``format``, ``statistic``, and, where a file does not say the
    machine, ``file``: the names of folders and file, without ids of commits and counters. Where some of these
    are those of a trunk such as main, they are the label ``branch`` of files that say the machine. ``unit``
    is a label where a file has one benchmark in several units of one scale, which are different metrics. A
    number of processors that Go appended is part of the name again if another file has this name without one.

    Raises:
        ConfigError: no result has a label of ``across``.
    """
    _check_labels(runs, across)
    several = _metrics_of_one_scale(runs)
    measurements = (item for run in runs if run.format.name == "go" for item in run.results.measurements)
    whole = {item.name for item in measurements if not _processors(item.labels)}

    @cache
    def labels_left(labels: Labels, of_run: Labels, statistic: str, *, is_whole: bool) -> Labels:
        without = {*across, PROCESSORS} if is_whole else across
        every = dict((*of_run, *labels, ("statistic", statistic)))  # a file's own branch is in labels
        return tuple(sorted((name, value) for name, value in every.items() if name not in without))

    for run, file in zip(runs, _file_labels(runs), strict=True):
        of_run = (("format", run.format.name), *file)
        for item in run.results.measurements:
            processors = _processors(item.labels) if PROCESSORS not in across else ""
            full = f"{item.name}-{processors}"
            is_whole = bool(processors) and full in whole
            labels = labels_left(item.labels, of_run, item.statistic, is_whole=is_whole)
            name = full if is_whole else item.name
            dimension = unit_of(item.unit).dimension
            if (item.name, dimension) in several:
                labels = tuple(sorted((*labels, ("unit", item.unit))))
            yield run, item, SeriesIdentity(name, dimension, labels)


def _metrics_of_one_scale(runs: Sequence[BenchmarkRun]) -> set[tuple[str, str]]:
    """Return names and dimensions of benchmarks that a file has in several units, as of ns/op and ms."""
    several: set[tuple[str, str]] = set()
    for run in runs:
        units: dict[tuple[str, str, Labels, str], str] = {}
        for item in run.results.measurements:
            key = item.name, unit_of(item.unit).dimension, item.labels, item.statistic
            if units.setdefault(key, item.unit) != item.unit:
                several.add(key[:2])
    return several


@cache
def _processors(labels: Labels) -> str:
    return dict(labels).get(PROCESSORS, "")


def _file_labels(runs: Sequence[BenchmarkRun]) -> list[Labels]:
    """Return the label of each file: none if names are those of commits, or the file says its environment."""
    root = Path(os.path.commonpath([run.path.parent.absolute() for run in runs]) if runs else "")
    paths = [run.path.absolute().relative_to(root) for run in runs]
    names = [_environment(path, numbered=True) for path in paths]
    count = len({run.commit for run in runs})
    if 2 * len(set(names)) > count > 1:  # the numbers count commits
        names = [_environment(path) for path in paths]
    unsaid = _unsaid_environments(runs, names)
    says_machine = [_has_machine(run) and run.format.name not in unsaid for run in runs]
    files = ["" if said else name for name, said in zip(names, says_machine, strict=True)]
    labels: list[Labels] = [(("file", name),) if name else () for name in _shared_names(runs, files)]
    if any(map(_is_trunk, names)) and not all(map(_is_trunk, names)):
        branches = [name if said else "" for name, said in zip(names, says_machine, strict=True)]
        for at, name in enumerate(_shared_names(runs, branches)):
            labels[at] += ((BRANCH, name),) if name else ()
    return labels


def _is_trunk(name: str) -> bool:
    return not _TRUNKS.isdisjoint(name.lower().split("/"))


def _shared_names(runs: Sequence[BenchmarkRun], names: Sequence[str]) -> Sequence[str]:
    """Return as much of the names of folders and files as several commits share, cut from the end.

    Below it, names are those of commits or chosen anew in each run, as in ``linux/0f3c2a9-kzhxgy.txt``.
    """
    if len({run.commit for run in runs}) < 2:
        return names
    while any(names):
        commits: dict[str, set[str]] = {}
        for name, run in zip(names, runs, strict=True):
            commits.setdefault(name, set()).add(run.commit)
        if any(len(measured) > 1 for measured in commits.values()):
            break
        names = [name.rpartition("/")[0] for name in names]
    return names


def _unsaid_environments(runs: Sequence[BenchmarkRun], names: Sequence[str]) -> set[str]:
    """Return the formats in which files of different names say the same of one benchmark at one commit."""
    unsaid: set[str] = set()
    files: dict[tuple[str, str], dict[str, list[BenchmarkRun]]] = {}
    for run, name in zip(runs, names, strict=True):
        files.setdefault((run.format.name, run.commit), {}).setdefault(name, []).append(run)
    for (format_name, _), by_name in files.items():
        if len(by_name) < 2 or format_name in unsaid:
            continue
        results = [
            {(item.name, item.unit, item.labels) for run in group for item in run.results.measurements}
            for group in by_name.values()
        ]
        if sum(map(len, results)) > len(set().union(*results)):
            unsaid.add(format_name)
    return unsaid


def _has_machine(run: BenchmarkRun) -> bool:
    return any(name == run.format.machine for name, _ in run.results.measurements[0].labels)


def _environment(path: Path, *, numbered: bool = False) -> str:
    """Return what names of folders and a file say beside commits and counters.

    Args:
        path: Of the file, below the folder that all files share.
        numbered: Keep a small number that is alone after a word which counts nothing: ``threads-8``.

    >>> _environment(Path("laptop/0f3c2a9-smp8-run2.json"))
    'laptop/smp8'
    >>> _environment(Path("threads-8/0f3c2a9-run-2.json"), numbered=True)
    'threads-8'
    """
    parts = [*path.parent.parts, re.sub(r"\.[a-z]+$", "", path.name)]
    return "/".join(filter(None, (_environment_of(part, numbered=numbered) for part in parts)))


def _environment_of(part: str, *, numbered: bool) -> str:
    words = ["", *_SEPARATOR.split(without_ids(part)), ""]
    is_counter = [bool(_COUNTER.fullmatch(word)) for word in words]
    return "-".join(
        word
        for at, word in enumerate(words)
        if not is_counter[at]
        or (
            numbered and _SMALL.fullmatch(word) and not is_counter[at - 1] and not words[at + 1][:1].isdigit()
        )
    )


def series_of(
    identity: SeriesIdentity, entries: Sequence[tuple[int, Measurement]], commits: int
) -> BenchmarkSeries:
    """Return the series of measurements and the columns of their commits."""
    _, newest = max(entries, key=lambda entry: entry[0])
    scale = unit_of(newest.unit).scale
    repetitions: list[list[float]] = [[] for _ in range(commits)]
    for column, measurement in entries:
        factor = unit_of(measurement.unit).scale / scale
        repetitions[column] += [value * factor for value in measurement.values]
    newest_first = sorted(entries, key=lambda entry: -entry[0])
    stated = next((item.better for _, item in newest_first if item.better is not None), None)
    return BenchmarkSeries(
        identity.name,
        newest.unit,
        stated or unit_of(newest.unit).better,
        np.array([median(values) if values else np.nan for values in repetitions]),
        identity.labels,
    )


def directed(
    series: Sequence[BenchmarkSeries], directions: Mapping[str, Better]
) -> Iterable[BenchmarkSeries]:
    """Yield series with the directions that are given for their units, names or metrics.

    Raises:
        ConfigError: a direction is given for what no series has.
    """
    names = [_metric_names(item) for item in series]
    every = dict.fromkeys(name for metric in names for name in metric if name)
    for name in directions:
        if name not in every:
            raise ConfigError(f"--better {name}: no result has it, but {listed([*every], name)}")
    for item, metric in zip(series, names, strict=True):
        given = next((directions[name] for name in metric if name in directions), item.better)
        yield replace(item, better=given)


def _metric_names(series: BenchmarkSeries) -> tuple[str, ...]:
    """Return what names a metric: its benchmark, the same without parameters, its metric, its unit."""
    base = series.name.partition("[")[0]
    return series.name, base, base.rpartition(":")[2], series.unit


def titled(series: Sequence[BenchmarkSeries]) -> Iterable[BenchmarkSeries]:
    """Yield series with their titles."""
    distinguishing = {key: _fewest(items) for key, items in _by_name(series).items()}
    for item in series:
        labels = dict(item.labels)
        parts = [f"{name}={labels[name]}" for name in distinguishing[item.name, item.unit] if name in labels]
        yield replace(item, title=f"{item.name} ({', '.join(parts)})" if parts else item.name)


def _by_name(series: Sequence[BenchmarkSeries]) -> dict[tuple[str, str], list[BenchmarkSeries]]:
    named: dict[tuple[str, str], list[BenchmarkSeries]] = {}
    for item in series:
        named.setdefault((item.name, item.unit), []).append(item)
    return named


def _fewest(series: Sequence[BenchmarkSeries]) -> list[str]:
    """Return few labels that distinguish series."""
    chosen: list[str] = []
    kinds = 1
    for name in _differing(series):
        values = {tuple(dict(item.labels).get(label) for label in (*chosen, name)) for item in series}
        if len(values) > kinds:
            chosen.append(name)
            kinds = len(values)
    return chosen


def _differing(series: Sequence[BenchmarkSeries]) -> list[str]:
    """Return the labels that not all series share, those with the fewest values first."""
    labelled = [dict(item.labels) for item in series]
    kinds = {name: len({labels.get(name) for labels in labelled}) for labels in labelled for name in labels}
    return sorted((name for name in kinds if kinds[name] > 1), key=lambda name: (kinds[name], name))


def changed_labels(series: Sequence[BenchmarkSeries]) -> list[str]:
    """Return the labels in which series of one name differ that share no commit, as one replaced another.

    Series of the same commits, such as those of two packages, are different benchmarks.
    """
    changed: dict[str, None] = {}
    for items in _by_name(series).values():
        measured = np.array([~np.isnan(item.levels) for item in items], dtype=np.float64)
        replaced = (measured @ measured.T == 0).any(axis=1)
        changed |= dict.fromkeys(
            _differing([item for item, is_replaced in zip(items, replaced, strict=True) if is_replaced])
        )
    return list(changed)


def _check_labels(runs: Sequence[BenchmarkRun], across: Collection[str]) -> None:
    names = {name for run in runs for item in run.results.measurements for name, _ in item.labels}
    names |= {"file", "format", "statistic", BRANCH}
    names |= {PACKAGE for run in runs if Remark.REPETITIONS in run.results.remarks}
    for name in across:
        if name not in names:
            raise ConfigError(f"--across {name}: no result has this label, but {listed(sorted(names), name)}")
