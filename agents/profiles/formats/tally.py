"""Stacks of a profile, added up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agents.profiles.formats.base import (
    Format,
    Invalid,
    Reading,
    Record,
    Sample,
    Stack,
    StackSamples,
    read_profile,
)
from agents.profiles.formats.frames import without_line
from agents.profiles.formats.source import ProfileSource

MERGED_FRAMES = 5_000_000
"""Frames of different stacks that are held at a time while a profile is written, about."""

_STACK_FRAMES = 20  # frames that take as much memory as an empty stack


class LeftOutSamples:
    """Samples without frames and invalid records, counted as a profile is read."""

    def __init__(self) -> None:
        self.frameless = 0.0
        self.invalid = 0
        self.first_invalid = ""

    def samples(self, records: Iterable[Record]) -> Iterator[Sample]:
        """Yield the samples that have a stack and a weight."""
        for record in records:
            if isinstance(record, Invalid):
                self.invalid += 1
                self.first_invalid = self.first_invalid or record.where
            elif not record.stack:
                self.frameless += record.weight
            elif record.weight:
                yield record


def count_samples(reading: Reading, *, lines: bool = False) -> StackSamples:
    """Read a profile; equal stacks are added up and stacks counted 0 times left out.

    Weights in another unit than samples are divided by the period; where that is not known they stay as they
    are. Rounding neither makes nor loses samples: what one stack's count lacks is carried to the next.

    Args:
        reading: The profile.
        lines: Keep files and lines of frames, so that two lines of one function are two stacks.
    """
    tally = LeftOutSamples()
    totals: dict[Stack, float] = {}
    for stack, weight in tally.samples(reading.records):
        spelt = stack if lines else tuple(map(without_line, stack))
        totals[spelt] = totals.get(spelt, 0) + weight
    unit = reading.measure.per_sample or 1.0
    frameless = round(tally.frameless / unit)
    return StackSamples(
        _rounded(totals, unit),
        frameless,
        tally.invalid,
        tally.first_invalid,
        reading.measure,
        reading.left_out,
    )


def parse(format_: Format, data: bytes, value: str = "") -> StackSamples:
    """Read a file that is in memory.

    Raises:
        ConfigError: the file has no such value.
    """
    return count_samples(read_profile(format_, ProfileSource.of(data), value))


def merge_samples(samples: Iterable[Sample], limit: int = MERGED_FRAMES) -> Iterator[Sample]:
    """Add up equal stacks, of which about ``limit`` frames are held at most: beyond, some come again."""
    totals: dict[Stack, float] = {}
    held = 0
    for stack, weight in samples:
        held += 0 if stack in totals else _STACK_FRAMES + len(stack)
        totals[stack] = totals.get(stack, 0) + weight
        if held >= limit:
            yield from map(Sample._make, totals.items())
            totals.clear()
            held = 0
    yield from map(Sample._make, totals.items())


def _rounded(totals: Mapping[Stack, float], unit: float) -> dict[Stack, int]:
    counts, carried = {}, 0.0
    for stack, weight in totals.items():
        if unit == 1 and not carried and isinstance(weight, int):
            counts[stack] = weight
            continue
        exact = weight / unit + carried
        count = round(exact)
        carried = exact - count
        if count:
            counts[stack] = count
    return counts
