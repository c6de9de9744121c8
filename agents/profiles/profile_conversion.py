"""Conversion of a profile file into another format, as it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from agents.profiles.formats import AUTO, Measure, ProfileSource, Sample
from agents.profiles.formats.base import missing, named_counts
from agents.profiles.formats.cpu import samples_text
from agents.profiles.formats.tally import LeftOutSamples, merge_samples
from agents.profiles.formats.writers import Writer
from agents.profiles.profile_source import begin_profile
from pipeline.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Conversion:
    """Options of reading a file, and the writer."""

    writer: Writer
    format: str = AUTO
    value: str = ""  # which of several values
    period: float = 0.0  # weight of one sample, 0: as the file says


@dataclass(frozen=True, slots=True)
class Converted:
    """Samples written and left out."""

    measure: Measure
    weight: float
    frameless: float
    invalid: int
    first_invalid: str
    left_out: Mapping[str, int] = field(default_factory=dict)  # other values or events → samples of them

    def summary(self, path: Path) -> str:
        """Say in one line what the file held and what was left out."""
        text = f"{path}: {self.weight:.15g} {samples_text(self.measure)}"
        if self.invalid:
            text += f"; {self.invalid} invalid records left out, first {self.first_invalid}"
        if self.left_out:
            text += f"; left out: {named_counts(self.left_out)}"
        if self.frameless:
            text += f"; {self.frameless:.15g} without frames left out"
        return text


def convert_profile(source: ProfileSource, out: IO[bytes], request: Conversion) -> Converted:
    """Read a profile and write it: stacks, weights with their unit and period, files and lines.

    Memory is bounded for formats that are read by line or chunk: every frame is kept once, and stacks are
    added up as far as they fit.

    Raises:
        ConfigError: the file is of no known format, has no such value, or holds no stack.
    """
    content, reading = begin_profile(source, request.format, request.value, request.period)
    tally = LeftOutSamples()
    total = [0.0]

    def summed() -> Iterator[Sample]:
        for sample in tally.samples(reading.records):
            total[0] += sample.weight
            yield sample

    request.writer(merge_samples(summed()), reading.measure, out)
    if not total[0]:
        raise ConfigError(missing(content, reading.left_out, tally.first_invalid, tally.frameless))
    return Converted(
        reading.measure, total[0], tally.frameless, tally.invalid, tally.first_invalid, reading.left_out
    )
