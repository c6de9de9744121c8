"""Profile files as messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import xxhash

from agents.profiles.formats import AUTO, StackSamples, count_samples
from agents.profiles.formats.base import missing, named_counts
from agents.profiles.formats.cpu import clock_of, counts_cpu, value_text
from agents.profiles.message import ProfileOrigin, build_profile, encode_within
from agents.profiles.profile_source import STDIN, begin_profile, named, opened_profile
from pipeline.files.listing import listed
from pipeline.messages.schema.inputs import MAX_COUNT
from pipeline.model import Outgoing
from pipeline.model.clock import to_iso
from pipeline.model.errors import ConfigError, file_errors
from pipeline.model.units import counted


@dataclass(frozen=True, slots=True)
class Imported:
    """The messages of one file."""

    path: Path
    messages: tuple[Outgoing, ...]
    parsed: StackSamples
    lost: int  # samples of stacks too large for a message

    def summary(self) -> str:
        """Say in one line what the file held and what was left out."""
        samples, stacks = self.parsed.samples - self.lost, len(self.parsed.stacks)
        text = f"{self.path}: {counted(samples, 'sample')} in {counted(stacks, 'stack')}"
        if not counts_cpu(self.parsed.measure):
            kind = "wall time" if clock_of(self.parsed.measure) else self.parsed.measure.type
            text += f", of {kind}, not of CPU"
        if self.parsed.left_out:
            text += f"; left out: {named_counts(self.parsed.left_out)}"
        if self.parsed.invalid:
            text += f"; {counted(self.parsed.invalid, 'invalid line')}, first {self.parsed.first_invalid}"
        if self.parsed.frameless:
            text += f"; {self.parsed.frameless} samples without frames left out"
        if self.lost:
            text += f"; {self.lost} samples of oversized stacks left out"
        return text


@dataclass(frozen=True, slots=True)
class Import:
    """How files are read: each is an interval of ``duration_s`` seconds of ``source``.

    With ``start`` (epoch seconds) the files follow one another from there; without, each ended when it was
    last written. Messages have at most ``max_bytes`` bytes. None may end after ``latest`` (epoch seconds):
    the pipeline takes nothing from the future.
    """

    source: ProfileOrigin
    start: float | None
    duration_s: float
    max_bytes: int
    format: str = AUTO
    latest: float = math.inf
    now: float = 0.0  # when standard input ended
    value: str = ""  # which of several values of a file
    period: float = 0.0  # weight of one sample, 0: as the file says


def read_files(paths: Sequence[Path], request: Import) -> list[Imported]:
    """Read profile files.

    Raises:
        ConfigError: a file cannot be read, is of no known format, holds no stack at all, or ends after
            the latest moment.
    """
    files = []
    for index, path in enumerate(paths):
        with file_errors(path):
            written = request.now if str(path) == STDIN else path.stat().st_mtime
        first, length_s = request.start, request.duration_s
        start = written - length_s if first is None else first + index * length_s
        if start + length_s > request.latest:
            where = path if first is None else "--start"
            raise ConfigError(f"{where}: would end at {to_iso(start + length_s)}, which is still to come")
        files.append(_read(path, request, start))
    return files


def profile_key(source: ProfileOrigin) -> str:
    """Return the key of a host's profiles."""
    return f"{source.service}/{source.host}"


def _read(path: Path, request: Import, start: float) -> Imported:
    content = xxhash.xxh3_128()
    with opened_profile(path, content.update) as source, named(path):
        held, reading = begin_profile(source, request.format, request.value, request.period)
        if len(reading.services) > 1:
            services = f"{len(reading.services)} services ({listed(reading.services)})"
            raise ConfigError(
                f"has profiles of {services}, and --service names one: send it to the gateway, which takes "
                f"them apart"
            )
        parsed = count_samples(reading)
        source.drain()
        _check(parsed, held, asked=bool(request.value))
    source_ = request.source
    end = start + request.duration_s
    profile_id = _identity(path, content.digest(), source_, start, end)
    profile = build_profile(parsed.stacks, source=source_, start=start, end=end, id=profile_id)
    parts, lost = encode_within(profile, request.max_bytes)
    messages = tuple(Outgoing("profiles", profile_key(source_), part.value) for part in parts)
    return Imported(path, messages, parsed, lost)


def _check(parsed: StackSamples, held: str, *, asked: bool) -> None:
    """Refuse a file without samples, without countable ones, or without CPU unless its value was asked for.

    What follows the wall's clock is taken where the file has nothing of CPU.
    """
    measure = parsed.measure
    if not parsed.stacks:
        raise ConfigError(missing(held, parsed.left_out, parsed.first_invalid, parsed.frameless))
    if not asked and not clock_of(measure):
        raise ConfigError(
            f"counts {value_text(measure)}, which is no CPU: --value {measure.type} takes it "
            f"all the same{f'; there are {named_counts(parsed.left_out)}' if parsed.left_out else ''}"
        )
    if not measure.per_sample:
        weights = f"{measure.unit} of {measure.type}" if measure.unit else f"{measure.type} without a unit"
        raise ConfigError(
            f"weights are {weights}, and how many a sample stands for is not said: give it by --period"
        )
    if parsed.samples > MAX_COUNT:
        raise ConfigError(f"{parsed.samples} samples, more than the {MAX_COUNT} of one interval")


def _identity(path: Path, content: bytes, source: ProfileOrigin, start: float, end: float) -> str:
    """Return a key that is equal when a file is imported again for the same host and interval."""
    labels = sorted(source.labels.items())
    origin = [path.name, source.host, start, end, source.release, labels]
    return xxhash.xxh3_128_hexdigest(orjson.dumps(origin) + content)
