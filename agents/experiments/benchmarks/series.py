"""Series of benchmarks: what identifies one, and what distinguishes those of one name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

from agents.experiments.benchmarks.results import COMMIT_ID, PROCESSORS, BenchmarkRun, Labels, Measurement
from agents.experiments.benchmarks.units import unit_of
from pipeline.files.listing import listed
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError

_SEPARATOR = re.compile(r"[-_ ]+")
_COUNTER = re.compile(
    r"(?:v|r|runs?|rep(?:eat|etition)?|iter(?:ation)?|trial|attempt|round|sample|try|build|job|pr|nightly)?"
    r"[0-9.:tz+]*",
    re.IGNORECASE,
)
"""What counts runs in names of files: 17, run2, v1.2.3, 20260131T180000Z; but not smp8 or py3.11."""


@dataclass(frozen=True, slots=True)
class BenchmarkSeries:
    """One benchmark over commits, as one machine and one environment measured it.

    Args:
        name: Name of the benchmark, with its parameters.
        unit: Unit of its values; that of the newest commit, if files have several of one scale.
        more_is_better: Whether a fall is the regression.
        levels: (commits,) the median of the repetitions, NaN where it was not run.
        labels: What else identifies it, such as its machine, interpreter or package.
        title: The name, and the labels in which series of this name differ.
    """

    name: str
    unit: str
    more_is_better: bool
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
    machine, ``file``: the names of folders and file, without ids of commits and counters. A number of
    processors that Go appended is part of the name again if another file has this name without one.

    Raises:
        ConfigError: no result has a label of ``across``.
    """
    _check_labels(runs, across)
    measurements = (item for run in runs if run.format.name == "go" for item in run.results.measurements)
    whole = {item.name for item in measurements if not _processors(item.labels)}

    @cache
    def labels_left(labels: Labels, of_run: Labels, statistic: str, *, is_whole: bool) -> Labels:
        without = {*across, PROCESSORS} if is_whole else across
        every = (*labels, *of_run, ("statistic", statistic))
        return tuple(sorted((name, value) for name, value in every if name not in without))

    for run, file in zip(runs, _file_labels(runs), strict=True):
        of_run = (("format", run.format.name), *file)
        for item in run.results.measurements:
            processors = _processors(item.labels) if PROCESSORS not in across else ""
            full = f"{item.name}-{processors}"
            is_whole = bool(processors) and full in whole
            labels = labels_left(item.labels, of_run, item.statistic, is_whole=is_whole)
            name = full if is_whole else item.name
            yield run, item, SeriesIdentity(name, unit_of(item.unit).dimension, labels)


@cache
def _processors(labels: Labels) -> str:
    return dict(labels).get(PROCESSORS, "")


def _file_labels(runs: Sequence[BenchmarkRun]) -> list[Labels]:
    """Return the label of each file: none if the file says its machine, or if names are those of commits."""
    root = Path(os.path.commonpath([run.path.parent.absolute() for run in runs]) if runs else "")
    names = ["" if _has_machine(run) else _environment(run.path.absolute().relative_to(root)) for run in runs]
    commits: dict[str, set[str]] = {}
    for name, run in zip(names, runs, strict=True):
        commits.setdefault(name, set()).add(run.commit)
    shared = any(len(measured) > 1 for measured in commits.values()) or len({run.commit for run in runs}) < 2
    return [(("file", name),) if name and shared else () for name in names]


def _has_machine(run: BenchmarkRun) -> bool:
    return any(name == run.format.machine for name, _ in run.results.measurements[0].labels)


def _environment(path: Path) -> str:
    """Return what names of folders and a file say beside commits and counters.

    >>> _environment(Path("laptop/0f3c2a9-smp8-run2.json"))
    'laptop/smp8'
    """
    parts = [*path.parent.parts, re.sub(r"\.[a-z]+$", "", path.name)]
    kept = (
        "-".join(word for word in _SEPARATOR.split(COMMIT_ID.sub("", part)) if not _COUNTER.fullmatch(word))
        for part in parts
    )
    return "/".join(filter(None, kept))


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
    stated = newest.more_is_better
    return BenchmarkSeries(
        identity.name,
        newest.unit,
        unit_of(newest.unit).is_rate if stated is None else stated,
        np.array([median(values) if values else np.nan for values in repetitions]),
        identity.labels,
    )


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
    names |= {"file", "format", "statistic"}
    for name in across:
        if name not in names:
            raise ConfigError(f"--across {name}: no result has this label, but {listed(sorted(names), name)}")
