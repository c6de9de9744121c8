"""Writer of flight recordings of a few samples, as the JVM writes them, for tests of the reader."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

LONG, INT, STRING, SYMBOL, CLASS, METHOD, FRAME_TYPE, FRAME, TRACE, STATE = range(10, 20)
EXECUTION, WALL, ALLOCATION, MONITOR, CPU_TIME, BOOLEAN, SETTING, DATADOG, LOST = range(101, 110)

Fields = Sequence[tuple[str, int, str]]  # name, type, and c for a constant or [] for several

TYPES: Mapping[int, tuple[str, Fields]] = {
    LONG: ("long", ()),
    INT: ("int", ()),
    BOOLEAN: ("boolean", ()),
    STRING: ("java.lang.String", ()),
    SYMBOL: ("jdk.types.Symbol", (("string", STRING, ""),)),
    CLASS: ("java.lang.Class", (("name", SYMBOL, "c"),)),
    METHOD: ("jdk.types.Method", (("type", CLASS, "c"), ("name", SYMBOL, "c"))),
    FRAME_TYPE: ("jdk.types.FrameType", (("description", STRING, ""),)),
    FRAME: (
        "jdk.types.StackFrame",
        (("method", METHOD, "c"), ("lineNumber", INT, ""), ("type", FRAME_TYPE, "c")),
    ),
    TRACE: ("jdk.types.StackTrace", (("frames", FRAME, "[]"),)),
    STATE: ("jdk.types.ThreadState", (("name", STRING, ""),)),
    EXECUTION: ("jdk.ExecutionSample", (("stackTrace", TRACE, "c"), ("state", STATE, "c"))),
    WALL: (
        "profiler.WallClockSample",
        (("stackTrace", TRACE, "c"), ("state", STATE, "c"), ("samples", INT, "")),
    ),
    ALLOCATION: ("jdk.ObjectAllocationSample", (("stackTrace", TRACE, "c"), ("weight", LONG, ""))),
    MONITOR: ("jdk.JavaMonitorEnter", (("duration", LONG, ""), ("stackTrace", TRACE, "c"))),
    CPU_TIME: ("jdk.CPUTimeSample", (("stackTrace", TRACE, "c"), ("failed", BOOLEAN, ""))),
    SETTING: ("jdk.ActiveSetting", (("id", LONG, ""), ("name", STRING, ""), ("value", STRING, ""))),
    DATADOG: (
        "datadog.ExecutionSample",
        (("stackTrace", TRACE, "c"), ("state", STATE, "c"), ("weight", LONG, "")),
    ),
    LOST: ("jdk.CPUTimeSamplesLost", (("lostSamples", INT, ""),)),
}
METHODS = (("shop/Cart", "total"), ("shop/App", "main"), ("", "write"))
TRACES = (((0, 0), (1, 0)), ((2, 1), (1, 0)))  # (method, type of frame), leaf first
RUNNABLE, SLEEPING = 1, 2
TICKS_PER_S = 1_000


def number(value: int) -> bytes:
    """Return a number of seven bits a byte."""
    value &= 2**64 - 1
    content = bytearray()
    while value >= 0x80 and len(content) < 8:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*content, value])


def text(value: str) -> bytes:
    """Return a text as UTF-8."""
    return b"\x03" + number(len(value.encode())) + value.encode()


def sized(content: bytes) -> bytes:
    """Return an event with its size in front; the size includes itself."""
    size = len(content) + 1
    while len(number(size)) + len(content) != size:
        size = len(number(size)) + len(content)
    return number(size) + content


def event(type_: int, *fields: int) -> bytes:
    """Return an event of numbers."""
    return sized(number(type_) + b"".join(map(number, fields)))


def setting(name: str, value: str) -> bytes:
    """Return a setting of a recording, as async-profiler writes its arguments."""
    return sized(number(SETTING) + number(0) + text(name) + text(value))


def constants(delta: int = 0) -> bytes:
    """Return the pools of constants: two methods of classes, one of native code, two traces."""
    names = [name for pair in METHODS for name in pair]
    pools = {
        SYMBOL: [text(name) for name in names],
        CLASS: [number(1 + 2 * index) for index in range(len(METHODS))],
        METHOD: [number(1 + index) + number(2 + 2 * index) for index in range(len(METHODS))],
        FRAME_TYPE: [text("JIT compiled"), text("Kernel")],
        STATE: [text("STATE_RUNNABLE"), text("STATE_SLEEPING")],
        TRACE: [
            number(len(trace)) + b"".join(number(m + 1) + number(7) + number(t + 1) for m, t in trace)
            for trace in TRACES
        ],
    }
    content = number(1) + number(0) + number(0) + number(delta) + b"\0" + number(len(pools))
    for type_, values in pools.items():
        content += number(type_) + number(len(values))
        content += b"".join(number(key) + value for key, value in enumerate(values, start=1))
    return sized(content)


def description(types: Mapping[int, tuple[str, Fields]] = TYPES) -> bytes:
    """Return the event that describes all types."""
    strings: dict[str, int] = {}

    def element(name: str, attributes: Mapping[str, str], children: Sequence[bytes] = ()) -> bytes:
        content = number(strings.setdefault(name, len(strings))) + number(len(attributes))
        for key, value in attributes.items():
            content += number(strings.setdefault(key, len(strings)))
            content += number(strings.setdefault(value, len(strings)))
        return content + number(len(children)) + b"".join(children)

    classes = []
    for id_, (name, fields) in types.items():
        children = []
        for field, type_, kind in fields:
            about = {"name": field, "class": str(type_)}
            about |= {"c": {"constantPool": "true"}, "[]": {"dimension": "1"}}.get(kind, {})
            children.append(element("field", about))
        classes.append(element("class", {"id": str(id_), "name": name}, children))
    root = element("root", {}, [element("metadata", {}, classes)])
    content = number(0) + number(0) + number(0) + number(1) + number(len(strings))
    return sized(content + b"".join(map(text, strings)) + root)


def chunk(
    *events: bytes,
    pools: bytes | None = None,
    types: bytes | None = None,
    size: int | None = None,
    features: int = 1,
) -> bytes:
    """Return a chunk of events."""
    body = b"".join(events)
    pools, types = constants() if pools is None else pools, description() if types is None else types
    whole = 68 + len(body) + len(pools) + len(types)
    header = struct.pack(
        ">4sHHqqqqqqqI", b"FLR\0", 2, 1, whole if size is None else size, 68 + len(body),
        68 + len(body) + len(pools), 0, 0, 0, TICKS_PER_S, features,
    )  # fmt: skip
    return header + body + pools + types
