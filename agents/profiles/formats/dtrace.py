"""The output of DTrace's ``@[ustack()] = count()``: frames, leaf first, each stack ended by its count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from agents.profiles.formats.base import Reading, Record, Sample, unit_measure
from agents.profiles.formats.collapsed import MAX_LINE_COUNT, invalid_line
from agents.profiles.formats.source import ProfileSource, head_text, whole_lines

MAX_DEPTH = 10_000
"""Most frames of one stack: many times what DTrace unwinds."""

_LONGEST_HEADER = 20  # lines before the first stack
_LEAST_VALID = 0.9  # share of the lines from there on that have to be frames or counts

_COUNT = re.compile(r"\s*([0-9]{1,13})\s*")
_PROBE = re.compile(r"\s*(?:CPU\s+ID\s+FUNCTION:NAME|\d+\s+\d+\s+\S*:\S*)\s*")
_FRAME = re.compile(r"\s+(?:[^\s`]+`\S.*|0x[0-9a-fA-F]+\s*)")
_OFFSET = re.compile(r"\+0x[0-9a-fA-F]+$")
_JAVA_INLINED = "->"


class DtraceFormat:
    """Stacks of ``module`function+offset`` lines; frames keep the module."""

    name = "dtrace"
    content = "stacks of DTrace (frames, then a count)"

    def recognises(self, head: bytes) -> bool:
        """Take a file that has a stack with its count, and few lines of anything else after its header."""
        lines = head_text(whole_lines(head)).split("\n")
        first = next((number for number, line in enumerate(lines) if _FRAME.fullmatch(line)), len(lines))
        stacks = [line for line in lines[first:] if line.strip() and not _PROBE.fullmatch(line)]
        valid = [bool(_FRAME.fullmatch(line) or _COUNT.fullmatch(line)) for line in stacks]
        counted = any(
            _FRAME.fullmatch(line) and _COUNT.fullmatch(following) for line, following in pairwise(stacks)
        )
        return counted and first <= _LONGEST_HEADER and sum(valid) >= _LEAST_VALID * len(valid)

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read one sample of each stack; stacks count samples, or the unit ``value``."""
        return Reading(unit_measure(value), _records(source))


def _records(source: ProfileSource) -> Iterator[Record]:
    frames: list[str] = []
    first, header = 1, True
    for number, line in source.lines():
        text = line.strip()
        if not text:
            header = False
        elif header and not frames and not _FRAME.fullmatch(line) or _PROBE.fullmatch(line):
            continue
        elif (count := _COUNT.fullmatch(line)) and int(count[1]) <= MAX_LINE_COUNT:
            yield Sample(
                tuple(frame for line_frame in reversed(frames) for frame in _frame(line_frame)), int(count[1])
            )
            frames, header = [], False
        elif len(frames) == MAX_DEPTH:
            yield invalid_line(first, text)
            frames = []
        else:
            first = number if not frames else first
            frames.append(text)
    if frames:
        yield invalid_line(first, frames[0])


def _frame(text: str) -> tuple[str, ...]:
    """Return a frame without its offset; Java's inlined functions stand with the one that they are in."""
    name = _OFFSET.sub("", text) or text
    outer, *inlined = name.split(_JAVA_INLINED)
    if not outer or not all(inlined):
        return (name,)
    return (outer, *(f"{function}_[i]" for function in inlined))
