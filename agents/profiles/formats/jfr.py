"""Java flight recordings: samples of the JVM's own profiler and of async-profiler.

The events are those of the JDK (``jdk.*``) and of async-profiler (``profiler.*``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from agents.profiles.formats.base import (
    MAX_WEIGHT,
    Invalid,
    Measure,
    Reading,
    Record,
    Sample,
    Stack,
    choose_value,
)
from agents.profiles.formats.jfr_chunk import HEADER, MAGIC, Chunk, Type, read_header
from agents.profiles.formats.source import Damaged, ProfileSource

_STACK_TRACE = "jdk.types.StackTrace"
_KEPT = (
    _STACK_TRACE,
    "jdk.types.Method",
    "jdk.types.Symbol",
    "jdk.types.FrameType",
    "jdk.types.ThreadState",
    "java.lang.Class",
    "java.lang.String",
)
_KERNEL = "Kernel"
_RUNNING = ("STATE_RUNNABLE", "STATE_DEFAULT", "")


class _Value(NamedTuple):
    """A value that can be counted: its unit, and event types with the field of the weight, empty for 1.

    ``instead`` are the types where the file has none of the others; ``running`` leaves out threads that wait.
    """

    unit: str
    events: Mapping[str, str]
    instead: Mapping[str, str] = MappingProxyType({})
    running: bool = False


_EXECUTION = {"jdk.ExecutionSample": "", "jdk.CPUTimeSample": ""}
_WALL = {"profiler.WallClockSample": "samples"}
_VALUES: Mapping[str, _Value] = {
    "cpu": _Value("count", _EXECUTION, _WALL, running=True),
    "wall": _Value("count", _WALL, _EXECUTION),  # async-profiler before version 4 has no event of its own
    "native": _Value("count", {"jdk.NativeMethodSample": ""}),
    "alloc": _Value(
        "bytes",
        {
            "jdk.ObjectAllocationInNewTLAB": "tlabSize",
            "jdk.ObjectAllocationOutsideTLAB": "allocationSize",
            "jdk.ObjectAllocationSample": "weight",
        },
    ),
    "lock": _Value("nanoseconds", {"jdk.JavaMonitorEnter": "duration", "jdk.ThreadPark": "duration"}),
    "malloc": _Value("bytes", {"profiler.Malloc": "size"}),
    "live": _Value("bytes", {"profiler.LiveObject": "allocationSize"}),
}


class JfrFormat:
    """Events of flight recordings that have a stack."""

    name = "jfr"
    content = "samples of a Java flight recording"

    def recognises(self, head: bytes) -> bool:
        """Take a file that begins like a chunk."""
        return head.startswith(MAGIC)

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read one kind of events; without ``value`` the first of which the first chunk has any."""
        choose_value(_VALUES, value, "")
        chunks = _chunks(source)
        first = next(chunks)
        name = value or next(
            (name for name, known_value in _VALUES.items() if _has(first, known_value.events)), "cpu"
        )
        chosen = _VALUES[name]
        if not _has(first, chosen.events) and _has(first, chosen.instead):
            chosen = chosen._replace(events=chosen.instead)
        left_out = Counter[str]()
        return Reading(
            Measure(name, chosen.unit), _records(first, chunks, chosen, left_out), left_out=left_out
        )


def _records(
    first: Chunk, chunks: Iterator[Chunk], value: _Value, left_out: Counter[str]
) -> Iterator[Record]:
    yield from _Reader(first, value, left_out).records()
    del first
    for chunk in chunks:
        yield from _Reader(chunk, value, left_out).records()


def _chunks(source: ProfileSource) -> Iterator[Chunk]:
    """Yield one chunk after the other; there is at least one."""
    waiting = bytearray()
    position, number = 0, 0
    needed = HEADER.size
    for piece in source.chunks():
        waiting += piece
        while len(waiting) >= needed:
            needed = read_header(bytes(waiting[: HEADER.size])).size
            if len(waiting) < needed:
                break
            yield Chunk(bytes(waiting[:needed]), _KEPT)
            del waiting[:needed]
            position, number, needed = position + needed, number + 1, HEADER.size
    if waiting or not number:
        raise Damaged(f"byte {position}: cut, {len(waiting)} of {needed} bytes of a chunk are there")


