"""Collapsed stacks: one line a stack, ``root;caller;leaf count`` (FlameGraph, py-spy's raw format)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agents.profiles.formats.base import (
    Invalid,
    Reading,
    Record,
    Sample,
    Stack,
    StackSamples,
    mostly_samples,
    unit_measure,
)
from agents.profiles.formats.frame_names import is_assigned, is_frame_name
from agents.profiles.formats.frames import split_stack
from agents.profiles.formats.source import ProfileSource, head_text, whole_lines
from agents.profiles.formats.tally import count_samples

MAX_LINE_COUNT = 2**40
"""Most samples on one line: what a profile message can hold for one stack."""

_LEAST_CALLED = 0.1
"""Share of the first lines that have to be stacks with a caller."""

_FEW = 4
"""Lines below which half of them have to be stacks with a caller, of names alone."""

_MOST_ROOTS = 0.9
"""Share of the first stacks with a caller above which roots show nothing: those of a log's lines differ."""

_MANY = 20
"""Stacks with a caller that have to share roots, or else to be of names alone."""

_LEAST_NAMES = 0.7
"""Share of frames that have to be names where a file shows little else."""

_LEAST_CODE = 0.4
"""Share of frames that hold values from which a text is none of stacks."""

_COMMENT = re.compile(r"(?:#|//)(?:\s|$)")
_COUNT = re.compile(r"([0-9]{1,13})(\.[0-9]{0,40})?")  # bounded: Python refuses thousands of digits
_LOCATED = re.compile(r" \([^()]*\)$")


class CollapsedFormat:
    """Collapsed stacks.

    Lines may end in CR LF. ``#`` and ``//`` begin comments where a space or nothing follows: Ruby's singleton
    classes are called ``#<Class:Order>``, and some roots ``//host``.
    """

    name = "collapsed"
    content = "collapsed stacks (lines of root;caller;leaf count)"

    def recognises(self, head: bytes) -> bool:
        """Take a file nearly all of whose lines are stacks, enough of them with a caller.

        Reports of other tools have lines that end in a number, too, and would pass for stacks of one frame,
        lines of logs for stacks of a root each. Where a file is short, or its roots all differ, frames have
        to be names: words, numbers and code between semicolons are none. A file without any line but
        comments is taken: the error says then what it lacks.
        """
        lines = whole_lines(head)
        if not lines and head:
            return _may_be_long(head_text(head))
        records = list(_records(ProfileSource.of(lines)))
        if not records:
            return b"\0" not in lines
        stacks = [record.stack for record in records if isinstance(record, Sample)]
        called = [stack for stack in stacks if len(stack) > 1 and not _is_prose(stack)]
        if not called or not mostly_samples(records) or _are_code(called):
            return False
        if len(records) < _FEW:
            return len(called) >= len(records) / 2 and _are_names(called)
        roots = {stack[0] for stack in called}
        if len(called) >= _MANY and len(roots) > _MOST_ROOTS * len(called) and not _are_names(called):
            return False
        return len(called) >= _LEAST_CALLED * len(stacks)

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read one sample of each line; lines count samples, or the unit ``value``."""
        return Reading(unit_measure(value), _records(source))


def parse_collapsed(data: bytes) -> StackSamples:
    """Read collapsed stacks that are in memory, with frames as they are spelt there."""
    return count_samples(CollapsedFormat().read(ProfileSource.of(data), ""), lines=True)


def _records(source: ProfileSource) -> Iterator[Record]:
    for number, raw in source.lines():
        line = raw.strip()
        if not line or _COMMENT.match(line) and ";" not in line:
            continue
        if _COMMENT.match(line):  # perhaps a stack whose root is so called: left out, but not silently
            yield invalid_line(number, line)
            continue
        *head, tail = line.rsplit(maxsplit=1)
        match = _COUNT.fullmatch(tail)
        count = float(tail) if match and (match[2] or "").strip(".0") else int(match[1]) if match else -1
        if not 0 <= count <= MAX_LINE_COUNT:
            yield invalid_line(number, line)
            continue
        frames = split_stack(head[0]) if head else ()
        yield Sample(tuple([frame for frame in frames if frame and not frame.isspace()]), count)


def _is_prose(stack: Stack) -> bool:
    """Return whether spaces follow semicolons, as they do in SQL, headers and sentences."""
    return all(frame[0].isspace() for frame in stack[1:])


def _are_code(stacks: Sequence[Stack]) -> bool:
    """Return whether many frames hold a value or half a block, as code, settings, queries and labels do."""
    frames = [frame for stack in stacks for frame in stack]
    code = [
        frame
        for frame in frames
        if not _LOCATED.search(frame) and (frame.count("{") != frame.count("}") or is_assigned(frame))
    ]
    return len(code) >= _LEAST_CODE * len(frames)


def _are_names(stacks: Sequence[Stack]) -> bool:
    """Return whether seven of ten frames are names."""
    frames = [frame for stack in stacks for frame in stack]
    return sum(map(is_frame_name, frames)) >= _LEAST_NAMES * len(frames)


def _may_be_long(text: str) -> bool:
    """Return whether a line that is longer than a file's beginning has frames, and signs of nothing else."""
    return ";" in text and "\0" not in text and text.lstrip()[:1] not in ("{", "[", "<")


def invalid_line(number: int, line: str) -> Invalid:
    """Return the record of a line that makes no sense."""
    shown = line[:60]
    return Invalid(f"line {number}: {repr(shown) if shown.isprintable() else 'not text'}")
