"""Flight recordings as stacks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agents.profiles.formats import Measure, parse
from agents.profiles.formats import jfr as jfr_format
from agents.profiles.formats.jfr import JfrFormat
from agents.profiles.message import ProfileOrigin
from agents.profiles.profile_files import Import, read_files
from pipeline.model.errors import ConfigError
from tests.support import jfr_writer as jfr
from tests.support.jfr_writer import chunk, event
from tests.support.profile_files import FILES

JFR = JfrFormat()
CART, WRITE = ("shop.App.main", "shop.Cart.total"), ("shop.App.main", "write_[k]")


WALL = chunk(event(jfr.WALL, 1, jfr.RUNNABLE, 2), event(jfr.WALL, 2, jfr.SLEEPING, 7))


@pytest.mark.parametrize(
    ("data", "value", "stacks"),
    [
        pytest.param(FILES["jfr"], "", {CART: 3, WRITE: 1}, id="threads that run"),
        pytest.param(FILES["jfr"], "cpu", {CART: 3, WRITE: 1}, id="the same"),
        pytest.param(FILES["jfr"], "wall", {CART: 3, WRITE: 2}, id="all threads"),
        pytest.param(FILES["jfr"], "alloc", {CART: 4096}, id="bytes"),
        pytest.param(FILES["jfr"], "lock", {CART: 250_000_000}, id="nanoseconds of ticks"),
        pytest.param(WALL, "cpu", {CART: 2}, id="async-profiler's wall clock: threads that run"),
        pytest.param(WALL, "", {CART: 2, WRITE: 7}, id="async-profiler's wall clock"),
    ],
)
def test_values(data: bytes, value: str, stacks: dict[tuple[str, ...], int]) -> None:
    parsed = parse(JFR, data, value)
    assert (parsed.stacks, parsed.invalid) == (stacks, 0)
    with pytest.raises(ConfigError, match="has no value 'x': there are cpu, wall"):
        parse(JFR, FILES["jfr"], "x")


@pytest.mark.parametrize(
    ("data", "value", "left_out"),
    [
        pytest.param(FILES["jfr"], "", {"of waiting threads": 1, "alloc": 1, "lock": 1}, id="beside CPU"),
        pytest.param(FILES["jfr"], "alloc", {"cpu": 5, "lock": 1}, id="beside memory"),
        pytest.param(WALL, "", {}, id="nothing"),
        pytest.param(WALL, "cpu", {"of waiting threads": 7}, id="samples of one event"),
    ],
)
def test_events_of_other_values_are_counted(data: bytes, value: str, left_out: dict[str, int]) -> None:
    assert parse(JFR, data, value).left_out == left_out


GOOD = event(jfr.EXECUTION, 1, 1)


def test_samples_without_a_stack_are_frameless_and_those_of_no_such_stack_invalid() -> None:
    without = [event(jfr.CPU_TIME, 0, 0), event(jfr.CPU_TIME, 0, 1), event(jfr.CPU_TIME, 1, 0)]
    parsed = parse(JFR, chunk(*without, event(jfr.CPU_TIME, 99, 0)))
    assert (parsed.frameless, parsed.samples, parsed.invalid) == (2, 1, 1)
    assert "no such stack" in parsed.first_invalid


SAMPLES = (event(jfr.EXECUTION, 1, jfr.RUNNABLE), event(jfr.EXECUTION, 2, jfr.SLEEPING))


@pytest.mark.parametrize(
    ("settings", "value", "measure", "samples", "left_out"),
    [
        pytest.param({}, "", "cpu", 1, {"of waiting threads": 1}, id="the JVM's own"),
        pytest.param({"period": "20 ms"}, "", "cpu", 1, {"of waiting threads": 1}, id="another setting"),
        pytest.param({"event": "cpu"}, "", "cpu", 1, {"of waiting threads": 1}, id="CPU"),
        pytest.param({"event": "ctimer"}, "", "cpu", 1, {"of waiting threads": 1}, id="a timer of CPU"),
        pytest.param({"event": "wall"}, "", "wall", 2, {}, id="the wall"),
        pytest.param({"event": "wall"}, "cpu", "cpu", 1, {"of waiting threads": 1}, id="the wall's that run"),
        pytest.param({"event": "cycles:u"}, "", "cpu", 1, {"of waiting threads": 1}, id="a modifier"),
        pytest.param({"event": "cpu/cpu-cycles/"}, "", "cpu", 1, {"of waiting threads": 1}, id="a unit"),
        pytest.param({"event": "cache-misses"}, "", "cache-misses", 2, {}, id="a counter"),
        pytest.param({"event": "cache-misses"}, "cache-misses", "cache-misses", 2, {}, id="the same by name"),
        pytest.param({"event": "cache-misses"}, "cpu", "cpu", 0, {"cache-misses": 2}, id="no CPU in it"),
        pytest.param({"event": "malloc"}, "", "malloc()", 2, {}, id="a function"),
        pytest.param({"event": "cpu"}, "wall", "wall", 0, {"cpu": 2}, id="no wall in it"),
    ],
)
def test_async_profilers_event_says_what_its_samples_are(
    settings: dict[str, str], value: str, measure: str, samples: int, left_out: dict[str, int]
) -> None:
    said = [jfr.setting(name, text) for name, text in settings.items()]
    parsed = parse(JFR, chunk(*said, *SAMPLES), value)
    assert (parsed.measure, parsed.samples) == (Measure(measure), samples)
    assert (parsed.left_out, parsed.invalid) == (left_out, 0)
    assert parse(JFR, chunk(*said, SAMPLES[0]) + chunk(SAMPLES[1]), value).samples == samples, "once said"


def test_a_recording_with_another_event_than_cpu_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.jfr").write_bytes(chunk(jfr.setting("event", "cache-misses"), *SAMPLES))
    with pytest.raises(ConfigError, match="counts cache-misses .*, which is no CPU: --value cache-misses"):
        read_files([tmp_path / "a.jfr"], Import(ProfileOrigin("s", "h"), 1e9, 60.0, 10_000))


@pytest.mark.parametrize(
    ("chunks", "measure", "samples", "left_out"),
    [
        pytest.param([[event(jfr.ALLOCATION, 1, 640)], [GOOD]], "cpu", 1, {"alloc": 1}, id="CPU comes later"),
        pytest.param([[event(jfr.WALL, 1, 1, 3)], [], [GOOD]], "cpu", 1, {"wall": 1}, id="after the wall"),
        pytest.param([[], [event(jfr.MONITOR, 250, 1)]], "lock", 250_000_000, {}, id="no CPU at all"),
        pytest.param(
            [[], [event(jfr.WALL, 1, 1, 3), event(jfr.MONITOR, 9, 1)]], "wall", 3, {"lock": 1}, id="wall"
        ),
        pytest.param(
            [[event(jfr.CPU_TIME, 1, 0), GOOD]], "cpu", 1, {"jdk.ExecutionSample": 1}, id="CPU twice"
        ),
        pytest.param(
            [[event(jfr.CPU_TIME, 1, 0), event(jfr.LOST, 7)]], "cpu", 1, {"lost by the JVM": 7}, id="lost"
        ),
        pytest.param([[event(jfr.DATADOG, 1, 1, 3)]], "cpu", 3, {}, id="Datadog's, with weights"),
    ],
)
def test_the_whole_recording_decides_what_is_read(
    chunks: list[list[bytes]], measure: str, samples: int, left_out: dict[str, int]
) -> None:
    parsed = parse(JFR, b"".join(chunk(*events) for events in chunks))
    assert (parsed.measure.type, sum(parsed.stacks.values())) == (measure, samples)
    assert (dict(parsed.left_out), parsed.invalid) == (left_out, 0)


def test_a_damage_behind_the_first_chunk_leaves_what_is_before_it() -> None:
    parsed = parse(JFR, chunk(event(jfr.ALLOCATION, 1, 640)) + chunk(GOOD)[:-1])
    assert (parsed.measure.type, parsed.samples, parsed.invalid) == ("alloc", 640, 1)


def test_a_long_recording_without_cpu_asks_for_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jfr_format, "HELD_BYTES", 3000)
    long = chunk(event(jfr.ALLOCATION, 1, 640)) * 4
    with pytest.raises(ConfigError, match="has no cpu in its first .*--value says what to read, of alloc"):
        parse(JFR, long)
    assert parse(JFR, long, "alloc").samples == 2560


CIRCLE = {**jfr.TYPES, jfr.EXECUTION: ("jdk.ExecutionSample", (("self", jfr.EXECUTION, ""),))}
WIDE = {
    **jfr.TYPES,
    **{200 + level: (f"t{level}", (("a", 201 + level, ""), ("b", 201 + level, ""))) for level in range(30)},
    230: ("t30", ()),
    jfr.EXECUTION: ("jdk.ExecutionSample", (("a", 200, ""),)),
}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(chunk(GOOD)[:-1], "cut", id="cut"),
        pytest.param(chunk(GOOD, size=2**40), "a chunk of", id="a size that lies"),
        pytest.param(chunk(GOOD, size=0), "has not ended", id="a recording that goes on"),
        pytest.param(chunk(GOOD, size=20), "a chunk of 20", id="smaller than its header"),
        pytest.param(chunk(GOOD, features=0), "not compressed", id="another coding"),
        pytest.param(b"FLR\0" + bytes(64), "another version", id="another version"),
        pytest.param(b"FLR\0", "cut", id="a header alone"),
        pytest.param(chunk(b"\0" + GOOD), "an event of 0 bytes", id="an event of no size"),
        pytest.param(chunk(jfr.number(2**40)), "an event of", id="an event beyond the chunk"),
        pytest.param(chunk(GOOD, pools=GOOD), "another event than the header says", id="no constants"),
        pytest.param(chunk(GOOD, pools=jfr.constants(-7)), "", id="constants elsewhere"),
        pytest.param(
            chunk(GOOD, pools=jfr.sized(jfr.number(1) + b"\0\0\0\0\1\x0a" + jfr.number(2**50))),
            "more than there are bytes",
            id="a count that lies",
        ),
        pytest.param(
            chunk(GOOD, types=jfr.description(CIRCLE)), "that its type does not describe", id="circle"
        ),
        pytest.param(chunk(GOOD, types=jfr.description(WIDE)), "that its type does not describe", id="wide"),
        pytest.param(
            chunk(GOOD, types=jfr.sized(b"\0\0\0\0" + jfr.number(0) + b"\0\0" + b"\1" * 100)),
            "",
            id="no types",
        ),
    ],
)
def test_hostile_files_are_invalid_at_once(data: bytes, why: str) -> None:
    began = time.process_time()
    parsed = parse(JFR, data)
    assert parsed.samples == 0
    assert parsed.invalid == 1
    assert why in parsed.first_invalid
    assert time.process_time() - began < 2
