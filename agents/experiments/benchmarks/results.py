"""Files of benchmark results: their content, and the registry of their formats.

A format is recognised by its content. A module registers a function that recognises and one that reads it;
JSON is parsed once for all formats.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pipeline.model.clock import from_iso
from pipeline.model.errors import ConfigError, InvalidMessage

_COMMIT = re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{7,64}(?![0-9a-zA-Z])")


SIZES = (1e-100, 1e100)
"""The smallest and the largest value that is read: squares of others underflow or overflow."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Repetitions of one benchmark at one commit, in a unit such as ns, ops/s or B."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def more_is_better(self) -> bool:
        """True if the unit is a rate, such as ops/s or MB/s; for times and sizes, less is better."""
        return self.unit.endswith(("/s", "/ms", "/us", "/ns", "/min"))


@dataclass(frozen=True, slots=True)
class FileResults:
    """Results of one file; ``commit`` is empty and ``time`` NaN if the file has none."""

    measurements: list[Measurement]
    commit: str = ""
    time: float = math.nan  # epoch seconds
    invalid: int = 0  # number of entries without a measurement


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
            ConfigError: it is no UTF-8.
        """
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: not UTF-8 text") from None
        return cls(path, text, _document(text))


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


_registry: dict[str, ResultFormat] = {}


def register(format_: ResultFormat) -> None:
    """Add a format; if several recognise a file, the one added first reads it."""
    _registry[format_.name] = format_


def format_names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(_registry)


def find_format(content: ResultFile) -> ResultFormat | None:
    """Return the format of a file."""
    return next((format_ for format_ in _registry.values() if format_.recognises(content)), None)


@dataclass(slots=True)
class Entries:
    """Collects valid measurements, and counts the other entries: files are not trusted."""

    measurements: list[Measurement] = field(default_factory=list)
    invalid: int = 0

    def add(self, name: object, unit: object, values: object) -> None:
        """Take an entry if it has a name and numbers, all of them 0 or within ``SIZES``."""
        numbers = values if isinstance(values, Sequence) and not isinstance(values, str) else [values]
        floats = [
            float(number)
            for number in numbers
            if isinstance(number, int | float) and not isinstance(number, bool)
        ]
        fits = all(number == 0 or SIZES[0] <= number <= SIZES[1] for number in floats)
        usable = len(floats) == len(numbers) > 0 and fits
        if isinstance(name, str) and name and usable:
            self.measurements.append(Measurement(name, unit if isinstance(unit, str) else "", tuple(floats)))
        else:
            self.invalid += 1

    def results(self, commit: object = "", time: object = "") -> FileResults:
        """Return the results that were collected."""
        return FileResults(self.measurements, commit_of(commit), moment_of(time), self.invalid)


def objects(values: object) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a list; an entry that is no object becomes an empty one."""
    for value in values if isinstance(values, list) else []:
        yield value if isinstance(value, dict) else {}


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
    return _COMMIT.findall(text) if isinstance(text, str) else []


def moment_of(value: object) -> float:
    """Return epoch seconds of a number of seconds or milliseconds or of ISO 8601, NaN if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value) / 1e3 if value > 1e11 else float(value)
    try:
        return from_iso(value) if isinstance(value, str) else math.nan
    except InvalidMessage:
        return math.nan
