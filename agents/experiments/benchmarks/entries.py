"""Collection of the measurements of one file: valid entries are taken, others are counted."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from agents.experiments.benchmarks.results import (
    FileResults,
    Labels,
    LeftOut,
    Measurement,
    Remark,
    commit_of,
    moment_of,
)
from agents.experiments.benchmarks.units import Better
from pipeline.model.errors import ConfigError

Value = TypeVar("Value")

_COMMIT_LABELS = {
    f"{prefix}{name}"
    for prefix in ("", "git-", "vcs.")
    for name in ("commit", "commit-hash", "revision", "sha")
}
_DIRTY_LABELS = {"dirty", "git-dirty", "vcs.modified", "modified"}
_DIRTY = re.compile(r"(?i)(?<![a-z])(?:dirty|uncommitt?ed)(?![a-z])|[0-9a-f]{7}\+$")
_BRANCH_LABELS = {f"{prefix}branch" for prefix in ("", "git-", "git.", "vcs.", "commit-")}
_COMMIT_TIMES = {"commit-time", "commit-date"}
_RUN_TIMES = {"date", "time", "timestamp", "start-time", "run-time"}
_RUN_NAMES = {"run-id", "build-id", "build-number", "by"} | {
    f"upload{part}" for part in ("", "-part", "-time", "-file")
}
_RUN_ENDINGS = ("stamp", "-hash", "-sha", "-date", "-time")
"""Labels of a file that are another one in each run: they identify the run and not what it measures."""

SIZES = (1e-100, 1e100)
"""The smallest and the largest value that is read: squares of others underflow or overflow."""

BRANCH = "branch"
"""Label of the branch that was measured, if there was one: commits of two branches are no history."""

PACKAGE = "pkg"
"""Label of Go's package."""

PROCESSORS = "procs"
"""Label of the number of processors that Go may use."""

_Key = tuple[str, str, Labels, str, Better | None]
"""Name, unit, labels, statistic and direction of measurements."""

_Name = tuple[str, Labels]


