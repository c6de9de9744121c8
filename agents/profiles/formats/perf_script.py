"""The output of ``perf script``: one event after the other, each a header line and its frames, leaf first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from agents.profiles.formats.base import Invalid, Measure, Reading, Record, Sample, mostly_samples
from agents.profiles.formats.cpu import Clock, clock_of, usual_value
from agents.profiles.formats.source import ProfileSource, head_text, whole_lines

MAX_EVENT_LINES = 100_000
"""Most lines of one event: many times what perf unwinds; a longer one counts as several."""

_GUEST = r"(?:VM:\s*+\d++\s++(?:VCPU:\d++\s++)?)?"  # a sample of a virtual machine
_COMMAND = (
    r"(?P<command>[^\s\[].{0,255}?)(?<!\s)(?<!\d:)\s++"  # it may hold spaces; what follows a time is a period
)
_PROCESS = r"-?\d{1,7}+(?:/-?\d{1,7}+)?(?:\s++|$)"  # pid or pid/tid
_CPU = r"(?:\[\d++\](?:\s++|$))?"
_FLAGS = r"(?:(?:[\w.]{4,6}|[A-Za-z]{1,3})\s++)?"  # of traces; of perf's field misc
_PERIOD = r"(?:(?P<period>\d{1,18})\s++)?"
_EVENT = rf"{_PERIOD}(?!PERF_RECORD_)(?P<event>[^\s\d]\S{{0,400}}?):(?=\s|$)(?P<rest>.*)"
_DAY = r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d++\s++)?"  # of perf's field tod
_TIME = rf"{_DAY}\d++\.\d++:\s*+(?:{_EVENT}|(?P<untyped>.*))"
_HEADERS = tuple(  # the fields that `perf script -F` leaves in; possessive quantifiers keep matching linear
    (re.compile(rf"\s*+{_GUEST}{pattern}"), is_timed)
    for pattern, is_timed in (
        (rf"(?:{_PROCESS}{_CPU}{_FLAGS}|\[\d++\]\s++{_FLAGS})?{_TIME}", True),
        (rf"{_COMMAND}{_PROCESS}{_CPU}{_FLAGS}{_TIME}", True),
        (rf"{_COMMAND}{_PROCESS}{_CPU}{_FLAGS}{_DAY}{_EVENT}", True),
        (rf"{_COMMAND}(?:\[\d++\]\s++{_FLAGS})?{_TIME}", True),
        (rf"(?:{_PROCESS})?{_CPU}{_DAY}{_EVENT}", False),
        (rf"{_COMMAND}(?:\[\d++\]\s++{_FLAGS})?{_DAY}{_EVENT}", False),
        (rf"(?:{_COMMAND})?{_PROCESS}{_CPU}{_DAY}", False),
    )
)
_COMMAND_ALONE = re.compile(
    rf"(?:(?P<command>(?!\d{{4}}-\d\d-)[^\s\[].{{0,255}}?)\s+)?(?:\[\d+\]\s+{_FLAGS})?{_DAY}|"
)
_TIMED = r"\d+(?:/\d+)?\s+(?:\[\d+\]\s+)?\d+\.\d+:"
_FRAME = re.compile(
    rf"(?:\s++[0-9a-f]++|[0-9a-f]{{8,}}+)\s++(?!{_TIMED})"  # a command named dd is no address
    r"(?P<symbol>|\S.*?(?<!\s))\s*+\((?P<object>[^()]*(?:\([^()]*\)[^()]*)?)\)\s*"
)
_BARE_FRAME = re.compile(  # without its binary
    r"\s++[0-9a-f]{5,}+\s++(?P<symbol>\[unknown\]|[^\s\d(\[].*?(?<!\s))\s*+"
)
_ADDED = re.compile(  # lines of fields that say no more of a stack: srcline, brstack, iregs, insn, phys_addr
    r"\s+\S.*(?::[\d?]+(?: \(discriminator \d+\))?|\[[0-9a-f]+\]|/[MPN-]/[^\s/]*/[^\s/]*/\d+\S*)\s*"
    r"|\s+(?:ABI:\d|ilen:|insn:)\s.*|(?=\s.{15}\s*$) +[0-9a-f]+\s*"  # registers, instructions, addresses
)
_PERIOD_WIDTH = 10
_WIDE_PERIOD = re.compile(  # in perf's columns, before an event
    r"(?<!\S)((?=[ \d]{10} ) *+\d{1,10}|\d{11,18}) (?=[^\s\d]\S{0,400}?:(?:\s|$))"
)
_NUMBER = re.compile(r"[0-9]{1,18}")
_LOST = re.compile(r"PERF_RECORD_LOST\w* lost (\d{1,12})")
_LONG_ADDRESS = re.compile(r"\s+[0-9a-f]{5,}\s")
_COLUMNS = re.compile(r"\t(?=.{16} ) *[0-9a-f]{5,16} ")
_HEXADECIMAL = re.compile(r"\s+(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{5,16} ")
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_SINGLE = re.compile(
    r".*?:\s+(?P<frame>[0-9a-f]+\s++(?![0-9a-f]{4,}\s).*\(.*\))\s*"
)  # an event's only frame, on its own line
_TASK = re.compile(r"(?<=^\[JIT\]) tid \d+$|(?<=kallsyms)\.\d+(?=\]$)")  # thread or guest of a binary
_JIT = re.compile(r"(?:.*/)?(?:perf-\d+\.map|jitted-\d+-\d+\.so)|\[JIT\]")
_MODIFIERS = re.compile(r"(?<=.):[ukhGHIpPSDWebR]+$|(?<=/)[ukhGHIpPSDWebR:]+$")
_TERMS = re.compile(  # what only says how an event was recorded: cycles/freq=99/, ibs_op//
    r"([\w.-]+)/(?:(?:period|freq|call-graph|stack-size|max-stack|time|inherit|no-inherit|overwrite|percore)"
    r"(?:=[^/,]*)?,?)*/"
)
_UNIT_EVENT = re.compile(r"[\w.-]+/([\w.-]+)(?:,[^/]*)?/")  # of one kind of cores: cpu_atom/cycles/
_UNNAMED = "weight"  # type and unit of periods where the event is left out
_CLOCKS = ("cpu-clock", "task-clock")
_KERNEL = re.compile(
    r"\[(?:kernel|guest\.kernel|unknown\.kernel)\b.*|.*\.ko(?:\.\w+)?|\[\w+\]|(?:.*/)?vmlinux(?:-[^/]*)?"
)
_PYTHON = re.compile(r"py::(?P<name>.*?):(?P<path>.*)", re.DOTALL)
_INLINED = "->"
_NOWHERE = ("", "[unknown]", "inlined")


class PerfScriptFormat:
    """Events of Linux perf, as text."""

    name = "perf"
    content = "events of perf script (a header line, then frames)"

    def recognises(self, head: bytes) -> bool:
        """Take a file nearly all of whose first events are whole, and one of them has a frame.

        Without headers of events a frame has to be one for sure, see ``_is_surely_frame``.
        """
        whole = whole_lines(head)
        lines = head_text(whole).split("\n")
        has_stack = any(
            (header := _header(line.rstrip()))
            and (
                _SINGLE.fullmatch(f": {header.rest}") or _frame_of(following)
                if header.is_timed
                else _is_surely_frame(following)
            )
            for line, following in zip(lines, [*lines[1:], ""], strict=True)
        )
        return (has_stack or _has_no_headers(lines)) and mostly_samples(
            list(self.read(ProfileSource.of(whole), "").records)
        )

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read samples of one event, ``value`` or the one that ``usual_value`` chooses, under their command.

        The same event of several kinds of cores is one. Others are left out: each has samples of its
        own of the same time. Periods are weights where they differ.
        """
        lines = head_text(whole_lines(source.head)).split("\n")
        heads = [header for line in lines if (header := _header(line.rstrip()))]
        names = list(dict.fromkeys(header.event for header in heads if header.event))
        usual = names[usual_value([Measure(name) for name in names])] if names else ""
        wanted = event_name(value) or usual
        periods = [header.period for header in heads if header.event == wanted and header.period]
        measure, usual_period = _measure(wanted, periods)
        left_out = Counter[str]()
        request = _Wanted(wanted, usual_period, measure, has_headers=not _has_no_headers(lines))
        return Reading(measure, _records(source, request, left_out), left_out=left_out)


