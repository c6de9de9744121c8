"""Collapsed stacks: one line a stack, ``root;caller;leaf count`` (FlameGraph, py-spy's raw format)."""

from __future__ import annotations

import re

from agents.formats.base import Stack, StackSamples
from agents.formats.text import decode_text

MAX_LINE_COUNT = 2**40
"""Most samples on one line: what a profile message can hold for one stack."""

_COUNT = re.compile(r"([0-9]{1,13})(?:\.0*)?")  # bounded: Python refuses to convert thousands of digits


class CollapsedFormat:
    """The format of lines that are no other's."""

    name = "collapsed"
    content = "collapsed stacks (lines of root;caller;leaf count)"

    def recognises(self, data: bytes) -> bool:
        """Take whatever no other format takes."""
        return True

    def parse(self, data: bytes) -> StackSamples:
        """Read a file, see ``parse_collapsed``."""
        return parse_collapsed(data)


def parse_collapsed(data: bytes) -> StackSamples:
    """Read collapsed stacks; equal stacks are added up and stacks counted 0 times left out.

    UTF-8 and UTF-16 are distinguished by their byte order mark or by the NUL bytes of the latter. Lines may
    end in CR LF. Lines that start with ``#`` or ``//`` are comments. An invalid line is counted, never
    fatal: whether nothing but invalid lines is an error is for the caller to say.
    """
    stacks: dict[Stack, int] = {}
    frameless = invalid = 0
    first_invalid = ""
    for number, raw in enumerate(decode_text(data).split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith(("#", "//")):
            continue
        *head, tail = line.rsplit(maxsplit=1)
        match = _COUNT.fullmatch(tail)
        if not match or int(match[1]) > MAX_LINE_COUNT:
            invalid += 1
            shown = repr(line[:60]) if line[:60].isprintable() else "not text"
            first_invalid = first_invalid or f"line {number}: {shown}"
            continue
        count = int(match[1])
        stack = tuple(frame for frame in "".join(head).split(";") if frame.strip())
        if not stack:
            frameless += count
        elif count:
            stacks[stack] = stacks.get(stack, 0) + count
    return StackSamples(stacks, frameless, invalid, first_invalid)
