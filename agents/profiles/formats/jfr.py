"""Java flight recordings: samples of the JVM's own profiler and of async-profiler.

The events are those of the JDK (``jdk.*``) and of async-profiler (``profiler.*``).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from agents.profiles.formats.cpu import clock_of
from agents.profiles.formats.jfr_chunk import HEADER, MAGIC, Chunk, Type, read_header
from agents.profiles.formats.perf_script import event_name
from agents.profiles.formats.source import Damaged, ProfileSource
from pipeline.model.errors import ConfigError

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
_RUNNING = ("STATE_RUNNABLE", "STATE_DEFAULT", "RUNNABLE", "SYSCALL", "")

HELD_BYTES = 2**28
"""Most bytes of chunks that are held until one has the value that is read."""

MAX_LOST = 2**40
"""Most lost samples that an event may state: more are damage."""


class _Value(NamedTuple):
    """A value that can be counted: its unit, and event types with the field of the weight, empty for 1.

    ``events`` are alternatives of one thing, the best first: where a recording has several, only one counts.
    """

    unit: str
    events: Sequence[Mapping[str, str]]


_EXECUTION = "jdk.ExecutionSample"
_CPU_TIME = "jdk.CPUTimeSample"
_LOST = "jdk.CPUTimeSamplesLost"
_SETTING = "jdk.ActiveSetting"
_VALUES: Mapping[str, _Value] = {
    "cpu": _Value("count", ({_CPU_TIME: ""}, {"datadog.ExecutionSample": "weight"}, {_EXECUTION: ""})),
    "wall": _Value(
        "count",
        (
            {"profiler.WallClockSample": "samples"},
            {"datadog.MethodSample": "weight"},
            {_EXECUTION: ""},  # async-profiler before version 4 has no event of its own
        ),
    ),
    "native": _Value("count", ({"jdk.NativeMethodSample": ""},)),
    "alloc": _Value(
        "bytes",
        (
            {
                "jdk.ObjectAllocationInNewTLAB": "tlabSize",
                "jdk.ObjectAllocationOutsideTLAB": "allocationSize",
            },
            {"jdk.ObjectAllocationSample": "weight"},
        ),
    ),
    "lock": _Value("nanoseconds", ({"jdk.JavaMonitorEnter": "duration", "jdk.ThreadPark": "duration"},)),
    "native-lock": _Value("nanoseconds", ({"profiler.NativeLock": "duration"},)),
    "malloc": _Value("bytes", ({"profiler.Malloc": "size"},)),
    "live": _Value("bytes", ({"profiler.LiveObject": "allocationSize"},)),
}
_OWN = _Value("count", ({_EXECUTION: ""},))  # of an event that async-profiler was given
_INSTEAD = {"cpu": "wall", "wall": "cpu"}
"""Value → the one that is read where a recording lacks it: of the wall's, threads that run are on a CPU."""

_ROLES = {
    type_: name
    for name, value in reversed(list(_VALUES.items()))
    for alternative in value.events
    for type_ in alternative
}
"""Event type → the first value that it counts, unless async-profiler's own event says otherwise."""


class _Choice(NamedTuple):
    """What is read: event types with their weights, where they count ``role``.

    ``running`` leaves out threads that wait.
    """

    unit: str
    role: str
    events: Mapping[str, str]
    running: bool


class JfrFormat:
    """Events of flight recordings that have a stack."""

    name = "jfr"
    content = "samples of a Java flight recording"

    def recognises(self, head: bytes) -> bool:
        """Take a file that begins like a chunk."""
        return head.startswith(MAGIC)

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read one kind of events; without ``value`` the first of the table that the recording has.

        Chunks are held until one has samples of CPU, or of ``value``.

        Raises:
            ConfigError: there is no such value, or none within ``HELD_BYTES``.
        """
        start = _look_ahead(_chunks(source), value or "cpu")
        names = dict.fromkeys((*_VALUES, *start.counts))
        usual = next((name for name in names if name in start.counts), "cpu")
        name = choose_value(names, value, usual)
        choice = _choice(name, start)
        left_out = Counter[str]()
        return Reading(Measure(name, choice.unit), _records(start, choice, left_out), left_out=left_out)


@dataclass
class _Start:
    """The first chunks of a recording with async-profiler's event and their counts, and the other chunks."""

    held: deque[Chunk]
    others: Iterator[Chunk]
    event: str = ""
    counts: dict[str, Counter[str]] = field(default_factory=dict)  # value → event type → events


def _look_ahead(chunks: Iterator[Chunk], wanted: str) -> _Start:
    """Return the chunks up to the first that has a value; a damage after the first is raised once read."""
    start = _Start(deque(), chunks)
    size = 0
    while wanted not in start.counts:
        try:
            chunk = next(chunks)
            counts, event = chunk.counts, _event_setting(chunk)
        except StopIteration:
            break
        except Damaged as damage:
            if not start.held:
                raise
            start.others = _raising(damage)
            break
        start.held.append(chunk)
        start.event = event or start.event
        for type_, count in counts.items():
            if role := _role(type_, start.event):
                start.counts.setdefault(role, Counter())[type_] += count
        size += chunk.header.size
        if size > HELD_BYTES:
            values = ", ".join(start.counts) or "nothing else"
            raise ConfigError(
                f"has no {wanted} in its first {size >> 20} MiB: --value says what to read, of {values}"
            )
    return start


def _raising(damage: Damaged) -> Iterator[Chunk]:
    raise damage
    yield


