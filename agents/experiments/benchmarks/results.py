"""Files of benchmark results: their content, and the registry of their formats.

A format is recognised by its content. A module registers a function that recognises and one that reads it;
JSON is parsed once for all formats.
"""

from __future__ import annotations

import json
import math
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import orjson

from agents.experiments.benchmarks.units import Better
from pipeline.model.clock import from_iso
from pipeline.model.errors import ConfigError, InvalidMessage

Value = TypeVar("Value")

COMMIT_ID = re.compile(r"(?:(?<![0-9a-zA-Z])|(?<=-g))[0-9a-f]{7,64}(?![0-9a-zA-Z])")
"""Id of a commit, also as git describe writes it: v1.2-3-g0f3c2a9."""

_ADDRESS = re.compile(r"0x[0-9a-f]+")
"""Address of an object in its ``repr``, which is another one in each run."""

_COMMIT_LABELS = {
    f"{prefix}{name}"
    for prefix in ("", "git-", "vcs.")
    for name in ("commit", "commit-hash", "revision", "sha")
}
_DIRTY_LABELS = {"dirty", "git-dirty", "vcs.modified", "modified"}
_DIRTY = re.compile(r"(?i)(?<![a-z])(?:dirty|uncommitt?ed)(?![a-z])|[0-9a-f]{7}\+$")
_COMMIT_TIMES = {"commit-time", "commit-date"}
_RUN_TIMES = {"date", "time", "timestamp", "start-time", "run-time"}
_RUN_NAMES = {"run-id", "build-id", "build-number", "by"} | {
    f"upload{part}" for part in ("", "-part", "-time", "-file")
}
_RUN_ENDINGS = ("stamp", "-hash", "-sha", "-date", "-time")
"""Labels of a file that are another one in each run: they identify the run and not what it measures."""

SIZES = (1e-100, 1e100)
"""The smallest and the largest value that is read: squares of others underflow or overflow."""

_PROSE = {".md", ".markdown", ".rst", ".adoc", ".org", ".tex", ".html", ".htm", ".ipynb", ".patch", ".diff"}
_FENCES = ("```", "#!", "<!")

_MOST_BESIDE = 1024**2  # bytes of a file beside one of results

PACKAGE = "pkg"
"""Label of Go's package."""

PROCESSORS = "procs"
"""Label of the number of processors that Go may use."""

Labels = tuple[tuple[str, str], ...]
"""Names and values of labels, sorted by name."""


_Key = tuple[str, str, Labels, str, Better | None]
"""Name, unit, labels, statistic and direction of measurements."""

_Name = tuple[str, Labels]


class LeftOut(StrEnum):
    """Reason why an entry of a file is no measurement."""

    INVALID = "invalid"
    FAILED = "failed"
    SKIPPED = "skipped"
    AGGREGATE = "aggregate"
    BASELINE = "baseline"
    AMBIGUOUS = "ambiguous"


class Remark(StrEnum):
    """What is said of a file beside its results."""

    DIRTY = "dirty"  # measured with changes that were not committed
    REPETITIONS = "repetitions"  # no package is named: results of one name may be of several benchmarks