@dataclass(slots=True)
class Entries:
    """Collects valid measurements, and counts the other entries: files are not trusted.

    Args:
        labels: Labels of the file. Those that say its commit or a time identify no benchmark.
    """

    labels: InitVar[Mapping[str, str]] = MappingProxyType({})
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    remarks: set[Remark] = field(default_factory=set)
    _of_file: dict[str, str] = field(default_factory=dict)
    _of_run: dict[str, str] = field(default_factory=dict)  # labels of the commit and of times
    _sorted: dict[Labels, Labels] = field(default_factory=dict)  # all labels, by those of an entry
    _values: dict[_Key, list[float]] = field(default_factory=dict)
    _named: set[_Name] = field(default_factory=set)
    _newest: _Name = ("", ())
    _returned: set[_Name] = field(default_factory=set)  # came again after another benchmark
    _interleaved: set[_Name] = field(default_factory=set)  # of these, those that no package distinguishes

    def __post_init__(self, labels: Mapping[str, str]) -> None:
        for name, value in labels.items():
            self.label(name, value)

    def label(self, name: str, value: str) -> None:
        """Set a label of the entries that follow; an empty value removes it.

        Raises:
            ConfigError: the label names a commit, and named another one before.
        """
        if is_of_run(name):
            if _spelled(name) in _COMMIT_LABELS and self._of_run.get(name, value) != value:
                raise ConfigError("holds results of several commits; give each commit a file of its own")
            self._of_run[name] = value
            return
        if _spelled(name) in _BRANCH_LABELS:
            name, value = BRANCH, "" if value == "HEAD" or value.startswith("(") else value
        self._sorted.clear()
        self._of_file[name] = value
        if not value:
            del self._of_file[name]

    def add(
        self,
        name: object,
        unit: object,
        values: object,
        labels: Mapping[str, str] | None = None,
        *,
        statistic: str = "median",
        better: Better | None = None,
    ) -> None:
        """Take an entry if it has a name and numbers, all of them 0 or within ``SIZES``.

        Entries of one file that differ in their values alone are repetitions.
        """
        numbers = values if isinstance(values, Sequence) and not isinstance(values, str) else [values]
        floats = [
            float(number)
            for number in numbers
            if isinstance(number, int | float) and not isinstance(number, bool)
        ]
        fits = all(number == 0 or SIZES[0] <= number <= SIZES[1] for number in floats)
        if not (isinstance(name, str) and name and fits and len(floats) == len(numbers) > 0):
            self.leave_out(LeftOut.INVALID)
            return
        text = unit if isinstance(unit, str) else ""
        own = tuple((labels or {}).items())
        if own not in self._sorted:
            self._sorted[own] = tuple(sorted({**self._of_file, **(labels or {})}.items()))
        key = name, text, self._sorted[own], statistic, better
        self._values.setdefault(key, []).extend(floats)
        benchmark = name, key[2]
        if benchmark != self._newest and benchmark in self._named:
            self._returned.add(benchmark)
        self._named.add(benchmark)
        self._newest = benchmark

    def leave_out(self, reason: LeftOut, count: int = 1) -> None:
        """Count entries that are no measurements."""
        if count:
            self.left_out[reason] += count

    def leave_out_mixed(
        self, label: str = "", incomplete: Collection[str] = (), *, in_turn: bool = False
    ) -> None:
        """Leave out names that several benchmarks of a file share, if no ``label`` distinguishes these.

        Each benchmark has the same number of repetitions, and they are of one level. Repeated results that
        are so are taken for repetitions, which is said where another file would have the same lines; names
        that come again after others are left out as interleaved.

        Args:
            label: What distinguishes benchmarks of one name.
            incomplete: Names of benchmarks that failed, and may have fewer repetitions.
            in_turn: The tool repeats a benchmark before it runs the next one.
        """
        benchmarks: dict[_Name, list[_Key]] = {}
        for key in self._values:
            if label not in dict(key[2]):
                benchmarks.setdefault((key[0], key[2]), []).append(key)
        counts = {name: max(len(self._values[key]) for key in keys) for name, keys in benchmarks.items()}
        usual = min((count for (name, _), count in counts.items() if name not in incomplete), default=1)
        for name, keys in benchmarks.items():
            if counts[name] > usual or _has_levels(self._values[keys[0]]):
                self.leave_out(LeftOut.AMBIGUOUS, sum(len(self._values.pop(key)) for key in keys))
            elif name in self._returned:
                self._interleaved.add(name)
            elif counts[name] > 1 and not (in_turn and len(benchmarks) > 1):
                self.remarks.add(Remark.REPETITIONS)

    def results(
        self,
        commit: object = "",
        *,
        commit_time: object = None,
        run_time: object = None,
    ) -> FileResults:
        """Return the results that were collected; the file's labels say what no argument does."""
        if any(map(_is_dirty, self._of_run.items())):
            self.remarks.add(Remark.DIRTY)
        measurements: dict[bool, list[Measurement]] = {False: [], True: []}
        for (name, unit, labels, statistic, better), values in self._values.items():
            measurements[(name, labels) in self._interleaved].append(
                Measurement(name, unit, tuple(values), labels, statistic, better)
            )
        return FileResults(
            measurements[False],
            commit_of(commit) or self._first(_COMMIT_LABELS, commit_of, ""),
            self._moment(commit_time, _COMMIT_TIMES),
            self._moment(run_time, _RUN_TIMES),
            frozenset(self.remarks),
            dict(self.left_out),
            measurements[True],
        )

    def _first(self, names: Collection[str], read: Callable[[object], Value], none: Value) -> Value:
        return next((read(text) for name, text in self._of_run.items() if _spelled(name) in names), none)

    def _moment(self, value: object, names: Collection[str]) -> float:
        return moment_of(value) if value is not None else self._first(names, moment_of, math.nan)


def _has_levels(values: Sequence[float]) -> bool:
    """True if a quarter of values or more is beyond twice the others: one benchmark is not so noisy."""
    ordered, quarter = sorted(values), -(-len(values) // 4)
    middle = range(quarter, len(values) - quarter + 1)
    return any(ordered[at] > 2 * ordered[at - 1] for at in middle)


def _is_dirty(label: tuple[str, str]) -> bool:
    name, value = label
    if _spelled(name) in _DIRTY_LABELS:
        return value.lower() in ("true", "1", "yes")
    return _spelled(name) in _COMMIT_LABELS and is_dirty(value)


def is_dirty(name: str) -> bool:
    """True if a commit's name says that its files were changed: ``0f3c2a9-dirty``, or ``0f3c2a9+``.

    >>> is_dirty("0f3c2a9-dirty.txt")
    True
    """
    return bool(_DIRTY.search(name))


def _spelled(name: str) -> str:
    return name.lower().replace("_", "-")


def is_of_run(name: str) -> bool:
    """True if a label says the commit or a time of a run, and identifies no benchmark."""
    text = _spelled(name)
    return text in _COMMIT_LABELS | _DIRTY_LABELS | _RUN_TIMES | _RUN_NAMES or text.endswith(_RUN_ENDINGS)


def distinct(
    rows: Iterable[Mapping[str, Any]],
    identity: Callable[[Mapping[str, Any]], tuple[object, ...]],
    entries: Entries,
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of different identities, where a row has all repetitions of its benchmark.

    Rows that share a name, which is the first of an identity, and all else are counted as ambiguous.
    """
    named = [(identity(row), row) for row in rows]
    counts = Counter(repr(key) for key, _ in named)
    for key, row in named:
        if counts[repr(key)] == 1 or not key[0]:
            yield row
        else:
            entries.leave_out(LeftOut.AMBIGUOUS)
