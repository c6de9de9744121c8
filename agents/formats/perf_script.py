"""The output of ``perf script``: one event after the other, each a header line and its frames, leaf first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from agents.formats.base import Stack, StackSamples
from agents.formats.text import decode_text

_HEADER = re.compile(
    r"(?P<command>\S.*?)\s+-?\d+(?:/-?\d+)?\s+"  # a command may hold spaces; its pid or pid/tid
    r"(?:\[\d+\]\s+)?(?:\S{4,6}\s+)?"  # CPU, flags
    r"(?:\d+\.\d+:\s*(?P<event>.*)|(?:\d+\s+)?[\w:/-]+:\s*)"  # time, left out by some
)
_FRAME = re.compile(r"\s+(?P<address>[0-9a-f]+)\s+(?P<symbol>.*?)\s*\((?P<object>[^()]*(?:\([^()]*\))?)\)\s*")
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_SINGLE = re.compile(r".*?:\s+(?P<frame>[0-9a-f]+\s+.*\(.*\))\s*")  # an event's only frame, on its own line
_JIT = re.compile(r"(?:.*/)?(?:perf-\d+\.map|jitted-\d+-\d+\.so)")
_KERNEL = re.compile(r"\[(?:kernel|guest\.kernel|unknown\.kernel)\b.*|.*\.ko(?:\.\w+)?|\[\w+\]")
_PYTHON = re.compile(r"py::(?P<name>.*?):(?P<path>.*)", re.DOTALL)
_NOWHERE = ("", "[unknown]", "inlined")


class PerfScriptFormat:
    """Events of Linux perf, as text."""

    name = "perf"
    content = "events of perf script (a header line, then frames)"

    def recognises(self, data: bytes) -> bool:
        """Take a file whose first lines have an event with a frame."""
        lines = decode_text(data[:65_536]).split("\n")
        return any(
            _HEADER.fullmatch(line) and (_SINGLE.fullmatch(line) or _FRAME.fullmatch(following))
            for line, following in zip(lines, [*lines[1:], ""], strict=True)
        )

    def parse(self, data: bytes) -> StackSamples:
        """Read events, one sample each, under the name of the command that they belong to."""
        stacks: Counter[Stack] = Counter()
        frameless = invalid = 0
        first_invalid = ""
        for number, lines in _events(decode_text(data)):
            header = _HEADER.fullmatch(lines[0])
            frames = _frames(lines, header["event"] or "") if header else None
            if header is None or frames is None:
                invalid += 1
                first_invalid = first_invalid or f"line {number}: {lines[0][:60]!r}"
            elif frames:
                stacks[(header["command"], *reversed(frames))] += 1
            else:
                frameless += 1
        return StackSamples(dict(stacks), frameless, invalid, first_invalid)


def _events(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each event's first line, and its lines."""
    first = 0
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        blank = not line.strip()
        if lines and (blank or not line[0].isspace()):
            yield first, lines
            lines = []
        if not blank and not line.startswith("#"):
            if not lines:
                first = number
            lines.append(line.rstrip("\r"))
    if lines:
        yield first, lines


def _frames(lines: Sequence[str], event: str) -> list[str] | None:
    """Return an event's frames, leaf first; None if a line is no frame."""
    texts = list(lines[1:])
    if not texts and (single := _SINGLE.fullmatch(event)):
        texts = [f" {single['frame']}"]
    found = []
    for text in texts:
        match = _FRAME.fullmatch(text)
        if match is None:
            return None
        found.append(_frame(match["symbol"], match["object"]))
    return found


def _frame(symbol: str, binary: str) -> str:
    """Return a frame as other samplers spell it: ``name (binary)``, the kernel's with ``_[k]``."""
    symbol = _OFFSET.sub("", symbol)
    if python := _PYTHON.fullmatch(symbol):  # Python's own support of perf
        return f"{python['name']} ({python['path']})"
    if symbol in ("", "[unknown]"):
        return f"[{binary.rpartition('/')[2].strip('[]')}]" if binary not in _NOWHERE else "[unknown]"
    if binary == "inlined":
        return f"{symbol}_[i]"
    if _JIT.fullmatch(binary):
        return f"{symbol}_[j]"
    if _KERNEL.fullmatch(binary) and binary not in _NOWHERE:
        return f"{symbol}_[k]"
    return symbol
