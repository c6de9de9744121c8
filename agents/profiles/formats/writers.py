"""Formats of profile files that are written: each a function of samples, what they measure, and a file."""

from __future__ import annotations

import gzip
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import IO, Any

import orjson

from agents.profiles.formats.base import Measure, Sample
from agents.profiles.formats.frames import split_frame, split_stack
from agents.profiles.formats.pprof import PPROF
from pipeline.model.errors import ConfigError

Writer = Callable[[Iterable[Sample], Measure, IO[bytes]], None]
"""Writes samples as they come; what is kept of them is one number each, and every frame once."""

MAX_WRITTEN = 2**63 - 1025
"""Largest number that is written: the largest float within 64 bits."""

_BATCH = 1000
_CONTROLS = re.compile(r"[\r\n]+")
_NANOSECONDS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
_SPEEDSCOPE_UNITS = (*_NANOSECONDS, "bytes")
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_collapsed(samples: Iterable[Sample], measure: Measure, out: IO[bytes]) -> None:
    """Write one line a stack; weights become samples, or without a period nanoseconds or their own unit.

    Semicolons in frames become colons, since a frame ends at one, but for those of the JVM's descriptors.
    """
    factor = 1 / measure.per_sample if measure.per_sample else _NANOSECONDS.get(measure.unit, 1)
    for stack, count in _whole(samples, factor):
        line = ";".join(":".join(split_stack(frame)) for frame in stack)
        out.write(f"{_CONTROLS.sub(' ', line)} {count}\n".encode(errors="replace"))


def write_pprof(samples: Iterable[Sample], measure: Measure, out: IO[bytes]) -> None:
    """Write a compressed protocol buffer; time is in nanoseconds, beside samples if its period is known."""
    factor = _NANOSECONDS.get(measure.unit, 1)
    unit = "nanoseconds" if measure.unit in _NANOSECONDS else measure.unit
    counted = unit != "count" and measure.period > 0
    tables = _PprofTables()
    head = PPROF["Profile"]()
    if counted:
        head.sample_type.add(type=tables.string("samples"), unit=tables.string("count"))
    head.sample_type.add(type=tables.string(measure.type), unit=tables.string(unit))
    if measure.period:
        head.period_type.type, head.period_type.unit = tables.string(measure.type), tables.string(unit)
        head.period = _fitting(measure.period * factor)
    # Neither a name nor a time in it: equal profiles are equal bytes.
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=6, mtime=0) as packed:
        packed.write(_merged(head, tables.take()))
        counts = _counts(measure.per_sample)
        whole = _whole(samples, factor)
        while batch := list(islice(whole, _BATCH)):
            part = PPROF["Profile"]()
            for stack, weight in batch:
                locations = [tables.location(frame) for frame in reversed(stack)]
                values = [counts(weight / factor), weight] if counted else [weight]
                part.sample.add(location_id=locations, value=values)
            packed.write(_merged(part, tables.take()))


def write_speedscope(samples: Iterable[Sample], measure: Measure, out: IO[bytes]) -> None:
    """Write one sampled profile; the format has no period, and few units: weights of others are samples."""
    unit = measure.unit if measure.unit in _SPEEDSCOPE_UNITS else "none"
    factor = 1 / measure.per_sample if unit == "none" and measure.per_sample else 1
    head = {"$schema": _SCHEMA, "exporter": "smidgen", "name": measure.type, "activeProfileIndex": 0}
    profile = {"type": "sampled", "name": measure.type, "unit": unit, "startValue": 0}
    frames: dict[str, int] = {}
    weights = array("d")
    out.write(orjson.dumps(head)[:-1] + b',"profiles":[' + orjson.dumps(profile)[:-1] + b',"samples":[')
    for stack, weight in samples:
        indexes = [frames.setdefault(frame, len(frames)) for frame in stack]
        out.write((b"," if weights else b"") + orjson.dumps(indexes))
        weights.append(weight * factor)
    out.write(b'],"weights":[')
    for number, weight in enumerate(weights):
        out.write((b"," if number else b"") + orjson.dumps(_number(weight)))
    out.write(b'],"endValue":' + orjson.dumps(_number(sum(weights, 0.0))) + b'}],"shared":{"frames":[')
    for frame, number in frames.items():
        out.write((b"," if number else b"") + orjson.dumps(_speedscope_frame(frame)))
    out.write(b"]}}\n")


WRITERS: Mapping[str, Writer] = {
    "collapsed": write_collapsed,
    "pprof": write_pprof,
    "speedscope": write_speedscope,
}
_ENDINGS = {".json": "speedscope", ".pb": "pprof", ".gz": "pprof", ".pprof": "pprof", ".prof": "pprof"}


def writer_for(name: str, path: str) -> Writer:
    """Return the writer of a format, or without a name the one for how a path ends; else collapsed stacks.

    Raises:
        ConfigError: there is no such format.
    """
    name = name or next(
        (format_ for ending, format_ in _ENDINGS.items() if path.endswith(ending)), "collapsed"
    )
    if name not in WRITERS:
        raise ConfigError(f"--to: should be one of {', '.join(WRITERS)}, not {name!r}")
    return WRITERS[name]


class _PprofTables:
    """Strings, functions and locations, each written once: those that are new come with each part."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[str, int] = {}
        self._new = PPROF["Profile"]()
        self.string("")

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings)
            self._new.string_table.append(text.encode(errors="replace"))
        return self._strings[text]

    def location(self, frame: str) -> int:
        if frame not in self._locations:
            name, file, line = split_frame(frame)
            number = self._locations[frame] = len(self._locations) + 1
            self._new.location.add(id=number).line.add(function_id=self._function(name, file), line=line)
        return self._locations[frame]

    def take(self) -> Any:
        """Return what is new since the last call."""
        new, self._new = self._new, PPROF["Profile"]()
        return new

    def _function(self, name: str, file: str) -> int:
        if (name, file) not in self._functions:
            number = self._functions[name, file] = len(self._functions) + 1
            self._new.function.add(id=number, name=self.string(name), filename=self.string(file))
        return self._functions[name, file]


def _merged(part: Any, tables: Any) -> bytes:
    """Return two parts of one profile: messages that follow one another are one message."""
    return bytes(part.SerializeToString() + tables.SerializeToString())


def _whole(samples: Iterable[Sample], factor: float) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield stacks with whole numbers; what rounding takes from one is given to the next."""
    carried = 0.0
    for stack, weight in samples:
        if factor == 1 and not carried and isinstance(weight, int):
            yield stack, _fitting(weight)
            continue
        exact = weight * factor + carried
        count = _fitting(exact)
        carried = exact - count
        if count > 0:
            yield stack, count


def _counts(period: float) -> Callable[[float], int]:
    carried = 0.0

    def count(weight: float) -> int:
        nonlocal carried
        exact = weight / (period or 1) + carried
        carried = exact - _fitting(exact)
        return _fitting(exact)

    return count


def _fitting(weight: float) -> int:
    """Return the nearest whole number.

    Raises:
        ConfigError: it has more than 64 bits, which no real profile reaches.
    """
    if weight > MAX_WRITTEN:
        raise ConfigError(f"a weight of {weight:.3g} does not fit 64 bits")
    return round(weight)


def _number(weight: float) -> float:
    return int(weight) if weight.is_integer() else weight


def _speedscope_frame(frame: str) -> dict[str, str | int]:
    name, file, line = split_frame(frame)
    fields: dict[str, str | int] = {"name": name.encode(errors="replace").decode()}
    if file:
        fields["file"] = file.encode(errors="replace").decode()
    if line:
        fields["line"] = line
    return fields