class _Wanted(NamedTuple):
    """The event that is read, the period that most of its samples have, and whether stacks have headers."""

    event: str
    usual_period: float
    measure: Measure
    has_headers: bool


class _Header(NamedTuple):
    """The fields of an event's first line, each empty where it is left out."""

    command: str
    event: str
    period: int
    rest: str
    is_timed: bool  # whether it has a time, or an event of a process


_NO_HEADER = _Header("", "", 0, "", is_timed=False)


def event_name(text: str) -> str:
    """Return an event without its modifiers and the kind of cores: ``cycles`` of ``cpu_atom/cycles/P``."""
    name = _MODIFIERS.sub("", text)
    match = _TERMS.fullmatch(name) or _UNIT_EVENT.fullmatch(name)
    return match[1] if match else name


def _clock(event: str) -> Clock:
    return clock_of(Measure(event))


def _measure(event: str, periods: Sequence[int]) -> tuple[Measure, float]:
    """Return what an event counts, and its usual period, 1 where samples have none."""
    if len(set(periods)) < 2:
        return Measure("samples" if not event or _clock(event) else event), periods[0] if periods else 1
    unit = "nanoseconds" if event in _CLOCKS else event or _UNNAMED
    mean = sum(periods) / len(periods)
    return Measure(event or _UNNAMED, unit, mean), mean


def _has_no_headers(lines: Sequence[str]) -> bool:
    """Return whether all lines are frames of stacks, as ``perf script -F ip,sym`` writes them.

    A tab begins each, else each were a sample of its own.
    """
    frames = [line for line in lines if line.strip() and line[0] != "#"]
    return any(map(_is_surely_frame, frames)) and all(
        line[0] == "\t" and _LONG_ADDRESS.match(line) and _frame_of(line) is not None for line in frames
    )