def _event_setting(chunk: Chunk) -> str:
    """Return the event that async-profiler sampled by, as its settings say; empty if they do not."""
    names = _Names(chunk)
    for _, _, setting in chunk.events(_wanted(chunk, (_SETTING,))):
        if setting and names.text(setting.get("name"), "") == "event":
            return event_name(names.text(setting.get("value"), ""))
    return ""


def _role(type_: str, event: str) -> str:
    """Return the value that events of a type count: the JVM's samples may be taken by any event."""
    if type_ == _EXECUTION and event:
        return clock_of(Measure(event)) or (f"{event}()" if event in _VALUES else event)
    return _ROLES.get(type_, "")


def _choice(name: str, start: _Start) -> _Choice:
    """Return what is read for a value, or for async-profiler's own event."""
    counts, role = start.counts, name
    instead = _INSTEAD.get(name, "")
    is_said = name == "wall" and start.event  # then samples of a CPU are none of the wall
    if name not in counts and instead in counts and not is_said:
        role = instead
    unit, events = _VALUES.get(role, _OWN)
    types = counts.get(role, ())
    best = next((events_of for events_of in events if any(type_ in types for type_ in events_of)), events[0])
    return _Choice(unit, role, best, running=name == "cpu")


def _records(start: _Start, choice: _Choice, left_out: Counter[str]) -> Iterator[Record]:
    event = ""
    while chunk := start.held.popleft() if start.held else next(start.others, None):
        event = _event_setting(chunk) or event
        yield from _Reader(chunk, choice, event, left_out).records()


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


def _wanted(chunk: Chunk, names: Collection[str]) -> dict[int, Type]:
    return {id_: type_ for id_, type_ in chunk.types.items() if type_.name in names}


class _Names:
    """Constants of a chunk by the names of their types."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._id_of = {type_.name: id_ for id_, type_ in chunk.types.items()}

    def text(self, value: Any, type_: str) -> str:
        """Return a text that stands itself, or as a constant."""
        if isinstance(value, int):
            value = self.constant(type_, value)
        if isinstance(value, dict):
            value = value.get("string")
        if isinstance(value, int):
            value = self.constant("java.lang.String", value)
        return value if isinstance(value, str) else ""

    def constant(self, type_: str, key: Any) -> Any:
        return self._chunk.constant(self._id_of.get(type_, -1), key)


class _Reader:
    """The stacks of one chunk."""

    def __init__(self, chunk: Chunk, choice: _Choice, event: str, left_out: Counter[str]) -> None:
        self._chunk, self._choice, self._event, self._left_out = chunk, choice, event, left_out
        self._names = _Names(chunk)
        self._stacks: dict[int, Stack | None] = {}
        self._methods: dict[int, str] = {}

    def records(self) -> Iterator[Record]:
        choice = self._choice
        types = [type_ for type_ in choice.events if _role(type_, self._event) == choice.role]
        for type_, position, event in self._chunk.events(_wanted(self._chunk, types)):
            weight = self._weight(event, choice.events[type_.name]) if event else None
            if event is None or weight is None:
                yield Invalid(f"byte {position} of a chunk: an event that its type does not describe")
            elif choice.running and self._waits(event):
                self._left_out["of waiting threads"] += round(weight)
            elif event.get("failed"):  # the JVM could not walk the stack
                yield Sample((), weight)
            else:
                yield self._sample(event, weight, position)
        self._count_others(types)

    def _count_others(self, types: Collection[str]) -> None:
        """Count what is left out: other values, other events of the same, and samples that the JVM lost."""
        for type_, count in self._chunk.counts.items():
            role = _role(type_, self._event)
            if role and type_ not in types:
                self._left_out[role if role != self._choice.role else type_] += count
        if _CPU_TIME in types:
            for _, _, event in self._chunk.events(_wanted(self._chunk, (_LOST,))):
                lost = event.get("lostSamples") if event else None
                self._left_out["lost by the JVM"] += (
                    lost if isinstance(lost, int) and 0 < lost <= MAX_LOST else 0
                )

    def _waits(self, event: Mapping[str, Any]) -> bool:
        state = self._names.constant("jdk.types.ThreadState", event.get("state"))
        return isinstance(state, dict) and self._names.text(state.get("name"), "") not in _RUNNING

    def _sample(self, event: Mapping[str, Any], weight: float, position: int) -> Record:
        trace = event.get("stackTrace")
        if trace == 0 or trace is None:
            return Sample((), weight)
        if trace not in self._stacks:
            self._stacks[trace] = self._stack(self._names.constant(_STACK_TRACE, trace))
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
            kind = self._names.constant("jdk.types.FrameType", frame.get("type"))
            kind = kind.get("description") if isinstance(kind, dict) else ""
            name = self._method(frame.get("method"))
            stack.append(f"{name}_[k]" if kind == _KERNEL else name)
        return tuple(stack)

    def _method(self, key: Any) -> str:
        """Return a method's name, ``package.Class.method``; native code has no class."""
        if not isinstance(key, int):
            return "[unknown]"
        if key not in self._methods:
            method = self._names.constant("jdk.types.Method", key)
            method = method if isinstance(method, dict) else {}
            name = self._names.text(method.get("name"), "jdk.types.Symbol")
            class_ = self._names.constant("java.lang.Class", method.get("type"))
            owner = (
                self._names.text(class_.get("name"), "jdk.types.Symbol") if isinstance(class_, dict) else ""
            )
            owner = owner.replace("/", ".")
            self._methods[key] = f"{owner}.{name}" if owner and name else name or owner or "[unknown]"
        return self._methods[key]