@dataclass(frozen=True, slots=True)
class Measurement:
    """Repetitions of one benchmark at one commit.

    Args:
        name: Name of the benchmark, with its parameters.
        unit: Unit as the tool writes it, such as ns, ops/s or B.
        values: Repetitions, or the one value that the tool made of them.
        labels: What else the file says of the benchmark: machine, interpreter, mode, package.
        statistic: What the level of ``values`` is: ``median``, or the statistic that the tool wrote.
        better: Direction that the file states; None if it states none, and the unit decides.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    labels: Labels = ()
    statistic: str = "median"
    better: Better | None = None


@dataclass(frozen=True, slots=True)
class FileResults:
    """Results of one file; ``commit`` is empty and a time NaN if the file has none."""

    measurements: list[Measurement]
    commit: str = ""
    commit_time: float = math.nan  # epoch seconds at which the commit was made
    run_time: float = math.nan  # epoch seconds at which it was measured
    remarks: frozenset[Remark] = frozenset()
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file: its name, its text and, if it is JSON, the document."""

    path: Path
    text: str
    document: Any = None

    @classmethod
    def of(cls, path: Path, data: bytes) -> ResultFile:
        """Decode a file.

        Raises:
            ConfigError: it is neither UTF-8 nor UTF-16 with a byte order mark, which PowerShell writes.
        """
        try:
            text = data.decode("utf-16" if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8-sig")
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: not UTF-8 or UTF-16 text") from None
        return cls(path, text, _document(text))

    @property
    def is_prose(self) -> bool:
        """True for a document or a source, such as a README whose examples look like results."""
        if self.document is not None:
            return False
        return self.path.suffix.lower() in _PROSE or self.text.startswith(_FENCES) or "\n```" in self.text

    def beside(self, name: str) -> Mapping[str, Any]:
        """Return the JSON object in another file of the same folder, empty if there is none."""
        try:
            with self.path.with_name(name).open("rb") as file:
                document = orjson.loads(file.read(_MOST_BESIDE))
        except (OSError, orjson.JSONDecodeError):
            return {}
        return document if isinstance(document, dict) else {}


def _document(text: str) -> Any:
    """Return a JSON document, None if it is none; NaN, which asv and Google Benchmark write, is accepted."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    if not ("NaN" in text or "Infinity" in text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class ResultFormat:
    """One format of result files."""

    name: str
    recognises: Callable[[ResultFile], bool]
    read: Callable[[ResultFile], FileResults]
    machine: str = ""  # label that says which machine measured
    runs: Callable[[ResultFile], Sequence[ResultFile]] = lambda content: (content,)  # of a file of many


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
    """Results of one file, and the commit that they belong to; ``str(path)`` if nothing says it."""

    path: Path
    format: ResultFormat
    results: FileResults
    commit: str


_registry: dict[str, ResultFormat] = {}


def register(format_: ResultFormat) -> None:
    """Add a format; if several recognise a file, the one added first reads it."""
    _registry[format_.name] = format_


def format_names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(_registry)


def find_format(content: ResultFile) -> ResultFormat | None:
    """Return the format of a file; documents have none, whatever their examples look like."""
    if content.is_prose:
        return None
    return next((format_ for format_ in _registry.values() if format_.recognises(content)), None)


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
        """Leave out names that several benchmarks of a file share, if no ``label`` tells these apart.

        Each benchmark has the same number of repetitions, and they are of one level. Repeated results that
        are so are taken for repetitions, which is said where another file would have the same lines.

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
            if counts[name] > usual or any(_has_levels(self._values[key]) for key in keys):
                self.leave_out(LeftOut.AMBIGUOUS, sum(len(self._values.pop(key)) for key in keys))
            elif counts[name] > 1 and not (in_turn and len(benchmarks) > 1 and name not in self._returned):
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
        return FileResults(
            [
                Measurement(name, unit, tuple(values), labels, statistic, better)
                for (name, unit, labels, statistic, better), values in self._values.items()
            ],
            commit_of(commit) or self._first(_COMMIT_LABELS, commit_of, ""),
            self._moment(commit_time, _COMMIT_TIMES),
            self._moment(run_time, _RUN_TIMES),
            frozenset(self.remarks),
            dict(self.left_out),
        )

    def _first(self, names: Collection[str], read: Callable[[object], Value], none: Value) -> Value:
        return next((read(text) for name, text in self._of_run.items() if _spelled(name) in names), none)

    def _moment(self, value: object, names: Collection[str]) -> float:
        return moment_of(value) if value is not None else self._first(names, moment_of, math.nan)


def _has_levels(values: Sequence[float]) -> bool:
    """True if a quarter of values or more is beyond twice the others."""
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


def labels_of(document: object, prefix: str = "") -> dict[str, str]:
    """Return the texts, numbers and lists of an object as labels; those of inner objects as ``outer.name``.

    What is nested deeper than three objects is left out.

    >>> labels_of({"cpu": {"count": 8}, "args": ["-Xmx1g"], "load": None})
    {'cpu.count': '8', 'args': '-Xmx1g'}
    """
    labels: dict[str, str] = {}
    for name, value in document.items() if isinstance(document, dict) else ():
        if isinstance(value, dict):
            labels |= labels_of(value, f"{prefix}{name}.") if prefix.count(".") < 2 else {}
        elif isinstance(value, list) and value and not any(isinstance(item, dict | list) for item in value):
            labels[f"{prefix}{name}"] = _ADDRESS.sub("0x", " ".join(map(str, value)))
        elif isinstance(value, str | int | float) and value != "":
            labels[f"{prefix}{name}"] = _ADDRESS.sub("0x", str(value))
    return labels


def objects(values: object) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a list; an entry that is no object becomes an empty one."""
    for value in values if isinstance(values, list) else []:
        yield value if isinstance(value, dict) else {}


def json_object(line: str) -> Mapping[str, Any]:
    """Return the JSON object of a line, empty if it holds none."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


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


def part(document: object, name: str) -> Mapping[str, Any]:
    """Return an object within an object, empty if there is none."""
    member = document.get(name) if isinstance(document, dict) else None
    return member if isinstance(member, dict) else {}


def with_parameters(name: object, parameters: object) -> object:
    """Return a benchmark's name with its parameters as ``name[a=1,b=2]``."""
    if not (isinstance(name, str) and isinstance(parameters, dict) and parameters):
        return name
    return f"{name}[{','.join(f'{key}={value}' for key, value in sorted(parameters.items()))}]"


def commit_of(text: object) -> str:
    """Return the id of a commit within a text such as a file's name, empty if there is none.

    >>> commit_of("results/0f3c2a9-linux.json")
    '0f3c2a9'
    """
    # Digits alone are more often a date or the number of a build.
    return next((commit for commit in commits_of(text) if not commit.isdigit() or len(commit) >= 40), "")


def commits_of(text: object) -> list[str]:
    """Return all that may be ids of commits within a text, digits alone among them."""
    return COMMIT_ID.findall(text) if isinstance(text, str) else []


def moment_of(value: object) -> float:
    """Return epoch seconds of a number of seconds or milliseconds or of ISO 8601, NaN if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value) / 1e3 if value > 1e11 else float(value)
    try:
        return from_iso(value) if isinstance(value, str) else math.nan
    except InvalidMessage:
        return math.nan


def text_of(value: object) -> str:
    """Return a value that is a text, and an empty one for others."""
    return value if isinstance(value, str) else ""


def has_members(*names: str, **kinds: type) -> Callable[[ResultFile], bool]:
    """Return a function that recognises an object with these members, of these types."""

    def recognises(content: ResultFile) -> bool:
        document = content.document
        return (
            isinstance(document, dict)
            and all(name in document for name in names)
            and all(isinstance(document.get(name), kind) for name, kind in kinds.items())
        )

    return recognises