def _is_surely_frame(line: str) -> bool:
    """Return whether a line is a frame by itself: of a binary's path, in perf's columns, or hexadecimal."""
    match = _FRAME.fullmatch(line)
    if match and match["object"].startswith(("/", "[")):
        return True
    if not _LONG_ADDRESS.match(line) or _frame_of(line) is None:
        return False
    return bool(match or _COLUMNS.match(line) or _HEXADECIMAL.match(line))


def _records(source: ProfileSource, wanted: _Wanted, left_out: Counter[str]) -> Iterator[Record]:
    for number, lines in _events(source):
        if not wanted.has_headers:
            lines.insert(0, "")
        header = _header(lines[0]) if wanted.has_headers else _NO_HEADER
        frames = _frames(lines, header.rest) if header else None
        if header is None or frames is None:
            yield Invalid(f"line {number}: {lines[0][:60]!r}")
        elif not header.event and header.rest.startswith("PERF_RECORD_"):
            if lost := _LOST.match(header.rest):
                left_out["lost by perf"] += int(lost[1])
        elif header.event and header.event != wanted.event:
            left_out[header.event] += 1
        else:
            period = header.period or wanted.usual_period
            counted = 1 if period == wanted.usual_period else period / wanted.usual_period
            stack = (*filter(None, [header.command]), *reversed(frames)) if frames else ()
            yield Sample(stack, period if wanted.measure.period else counted)


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
            lines.append(line.rstrip() if begins else line.rstrip("\r"))
            if len(lines) > MAX_EVENT_LINES:
                yield first, lines
                lines = []
    if lines:
        yield first, lines


def _begins_event(line: str) -> bool:
    """Return whether a line begins an event: old versions indent no frames, new ones pad commands."""
    if _frame_of(line) is not None:
        return False
    return not line[0].isspace() or (not _ADDED.fullmatch(line) and _header(line.rstrip()) is not None)


def _header(line: str) -> _Header | None:
    """Return the fields of a header; None if it is none."""
    if match := _WIDE_PERIOD.search(line):  # which could be taken for a process where it has no time
        header = _read_header(line[: match.start(1)] + line[match.end() :])
        if header and header.event:
            return header._replace(period=int(match[1]))
    fields, period = _split_period(line)
    if not period:
        return _read_header(line)
    header = _read_header(fields)
    if header is None and (match := _COMMAND_ALONE.fullmatch(fields)):
        return _NO_HEADER._replace(command=match["command"] or "", period=period)
    if header is None or header.event or header.rest:  # then the number belongs to the event
        return _read_header(line)
    return header._replace(period=period)


def _split_period(line: str) -> tuple[str, int]:
    """Return the fields of a header before the period that ends it, and this period; 0 if none does.

    A period without an event is ten characters wide in perf's columns, a process seven.
    """
    digits = line[line.rfind(" ") + 1 :]
    if not _NUMBER.fullmatch(digits):
        return line, 0
    width = max(_PERIOD_WIDTH, len(digits))
    fields, column = line[:-width], line[-width:]
    if len(column) < width or column.strip() != digits:
        is_trimmed = line.endswith(f": {digits}")
        return (line[: -len(digits)], int(digits)) if is_trimmed else (line, 0)
    return (fields, int(digits)) if not fields or fields[-1].isspace() else (line, 0)


def _read_header(line: str) -> _Header | None:
    matches = ((match, is_timed) for pattern, is_timed in _HEADERS if (match := pattern.fullmatch(line)))
    match, is_timed = next(matches, (None, False))
    if match is None:
        return None
    fields = {name: text or "" for name, text in match.groupdict().items()}
    rest = (fields.get("rest") or fields.get("untyped", "")).strip()
    event = event_name(fields.get("event", ""))
    return _Header(fields.get("command", ""), event, int(fields.get("period") or 0), rest, is_timed)


def _frames(lines: Sequence[str], rest: str) -> list[str] | None:
    """Return an event's frames, leaf first; None if a line is no frame."""
    texts = list(lines[1:])
    if not texts and (single := _SINGLE.fullmatch(f": {rest}")):
        texts = [f" {single['frame']}"]
    stack: list[str] = []
    for text in texts:
        frames = _frame_of(text)
        if frames is None and stack and _ADDED.fullmatch(text):
            continue
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
        bare = _BARE_FRAME.fullmatch(text)
        return (_frame(bare["symbol"], ""),) if bare else None
    frame = _frame(match["symbol"], match["object"])
    if not frame.endswith("_[j]"):
        return (frame,)
    outer, *inlined = frame.removesuffix("_[j]").split(_INLINED)  # as Java's map files have them
    if not outer or not all(inlined):
        return (frame,)
    return (*(f"{function}_[i]" for function in reversed(inlined)), f"{outer}_[j]")


def _frame(symbol: str, binary: str) -> str:
    """Return a frame as other samplers spell it: ``name (binary)``, the kernel's with ``_[k]``."""
    symbol, binary = _OFFSET.sub("", symbol), _TASK.sub("", _OFFSET.sub("", binary))
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
