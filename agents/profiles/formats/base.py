"""Profile files: the interface of a format, and the registry of formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import NamedTuple, Protocol

from agents.profiles.formats.foreign import guess_foreign, name_foreign
from agents.profiles.formats.source import Damaged, ProfileSource, head_text, whole_lines
from pipeline.model.errors import ConfigError

AUTO = "auto"
"""Stands for the first format that recognises a file."""

MAX_WEIGHT = 2**62
"""Largest weight of one sample: sums of two still fit 64 bits."""

MAX_DEPTH = 100_000
"""Most frames of a stack that a table spells out: some kilobytes may stand for any number of frames."""

TIME_UNITS: Mapping[str, float] = {
    "nanoseconds": 1e9,
    "microseconds": 1e6,
    "milliseconds": 1e3,
    "seconds": 1.0,
}
"""Unit of time → how many of it are a second."""

_UNIT_NAMES: Mapping[str, str] = {
    "ns": "nanoseconds",
    "us": "microseconds",
    "µs": "microseconds",
    "μs": "microseconds",  # the Greek one, not the sign of micro
    "ms": "milliseconds",
    "s": "seconds",
    "sec": "seconds",
    **{unit.removesuffix("s"): unit for unit in TIME_UNITS},
    **{unit: unit for unit in TIME_UNITS},
}
"""Spelling of a unit of time → its name here."""

_COUNT_UNITS = ("count", "counts", "sample", "samples")
"""Units of values that count samples, and types of values that need no unit."""

_LEAST_VALID = 0.9
"""Share of the first records that have to be samples."""

_STRAY = 2
"""Records that are no samples in a file of few, if as many are."""

_GENERAL = "collapsed"
"""Format that every line of stacks is of: it gives way to those that say more of a line."""

Stack = tuple[str, ...]
"""Frames, root first, each as ``agents.profiles.formats.frames`` spells it."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Measure of a profile's weights.

    ``unit`` is ``count``, ``nanoseconds``, ``microseconds``, ``milliseconds``, ``seconds`` or ``bytes``, or
    what the file says; ``period`` is the weight of one sample in that unit, 0 where it is not known.
    """

    type: str = "samples"
    unit: str = "count"
    period: float = 0.0
    period_type: str = field(default="", compare=False)  # what the sampler's period is of, as the file says

    @property
    def per_sample(self) -> float:
        """The weight of one sample; 0 where weights cannot be converted to samples."""
        return 1.0 if self.unit == "count" else self.period


class Sample(NamedTuple):
    """One sample, or several of one stack; without frames if the stack is empty."""

    stack: Stack
    weight: float


class Invalid(NamedTuple):
    """A line or record that holds no stack with its weight: where and what it is."""

    where: str


Record = Sample | Invalid


@dataclass(frozen=True, slots=True)
class Recorded:
    """When and how a profile was sampled, as far as the file says it; 0 is not known."""

    start: float = 0.0  # epoch seconds
    duration_s: float = 0.0
    rate_hz: float = 0.0  # samples a second and CPU


@dataclass(frozen=True, slots=True)
class Reading:
    """A profile that is being read: its records come as the file is read, once."""

    measure: Measure
    records: Iterator[Record]
    recorded: Recorded = Recorded()
    left_out: Counter[str] = field(default_factory=Counter)  # other values → samples, once all is read
    services: tuple[str, ...] = ()  # services that the file names


@dataclass(frozen=True, slots=True)
class StackSamples:
    """The stacks of a file with their samples, and what was left out."""

    stacks: Mapping[Stack, int]
    frameless: int = 0  # samples of threads that had no frame
    invalid: int = 0  # lines or records that hold no stack with its count
    first_invalid: str = ""  # where and what the first of them is
    measure: Measure = field(default_factory=Measure)
    left_out: Mapping[str, int] = field(default_factory=dict)  # other values or events → samples of them

    @property
    def samples(self) -> int:
        """All samples that have a stack."""
        return sum(self.stacks.values())


class Format(Protocol):
    """A format of profile files. Nothing in a file is fatal: what makes no sense is counted as invalid."""

    name: str
    content: str
    """Name of a file's content, for the message about an empty file."""

    def recognises(self, head: bytes) -> bool:
        """Return whether a file is of this format, by all of its first bytes (``ProfileSource.head``)."""

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Begin to read a file; ``value`` names what to count where a file has several, empty: the usual.

        Raises:
            ConfigError: the file has no such value; the message names those that it has.
            Damaged: the file cannot be read at all. From the records it is raised where they end.
        """


_registry: dict[str, Format] = {}


def register(format_: Format) -> None:
    """Add a format; ``auto`` asks those that were added later first."""
    _registry[format_.name] = format_


def format_names() -> tuple[str, ...]:
    """Return the names of all formats, ``auto`` first."""
    return (AUTO, *_registry)


def find_format(name: str, head: bytes) -> Format:
    """Return a format by its name, for ``auto`` the one that recognises a file by its first bytes.

    Raises:
        ConfigError: there is no such format, or none or several that recognise the file.
    """
    if name == AUTO:
        if about := name_foreign(head):
            raise ConfigError(f"is {about}")
        takers = [format_ for format_ in reversed(_registry.values()) if format_.recognises(head)]
        if len(takers) > 1 and takers[-1].name == _GENERAL:  # whose lines other formats have, too
            takers.pop()
        if len(takers) == 1:
            return takers[0]
        if takers:
            names = " and ".join(taker.name for taker in takers)
            raise ConfigError(f"may be of the formats {names}: --format says which")
        if about := guess_foreign(head_text(whole_lines(head))):
            raise ConfigError(f"is of no format that is known here, but seems to be {about}")
        names = ", ".join(_registry)
        raise ConfigError(f"is of no format that is known here: {names}{_likeliest(head)}")
    if name not in _registry:
        raise ConfigError(f"--format: should be one of {', '.join(format_names())}, not {name!r}")
    return _registry[name]


def read_profile(format_: Format, source: ProfileSource, value: str = "") -> Reading:
    """Read a file; where it is cut or damaged, the last record is an invalid one.

    Raises:
        ConfigError: the file has no such value.
    """
    try:
        reading = format_.read(source, value)
    except Damaged as damage:
        return Reading(Measure(), iter((Invalid(str(damage)),)))
    return replace(reading, records=_until_damage(reading.records))


def unit_name(text: str) -> str:
    """Return a unit as it is spelt here: ``nanoseconds`` of ``ns``; one that is no time as it is."""
    return _UNIT_NAMES.get(text.lower(), text)


def value_unit(type_: str, unit: str) -> str:
    """Return the unit of a type of values as it is spelt here: ``count`` of samples, whatever it is called.

    Empty where a type that may be time or counts has none.
    """
    is_count = unit.lower() in _COUNT_UNITS or (not unit and type_.lower() in (*_COUNT_UNITS, ""))
    return "count" if is_count else unit_name(unit)


def unit_measure(value: str) -> Measure:
    """Return what lines count that do not say it: samples, or ``value``, a unit of time or bytes.

    Raises:
        ConfigError: it is no such unit.
    """
    unit = choose_value(("samples", *TIME_UNITS, "bytes"), unit_name(value), "samples")
    if unit == "samples":
        return Measure()
    return Measure("weight" if unit in TIME_UNITS else unit, unit)


def converted(weight: float, unit: str, wanted: str) -> float:
    """Return a weight in another unit; 0 if one of two units is no time."""
    if unit == wanted:
        return weight
    if unit not in TIME_UNITS or wanted not in TIME_UNITS:
        return 0.0
    return weight / TIME_UNITS[unit] * TIME_UNITS[wanted]


def named_counts(counts: Mapping[str, int]) -> str:
    """Return names with their counts as one text, the largest first."""
    largest = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{count} {name}" for name, count in largest)


def missing(content: str, left_out: Mapping[str, int], first_invalid: str, frameless: float = 0) -> str:
    """Return in one line what a file lacks, and what it has instead."""
    others = [named_counts(left_out), f"{frameless:.15g} samples without frames" if frameless else ""]
    instead = ", ".join(filter(None, others))
    instead = f"there are {instead}" if instead else ""
    return "; ".join(filter(None, (f"has no {content}", instead, first_invalid)))


def choose_value(names: Iterable[str], wanted: str, usual: str) -> str:
    """Return which of a file's values to count.

    Raises:
        ConfigError: the wanted one is none of them.
    """
    available = tuple(dict.fromkeys(names))
    if wanted and wanted not in available:
        raise ConfigError(f"has no value {wanted!r}: there are {', '.join(available) or 'none'}")
    return wanted or usual


def joined(locations: Sequence[Stack | None]) -> Stack | None:
    """Return the frames of a stack, root first; None if they are too many, or a location is not known.

    Args:
        locations: The frames of each, from the leaf on, of a location the inlined one first.
    """
    if None in locations:
        return None
    frames = tuple(islice(chain.from_iterable(frames or () for frames in locations), MAX_DEPTH + 1))
    return frames[::-1] if len(frames) <= MAX_DEPTH else None


def mostly_samples(records: Sequence[Record]) -> bool:
    """Return whether the records of a file's beginning show its format: nearly all of them are samples."""
    samples = sum(isinstance(record, Sample) for record in records)
    invalid = len(records) - samples
    return samples > 0 and invalid <= max((1 - _LEAST_VALID) * len(records), min(_STRAY, samples))


def _likeliest(head: bytes) -> str:
    """Return the end of an error about a text: the format of which most records are stacks with a caller."""
    if b"\0" in head:
        return ""
    shares: dict[str, tuple[int, int]] = {}
    for name, format_ in _registry.items():
        try:
            records = list(read_profile(format_, ProfileSource.of(whole_lines(head))).records)
        except ConfigError:
            continue
        stacks = sum(isinstance(record, Sample) and len(record.stack) > 1 for record in records)
        shares[name] = (stacks, len(records))
    name = max(shares, key=lambda name: shares[name][0] / max(shares[name][1], 1))
    stacks, total = shares[name]
    if not stacks:
        return ""
    share = f"{stacks} of its first {total} records are stacks"
    return f"; the likeliest is {name}, as which {share}: if it is, name the format"


def _until_damage(records: Iterator[Record]) -> Iterator[Record]:
    try:
        yield from records
    except Damaged as damage:
        yield Invalid(str(damage))
