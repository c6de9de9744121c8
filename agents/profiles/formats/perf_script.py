"""The output of ``perf script``: one event after the other, each a header line and its frames, leaf first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agents.profiles.formats.base import Invalid, Measure, Reading, Record, Sample, mostly_samples
from agents.profiles.formats.source import ProfileSource, head_text, whole_lines

MAX_EVENT_LINES = 100_000
"""Most lines of one event: many times what perf unwinds; a longer one counts as several."""

_HEADER = re.compile(  # possessive quantifiers and a bounded command keep matching linear in length
    r"(?P<command>\S.{0,255}?)(?<!\s)\s++-?\d++(?:/-?\d++)?\s++"  # it may hold spaces; pid or pid/tid
    r"(?:\[\d++\]\s++)?(?:\S{4,6}\s++)?"  # CPU, flags
    r"(?:\d++\.\d++:\s*+(?P<event>.*)|(?:\d++\s++)?(?P<untimed>[\w:/-]+:)\s*)"  # time, left out by some
)
_TIME = r"\d++\.\d++:\s*+(?P<event>.*)"
_FLAGS = r"(?:[\w.]{4,6}\s++)?"
_PARTIAL = (  # without the command or the process, as `-F -comm,-tid` leaves them out
    re.compile(rf"(?:-?\d++(?:/-?\d++)?\s++(?:\[\d++\]\s++)?{_FLAGS}|\[\d++\]\s++{_FLAGS})?{_TIME}"),
    re.compile(rf"(?P<command>[^\s\[].{{0,255}}?)(?<!\s)\s++(?:\[\d++\]\s++{_FLAGS})?{_TIME}"),
)
_ENDS_IN_TIME = re.compile(r"\d\.\d+:$")
_TIMED = r"\d+(?:/\d+)?\s+(?:\[\d+\]\s+)?\d+\.\d+:"
_FRAME = re.compile(
    rf"(?:\s+[0-9a-f]+|[0-9a-f]{{8,}})\s+(?!{_TIMED})"  # a command named dd is no address
    r"(?P<symbol>.*?)\s*\((?P<object>[^()]*(?:\([^()]*\))?)\)\s*"
)
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_SINGLE = re.compile(r".*?:\s+(?P<frame>[0-9a-f]+\s+.*\(.*\))\s*")  # an event's only frame, on its own line
_JIT = re.compile(r"(?:.*/)?(?:perf-\d+\.map|jitted-\d+-\d+\.so)")
_EVENT = re.compile(r"(?:\d+\s+)?([^\s:]+):.*")  # perhaps its period, then its name
_KERNEL = re.compile(r"\[(?:kernel|guest\.kernel|unknown\.kernel)\b.*|.*\.ko(?:\.\w+)?|\[\w+\]")
_PYTHON = re.compile(r"py::(?P<name>.*?):(?P<path>.*)", re.DOTALL)
_INLINED = "->"
_NOWHERE = ("", "[unknown]", "inlined")


class PerfScriptFormat:
    """Events of Linux perf, as text."""

    name = "perf"
    content = "events of perf script (a header line, then frames)"

    def recognises(self, head: bytes) -> bool:
        """Take a file nearly all of whose first events are whole, and one of them has a frame."""
        whole = whole_lines(head)
        lines = head_text(whole).split("\n")
        return any(
            _header(line.strip()) and (_SINGLE.fullmatch(line.strip()) or _FRAME.fullmatch(following))
            for line, following in zip(lines, [*lines[1:], ""], strict=True)
        ) and mostly_samples(list(_records(ProfileSource.of(whole), "")))

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read samples of one event, ``value`` or that of the first, one each under the name of its command.

        Other events are left out: each that was recorded has samples of its own of the same time.
        """
        return Reading(Measure(), _records(source, value))


def _records(source: ProfileSource, wanted: str) -> Iterator[Record]:
    for number, lines in _events(source):
        header = _header(lines[0])
        command, event = header or ("", "")
        frames = _frames(lines, event) if header else None
        if header is None or frames is None:
            yield Invalid(f"line {number}: {lines[0][:60]!r}")
            continue
        named = _EVENT.fullmatch(event)
        wanted = wanted or (named[1] if named else "")
        if not named or named[1] == wanted:
            yield Sample((*filter(None, [command]), *reversed(frames)) if frames else (), 1)


def _events(source: ProfileSource) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each event's first line, and its lines."""
    first = 0
    lines: list[str] = []
    for number, line in source.lines():
        blank = not line or line.isspace()
        begins = not blank and _begins_event(line)
        if lines and (blank or begins):
            yield first, lines
            lines = []
        if not blank and not line.startswith("#"):
            if not lines:
                first = number
            lines.append(line.strip() if begins else line.rstrip("\r"))
            if len(lines) > MAX_EVENT_LINES:
                yield first, lines
                lines = []
    if lines:
        yield first, lines


def _begins_event(line: str) -> bool:
    """Return whether a line begins an event: old versions indent no frames, new ones pad commands."""
    if _frame_of(line) is not None:
        return False
    return not line[0].isspace() or _header(line.strip()) is not None


def _header(line: str) -> tuple[str, str] | None:
    """Return the command and the event of a header, each empty where it is left out; None if it is none."""
    whole, bare, unnumbered = _HEADER.fullmatch(line), *(pattern.fullmatch(line) for pattern in _PARTIAL)
    if bare:
        return "", bare["event"]
    if whole and not _ENDS_IN_TIME.search(whole["command"]):  # what follows is a period, no process
        return whole["command"], whole["event"] or whole["untimed"] or ""
    return (unnumbered["command"], unnumbered["event"]) if unnumbered else None


def _frames(lines: Sequence[str], event: str) -> list[str] | None:
    """Return an event's frames, leaf first; None if a line is no frame."""
    texts = list(lines[1:])
    if not texts and (single := _SINGLE.fullmatch(event)):
        texts = [f" {single['frame']}"]
    stack: list[str] = []
    for text in texts:
        frames = _frame_of(text)
        if frames is None:
            return None
        stack += frames
    return stack


def _frame_of(text: str) -> tuple[str, ...] | None:
    """Return the frames that a line holds, leaf first; None if it is none."""
    return _cached(text) if len(text) <= _LONGEST_CACHED else _read_frame(text)


def _read_frame(text: str) -> tuple[str, ...] | None:
    match = _FRAME.fullmatch(text)
    if match is None:
        return None
    frame = _frame(match["symbol"], match["object"])
    if not frame.endswith("_[j]"):
        return (frame,)
    outer, *inlined = frame.removesuffix("_[j]").split(_INLINED)  # as Java's map files have them
    if not outer or not all(inlined):
        return (frame,)
    return (*(f"{function}_[i]" for function in reversed(inlined)), f"{outer}_[j]")


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


_LONGEST_CACHED = 1000
_cached = lru_cache(maxsize=16_384)(_read_frame)
