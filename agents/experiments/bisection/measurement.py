"""Measurement by one run of a command: a number it prints, its exit code, or a file of results."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agents.experiments.benchmarks import Better, arrange, read_results
from agents.experiments.bisection.shell import Finished
from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError

SKIP_CODE = 125
"""Exit code by which a command says that a commit cannot be measured, as `git bisect run` has it."""

_BAD_CODES = range(1, 128)


@dataclass(frozen=True, slots=True)
class CommitMeasurement:
    """One measurement, or why there is none.

    Args:
        value: In any unit; NaN if there is none.
        failure: Reason why there is no value; empty if there is one.
    """

    value: float
    failure: str = ""


Reading = Callable[[Finished, Path], CommitMeasurement]
"""Reads the measurement of a finished run in the folder of its work tree."""


def reading_of(*, exit_code: bool, results: Path | None, benchmark: str | None) -> Reading:
    """Return the reader of runs.

    Args:
        exit_code: 0 is good and 1 to 127 bad, as `git bisect run` has it.
        results: File of results that a run leaves, relative to its work tree.
        benchmark: Benchmark to read, if the file has several.
    """
    if exit_code:
        return _exit_code
    if results is not None:
        return lambda finished, folder: _results(finished, folder / results, benchmark)
    return _number


def _exit_code(finished: Finished, folder: Path) -> CommitMeasurement:
    del folder
    if finished.code in (0, None) or finished.code == SKIP_CODE or finished.code not in _BAD_CODES:
        return CommitMeasurement(0.0) if finished.code == 0 else _failed(finished)
    return CommitMeasurement(1.0)


def _number(finished: Finished, folder: Path) -> CommitMeasurement:
    del folder
    if finished.code != 0:
        return _failed(finished)
    last = next((line.strip() for line in reversed(finished.output.split("\n")) if line.strip()), "")
    try:
        value = float(last)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return CommitMeasurement(value)
    return _none(f"its last line is no number: {last[:80]!r}")


def _results(finished: Finished, path: Path, benchmark: str | None) -> CommitMeasurement:
    if finished.code != 0:
        return _failed(finished)
    try:
        reading = read_results([path])
        series = arrange([replace(run, commit="measured") for run in reading.runs]).series
    except ConfigError as error:
        return _none(str(error))
    named = [
        item for item in series if benchmark in (None, item.name, item.title, f"{item.title} {item.unit}")
    ]
    if len(named) > 1:  # counters beside a time
        named = [item for item in named if item.better is not Better.UNKNOWN] or named
    if len(named) != 1:
        titles = [item.title for item in series]
        names = listed(
            sorted(
                item.title if titles.count(item.title) == 1 else f"{item.title} {item.unit}"
                for item in series
            ),
            benchmark or "",
        )
        return _none(f"{path.name}: not one benchmark{f' {benchmark}' if benchmark else ''}, but {names}")
    return CommitMeasurement(float(np.nanmedian(named[0].levels)))


def _failed(finished: Finished) -> CommitMeasurement:
    return _none(f"run: {finished.reason}")


def _none(failure: str) -> CommitMeasurement:
    return CommitMeasurement(math.nan, failure)
