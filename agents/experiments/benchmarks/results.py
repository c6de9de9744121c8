"""Files of benchmark results: their content, and the registry of their formats.

A format is recognised by its content. A module registers a function that recognises and one that reads it;
JSON is parsed once for all formats.
"""

from __future__ import annotations

import json
import math
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from agents.experiments.benchmarks.units import Better
from pipeline.model.clock import from_iso
from pipeline.model.errors import ConfigError, InvalidMessage

COMMIT_ID = re.compile(r"(?:(?<![0-9a-zA-Z])|(?<=-g))(?:[0-9a-f]{64}|[0-9a-f]{7,40})(?![0-9a-zA-Z])")
"""Id of a commit, also as git describe writes it: v1.2-3-g0f3c2a9; in texts without UUIDs."""

UUID = re.compile(
    r"(?<![0-9a-zA-Z])(?:[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12})"
    r"(?![0-9a-zA-Z])"
)

_PROSE = {".md", ".markdown", ".rst", ".adoc", ".org", ".tex", ".html", ".htm", ".ipynb", ".patch", ".diff"}
_FENCES = ("```", "#!", "<!")

_MOST_BESIDE = 1024**2  # bytes of a file beside one of results

Labels = tuple[tuple[str, str], ...]
"""Names and values of labels, sorted by name."""


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
    """Results of one file; ``commit`` is empty and a time NaN if the file has none.

    ``interleaved`` are results of names that come again after others, with no package: repetitions of one
    benchmark in several runs, or benchmarks of several packages.
    """

    measurements: list[Measurement]
    commit: str = ""
    commit_time: float = math.nan  # epoch seconds at which the commit was made
    run_time: float = math.nan  # epoch seconds at which it was measured
    remarks: frozenset[Remark] = frozenset()
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)
    interleaved: Sequence[Measurement] = ()


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
    """Results of one file, and the commit that they belong to; ``str(path)`` if nothing says it.

    ``candidates``: ids in the file's name, if several may be the commit.
    """

    path: Path
    format: ResultFormat
    results: FileResults
    commit: str
    candidates: tuple[str, ...] = ()


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


def commit_of(text: object) -> str:
    """Return the id of a commit within a text such as a file's name, empty if there is none.

    >>> commit_of("results/0f3c2a9-linux.json")
    '0f3c2a9'
    """
    return next(iter(commits_of(text)), "")


def commits_of(text: object, *, digits: bool = False) -> list[str]:
    """Return all that may be ids of commits within a text.

    Args:
        text: Such as the name of a file.
        digits: Whether short ones of digits alone count: they are more often a date or the number of a build.
    """
    commits = COMMIT_ID.findall(UUID.sub("", text)) if isinstance(text, str) else []
    return [commit for commit in commits if digits or not commit.isdigit() or len(commit) >= 40]


def without_ids(text: str) -> str:
    """Return a text without ids of commits and UUIDs."""
    return COMMIT_ID.sub("", UUID.sub("", text))


def moment_of(value: object) -> float:
    """Return epoch seconds of a number of seconds or milliseconds or of ISO 8601, NaN if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value) / 1e3 if value > 1e11 else float(value)
    try:
        return from_iso(value) if isinstance(value, str) else math.nan
    except InvalidMessage:
        return math.nan


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
