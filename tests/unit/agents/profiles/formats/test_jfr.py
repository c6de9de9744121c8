"""Flight recordings as stacks."""

from __future__ import annotations

import time

import pytest

from agents.profiles.formats import parse
from agents.profiles.formats.jfr import JfrFormat
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
    ],
)
def test_events_of_other_values_are_counted(data: bytes, value: str, left_out: dict[str, int]) -> None:
    assert parse(JFR, data, value).left_out == left_out


def test_samples_without_a_stack_are_frameless_and_those_of_no_such_stack_invalid() -> None:
    without = [event(jfr.EXECUTION, 0, 1), event(jfr.CPU_TIME, 0, 1), event(jfr.CPU_TIME, 1, 0)]
    parsed = parse(JFR, chunk(*without, event(jfr.EXECUTION, 99, 1)))
    assert (parsed.frameless, parsed.samples, parsed.invalid) == (2, 1, 1)
    assert "no such stack" in parsed.first_invalid


GOOD = event(jfr.EXECUTION, 1, 1)
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
