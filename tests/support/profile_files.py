"""Small profile files of every format, with two stacks, ``main;work`` and ``main``."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping, Sequence

import orjson

from agents.profiles.formats.otlp import OTLP
from agents.profiles.formats.pprof import PPROF
from tests.support import jfr_writer

STACKS: Mapping[tuple[str, ...], int] = {("main", "work"): 3, ("main",): 1}
PERF = """\
main  12/13    [001]  100.250000:     250000 cpu-clock:u:
\t    1f work+0x3 (/bin/app)

main  12/13    [001]  100.350000:     250000 cpu-clock:u:
\t    1f work+0x3 (/bin/app)

"""
DTRACE = """\
CPU     ID                    FUNCTION:NAME
  8  35077                        :tick-60s


              app`work+0x3
              app`main+0x1
                3

              app`main
                1
"""
AUSTIN = """\
# austin: 3.4.1
# interval: 1000
# mode: wall

P1;T2;/srv/shop/app.py:main:5;/srv/shop/app.py:work:7 3000
P1;T2;/srv/shop/app.py:main:6 1000
P1;T2 500
# duration: 4500
"""


def speedscope(profile: Mapping[str, object] | None = None, **fields: object) -> bytes:
    """Return a file of speedscope, of one profile."""
    sampled = {"type": "sampled", "name": "t", "unit": "none", "samples": [[0, 1], [0]], "weights": [3, 1]}
    frames = [{"name": "main", "file": "/srv/app.go", "line": 5}, {"name": "work"}]
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "profiles": [{"startValue": 0, "endValue": 4, **(sampled if profile is None else profile)}],
        "shared": {"frames": frames},
    }
    return orjson.dumps({**document, **fields})


def cpuprofile(**fields: object) -> bytes:
    """Return a profile of V8: 4 samples of 1 ms, and one without work."""
    nodes = [
        _node(1, "(root)", 0, [2, 4]),
        _node(2, "main", 4, [3]),
        _node(3, "work", 6),
        _node(4, "(idle)", 0),
    ]
    document = {
        "nodes": nodes,
        "startTime": 0,
        "endTime": 6000,
        "samples": [3, 3, 2, 4, 3, 3],
        "timeDeltas": [500, 1000, 1000, 1000, 1000, 1000],
    }
    return orjson.dumps({**document, **fields})


def chrome_trace() -> bytes:
    """Return a trace of Chrome that holds the same profile in two chunks."""
    nodes = [_node(1, "(root)", 0), {**_node(2, "main", 4), "parent": 1}]
    chunks = [
        {"cpuProfile": {"nodes": nodes, "samples": [2, 2]}, "timeDeltas": [500, 1000]},
        {
            "cpuProfile": {"nodes": [{**_node(3, "work", 6), "parent": 2}], "samples": [3, 3]},
            "timeDeltas": [1000, 1000],
        },
    ]
    events: list[object] = [
        {"name": "RunTask", "ph": "X"},
        {"name": "Profile", "id": "0x1", "pid": 7, "args": {}},
    ]
    events += [{"name": "ProfileChunk", "id": "0x1", "pid": 7, "args": {"data": data}} for data in chunks]
    return orjson.dumps({"traceEvents": events})


def mojo(
    version: int = 3, metrics: Sequence[bytes] = (b"\x09\x3c", b"\x09\x14"), mode: str = "wall"
) -> bytes:
    """Return Austin's binary: two samples of 60 and 20 microseconds at an interval of 20."""
    columns = b"\0\0\0" if version > 1 else b""
    stack = b"\x02\x01" + (b"\0" if version > 2 else b"") + b"2a\0"
    strings = b"\x0b\x0a/app.py\0\x0b\x0bmain\0\x0b\x0cwork\0"
    frames = b"\x03\x14\x0a\x0b\x05" + columns + b"\x03\x15\x0a\x0c\x07" + columns
    about = b"\x01austin\x003.4\0\x01interval\x0020\0\x01mode\0" + mode.encode() + b"\0"
    first, second = metrics
    return (
        b"MOJ" + bytes([version]) + about + stack + strings + frames
        + b"\x05\x14\x05\x15" + first + stack + b"\x05\x14" + second
    )  # fmt: skip


def legacy_pprof(word: str = "<Q", java: bool = False, text: bytes | None = None) -> bytes:
    """Return a CPU profile of gperftools: leaf first, calls return one behind."""
    samples = [(3, 0x1010, 0x2021), (1, 0x2010)]
    content = [0, 3, int(java), 10_000, 0]
    for count, *addresses in samples:
        content += [count, len(addresses), *addresses]
    maps = (
        b"00001000-00002000 r-xp 00000000 08:01 12  /lib/libwork.so\n"
        b"00002000-00003000 r-xp 00000000 08:01 13  /bin/main\n"
    )
    packed = struct.pack(f"{word[0]}{len(content) + 3}{word[1]}", *content, 0, 1, 0)
    return packed + (maps if text is None else text)


def pprof(packed: bool = True) -> bytes:
    """Return a profile of Go: samples and nanoseconds at a period of 10 ms."""
    profile = PPROF["Profile"]()
    profile.string_table.extend(
        [b"", b"samples", b"count", b"cpu", b"nanoseconds", b"main", b"work", b"/a.go"]
    )
    profile.sample_type.add(type=1, unit=2)
    profile.sample_type.add(type=3, unit=4)
    profile.period_type.type, profile.period_type.unit, profile.period = 3, 4, 10_000_000
    for number, name in ((1, 5), (2, 6)):
        profile.function.add(id=number, name=name, filename=7)
        profile.location.add(id=number).line.add(function_id=number, line=3 + number)
    profile.sample.add(location_id=[2, 1], value=[3, 30_000_000])
    profile.sample.add(location_id=[1], value=[1, 10_000_000])
    data = bytes(profile.SerializeToString())
    return gzip.compress(data, mtime=0) if packed else data


def otlp(type_: tuple[str, str] = ("samples", "count"), period: int = 0) -> bytes:
    """Return a profile as OpenTelemetry's exporters send it."""
    data = OTLP["ProfilesData"]()
    tables = data.dictionary
    tables.string_table.extend(
        text.encode() for text in ("", *type_, "main", "work", "/srv/app.go", "/lib/libc.so.6")
    )
    tables.mapping_table.add()
    tables.mapping_table.add(filename_strindex=6)
    tables.function_table.add()
    tables.function_table.add(name_strindex=3, filename_strindex=5)
    tables.function_table.add(name_strindex=4)
    tables.location_table.add()
    tables.location_table.add().lines.add(function_index=1, line=5)
    tables.location_table.add().lines.add(function_index=2)
    tables.location_table.add(mapping_index=1, address=0x1F)
    tables.stack_table.add()
    tables.stack_table.add(location_indices=[2, 1])
    tables.stack_table.add(location_indices=[1])
    tables.stack_table.add(location_indices=[3, 1])
    profile = data.resource_profiles.add().scope_profiles.add().profiles.add(period=period)
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = 1, 2
    profile.period_type.unit_strindex = 2
    profile.samples.add(stack_index=1, values=[3])
    profile.samples.add(stack_index=2, timestamps_unix_nano=[10])
    return bytes(data.SerializeToString())


def jfr() -> bytes:
    """Return a flight recording of two chunks, in whose second a thread sleeps."""
    first = [jfr_writer.event(jfr_writer.EXECUTION, 1, jfr_writer.RUNNABLE)] * 3
    second = [
        jfr_writer.event(jfr_writer.EXECUTION, 2, jfr_writer.RUNNABLE),
        jfr_writer.event(jfr_writer.EXECUTION, 2, jfr_writer.SLEEPING),
        jfr_writer.event(jfr_writer.ALLOCATION, 1, 4096),
        jfr_writer.event(jfr_writer.MONITOR, 250, 1),
    ]
    return jfr_writer.chunk(*first) + jfr_writer.chunk(*second)


def _node(id_: int, name: str, line: int, children: Sequence[int] = ()) -> dict[str, object]:
    call = {"functionName": name, "url": "/srv/app.js" if line else "", "lineNumber": line - 1}
    return {"id": id_, "callFrame": call, "hitCount": 1, "children": list(children)}


FILES: Mapping[str, bytes] = {
    "collapsed": b"main;work 3\nmain 1\n",
    "perf": PERF.encode(),
    "pprof": pprof(packed=False),
    "speedscope": speedscope(),
    "chrome": cpuprofile(),
    "austin": AUSTIN.encode(),
    "mojo": mojo(),
    "dtrace": DTRACE.encode(),
    "pprof-legacy": legacy_pprof(),
    "otlp": otlp(),
    "jfr": jfr(),
}
"""A file of each format, by the name of the format."""
