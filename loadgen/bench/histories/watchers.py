"""Watchers of histories: ``smidgen benchmarks watch``, Apache Otava, and benchstat commit by commit."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
from scipy import stats

from agents.experiments.benchmarks import BenchmarkSeries, Better, find_changes
from loadgen.bench.histories import otava_program
from pipeline.model import FloatArray, IntArray
from pipeline.model.errors import ConfigError

ALPHA = 0.05
"""Default significance level of benchstat and of Smidgen."""

WINDOW = 10
"""Commits on each side that benchstat compares where a commit has one run."""

_TIMEOUT_S = 3600.0
_P_VALUE = re.compile(r"p=([0-9.]+)")


@dataclass(frozen=True, slots=True)
class WatcherAnswer:
    """Answer of one watcher for one history: first commits of new levels, and the seconds it took."""

    changes: Sequence[int]
    seconds: float


Watch = Callable[[Sequence[FloatArray]], list[WatcherAnswer]]
"""Watches histories, each (commits, repetitions), by themselves."""

Compare = Callable[[Sequence[FloatArray], Sequence[FloatArray]], FloatArray]
"""Returns (histories,) p-values of the runs before and after one commit of each history."""


def by_smidgen(histories: Sequence[FloatArray]) -> list[WatcherAnswer]:
    """Watch as `smidgen benchmarks watch` does at its default."""
    answers = []
    for values in histories:
        began = time.process_time()
        series = BenchmarkSeries("history", "ns", Better.LOWER, np.median(values, axis=1))
        changes = [change.index for change in find_changes([series], alpha=ALPHA)]
        answers.append(WatcherAnswer(changes, time.process_time() - began))
    return answers


def by_otava(python: str) -> Watch:
    """Return Apache Otava with its defaults, in a Python that has it; it sees medians of a commit's runs."""

    def watch(histories: Sequence[FloatArray]) -> list[WatcherAnswer]:
        levels = orjson.dumps([np.median(values, axis=1).tolist() for values in histories])
        output = _run([python, str(otava_program.__file__)], levels)
        return [WatcherAnswer(changes, seconds) for changes, seconds in orjson.loads(output)]

    return watch


def by_neighbours(compare: Compare) -> Watch:
    """Return a watcher that compares the runs of each commit with those of the one before.

    If a commit has one run, the runs of the WINDOW commits before it are compared with those of the WINDOW
    commits from it on. Of adjacent commits that differ, the one with the smallest p-value counts; of equal
    p-values, the middle one.
    """

    def watch(histories: Sequence[FloatArray]) -> list[WatcherAnswer]:
        began = time.perf_counter()
        p_values = np.ones((len(histories), max(len(values) for values in histories)))
        for commit in range(1, p_values.shape[1]):
            those = [number for number, values in enumerate(histories) if _compared(values, commit)]
            if those:
                sides = [_sides(histories[number], commit) for number in those]
                p_values[those, commit] = compare(*zip(*sides, strict=True))
        seconds = (time.perf_counter() - began) / len(histories)
        return [
            WatcherAnswer(_changes(row, single=values.shape[1] == 1), seconds)
            for row, values in zip(p_values, histories, strict=True)
        ]

    return watch


def _compared(values: FloatArray, commit: int) -> bool:
    margin = WINDOW if values.shape[1] == 1 else 1
    return margin <= commit <= len(values) - margin


def _sides(values: FloatArray, commit: int) -> tuple[FloatArray, FloatArray]:
    span = WINDOW if values.shape[1] == 1 else 1
    return values[commit - span : commit].ravel(), values[commit : commit + span].ravel()


def _changes(p_values: FloatArray, *, single: bool) -> list[int]:
    different = np.flatnonzero(p_values < ALPHA)
    if not single or not len(different):
        return different.tolist()
    runs = np.split(different, np.flatnonzero(np.diff(different) > 1) + 1)
    return [_middle(run[p_values[run] == p_values[run].min()]) for run in runs]


def _middle(commits: IntArray) -> int:
    """Return the middle commit: benchstat prints three digits, so the smallest p-values are often equal."""
    return int(commits[len(commits) // 2])


def mann_whitney(before: Sequence[FloatArray], after: Sequence[FloatArray]) -> FloatArray:
    """Compare by the statistic that benchstat uses: the two-sided U test of Mann and Whitney."""
    return np.array(
        [stats.mannwhitneyu(old, new).pvalue for old, new in zip(before, after, strict=True)],
        dtype=np.float64,
    )


def benchstat(program: str) -> Compare:
    """Return a comparison by one call of benchstat for all histories.

    Raises:
        ConfigError: when it is called, if it cannot run or prints something else.
    """

    def compare(before: Sequence[FloatArray], after: Sequence[FloatArray]) -> FloatArray:
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("old", "new")]
            for file, side in zip(files, (before, after), strict=True):
                file.write_text("".join(_lines(number, values) for number, values in enumerate(side)))
            output = _run([program, "-format", "csv", *map(str, files)], b"")
        return _p_values(output.decode(), len(before), program)

    return compare


def _lines(number: int, values: FloatArray) -> str:
    return "".join(f"BenchmarkH{number} 1 {value!r} ns/op\n" for value in values.tolist())


def _p_values(output: str, histories: int, program: str) -> FloatArray:
    p_values = np.full(histories, np.nan)
    for row in csv.reader(io.StringIO(output)):
        match = _P_VALUE.match(row[-1]) if row else None
        if match and row[0].startswith("H"):
            p_values[int(row[0][1:].partition("-")[0])] = float(match.group(1))
    if np.isnan(p_values).any():
        raise ConfigError(f"{program}: prints no p-value of {int(np.isnan(p_values).sum())} benchmarks")
    return p_values


def _run(command: Sequence[str], content: bytes) -> bytes:
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{command[0]}: {error}") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no output"]
        raise ConfigError(f"{command[0]}: exit code {done.returncode}: {reason[0][:200]}")
    return done.stdout
