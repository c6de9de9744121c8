"""Collapsed stacks: one line a stack, ``root;caller;leaf count`` (FlameGraph, py-spy's raw format)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from agents.profiles.formats.base import Invalid, Measure, Reading, Record, Sample, StackSamples
from agents.profiles.formats.source import HEAD_BYTES, ProfileSource
from agents.profiles.formats.tally import count_samples

MAX_LINE_COUNT = 2**40
"""Most samples on one line: what a profile message can hold for one stack."""

_COUNT = re.compile(r"([0-9]{1,13})(\.[0-9]{0,17})?")  # bounded: Python refuses thousands of digits


class CollapsedFormat:
    """Collapsed stacks: the format of files that no other format takes.

    Lines may end in CR LF. Lines that start with ``#`` or ``//`` are comments.
    """

    name = "collapsed"
    content = "collapsed stacks (lines of root;caller;leaf count)"

    def recognises(self, head: bytes) -> bool:
        """Take what no other format takes, unless lines that end in a number are the rare ones of it.

        Reports of other tools have such lines, too, and would pass for stacks. A file without any is taken:
        the error says then which lines are wrong.
        """
        whole = head if len(head) < HEAD_BYTES else head[: head.rfind(b"\n") + 1]
        kinds = Counter(type(record) for record in _records(ProfileSource.of(whole)))
        return not kinds[Sample] or kinds[Invalid] <= kinds[Sample]

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read one sample of each line; lines count one thing, whatever its name."""
        return Reading(Measure(), _records(source))


def parse_collapsed(data: bytes) -> StackSamples:
    """Read collapsed stacks that are in memory, with frames as they are spelt there."""
    return count_samples(CollapsedFormat().read(ProfileSource.of(data), ""), lines=True)


def _records(source: ProfileSource) -> Iterator[Record]:
    for number, raw in source.lines():
        line = raw.strip()
        if not line or line.startswith(("#", "//")):
            continue
        *head, tail = line.rsplit(maxsplit=1)
        match = _COUNT.fullmatch(tail)
        count = float(tail) if match and (match[2] or "").strip(".0") else int(match[1]) if match else -1
        if not 0 <= count <= MAX_LINE_COUNT:
            yield invalid_line(number, line)
            continue
        frames = head[0].split(";") if head else ()
        yield Sample(tuple([frame for frame in frames if frame and not frame.isspace()]), count)


def invalid_line(number: int, line: str) -> Invalid:
    """Return the record of a line that makes no sense."""
    shown = line[:60]
    return Invalid(f"line {number}: {repr(shown) if shown.isprintable() else 'not text'}")