def _wanted(chunk: Chunk, events: Collection[str]) -> dict[int, Type]:
    return {id_: type_ for id_, type_ in chunk.types.items() if type_.name in events}


def _has(chunk: Chunk, events: Collection[str]) -> bool:
    return next(chunk.events(_wanted(chunk, events)), None) is not None


class _Reader:
    """The stacks of one chunk."""

    def __init__(self, chunk: Chunk, value: _Value, left_out: Counter[str]) -> None:
        self._chunk, self._value, self._left_out = chunk, value, left_out
        self._id_of = {type_.name: id_ for id_, type_ in chunk.types.items()}
        self._stacks: dict[int, Stack | None] = {}
        self._methods: dict[int, str] = {}

    def records(self) -> Iterator[Record]:
        for type_, position, event in self._chunk.events(_wanted(self._chunk, self._value.events)):
            weight = self._weight(event, self._value.events[type_.name]) if event else None
            if event is None or weight is None:
                yield Invalid(f"byte {position} of a chunk: an event that its type does not describe")
            elif self._value.running and self._waits(event):
                self._left_out["of waiting threads"] += 1
            elif event.get("failed"):  # the JVM could not walk the stack
                yield Sample((), weight)
            else:
                yield self._sample(event, weight, position)
        counts = self._chunk.counts()
        for name, other in _VALUES.items():
            types = [type_ for type_ in other.events if type_ not in self._value.events]
            if count := sum(counts[id_] for id_ in _wanted(self._chunk, types)):
                self._left_out[name] += count

    def _waits(self, event: Mapping[str, Any]) -> bool:
        state = self._constant("jdk.types.ThreadState", event.get("state"))
        return isinstance(state, dict) and self._text(state.get("name"), "") not in _RUNNING

    def _sample(self, event: Mapping[str, Any], weight: float, position: int) -> Record:
        trace = event.get("stackTrace")
        if trace == 0 or trace is None:
            return Sample((), weight)
        if trace not in self._stacks:
            self._stacks[trace] = self._stack(self._constant(_STACK_TRACE, trace))
        stack = self._stacks[trace]
        return (
            Invalid(f"byte {position} of a chunk: no such stack") if stack is None else Sample(stack, weight)
        )

    def _weight(self, event: Mapping[str, Any], name: str) -> float | None:
        if not name:
            return 1
        weight = event.get(name)
        if name == "duration" and isinstance(weight, int):
            weight = round(weight * 1_000_000_000 / self._chunk.header.ticks_per_s)
        return weight if isinstance(weight, int) and 0 <= weight <= MAX_WEIGHT else None

    def _stack(self, trace: Any) -> Stack | None:
        """Return the frames of a trace, root first."""
        frames = trace.get("frames") if isinstance(trace, dict) else None
        if not isinstance(frames, list):
            return None
        stack = []
        for frame in reversed(frames):
            if not isinstance(frame, dict):
                return None
            kind = self._constant("jdk.types.FrameType", frame.get("type"))
            kind = kind.get("description") if isinstance(kind, dict) else ""
            name = self._method(frame.get("method"))
            stack.append(f"{name}_[k]" if kind == _KERNEL else name)
        return tuple(stack)

    def _method(self, key: Any) -> str:
        """Return a method's name, ``package.Class.method``; native code has no class."""
        if not isinstance(key, int):
            return "[unknown]"
        if key not in self._methods:
            method = self._constant("jdk.types.Method", key)
            method = method if isinstance(method, dict) else {}
            name = self._text(method.get("name"), "jdk.types.Symbol")
            class_ = self._constant("java.lang.Class", method.get("type"))
            owner = self._text(class_.get("name"), "jdk.types.Symbol") if isinstance(class_, dict) else ""
            owner = owner.replace("/", ".")
            self._methods[key] = f"{owner}.{name}" if owner and name else name or owner or "[unknown]"
        return self._methods[key]

    def _text(self, value: Any, type_: str) -> str:
        """Return a text that stands itself, or as a constant."""
        if isinstance(value, int):
            value = self._constant(type_, value)
        if isinstance(value, dict):
            value = value.get("string")
        if isinstance(value, int):
            value = self._constant("java.lang.String", value)
        return value if isinstance(value, str) else ""

    def _constant(self, type_: str, key: Any) -> Any:
        return self._chunk.constant(self._id_of.get(type_, -1), key)
