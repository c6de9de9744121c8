"""Austin's samples, as text and as MOJO."""

from __future__ import annotations

import pytest

from agents.profiles.formats import Measure, ProfileSource, parse, read_profile
from agents.profiles.formats.austin import AustinFormat
from agents.profiles.formats.mojo import MojoFormat
from pipeline.model.errors import ConfigError
from tests.support.profile_files import AUSTIN, mojo

TEXT, BINARY = AustinFormat(), MojoFormat()
FULL = (
    "# austin: 4.0.0\n# interval: 20\n# mode: full\n\nP1;T0:2;a.py:f:1 60,0,512\nP1;T0:2;a.py:g:2 40,1,-512\n"
)


def stacks_of(text: str, value: str = "") -> dict[tuple[str, ...], int]:
    return dict(parse(TEXT, text.encode(), value).stacks)


def test_lines_of_code_are_read() -> None:
    records = list(read_profile(TEXT, ProfileSource.of(AUSTIN.encode())).records)
    assert records[0] == (("main (/srv/shop/app.py:5)", "work (/srv/shop/app.py:7)"), 3000)
    assert records[2] == ((), 500)


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("<frozen importlib>:_load:94", "_load (<frozen importlib>)"),
        (r"C:\shop\app.py:f:3", r"f (C:\shop\app.py)"),
        ("a.py:A.f.<locals>.g:3:4:5:6", "A.f.<locals>.g (a.py)"),
        ("kernel:do_syscall:0", "do_syscall_[k]"),
        ("native@4f28b6:PyDict_SetItem:0", "PyDict_SetItem (native@4f28b6)"),
        (":GC:", "[GC]"),
    ],
)
def test_frames(frame: str, name: str) -> None:
    assert stacks_of(f"P1;T2;{frame} 3") == {(name,): 3}


@pytest.mark.parametrize(
    ("value", "stacks", "measure"),
    [
        ("", {("f (a.py)",): 3}, Measure("cpu", "microseconds", 20)),
        ("wall", {("f (a.py)",): 3, ("g (a.py)",): 2}, Measure("wall", "microseconds", 20)),
        ("memory", {("f (a.py)",): 512}, Measure("memory", "bytes")),
    ],
)
def test_full_mode(value: str, stacks: dict[tuple[str, ...], int], measure: Measure) -> None:
    parsed = parse(TEXT, FULL.encode(), value)
    assert (parsed.stacks, parsed.measure) == (stacks, measure)
    with pytest.raises(ConfigError, match="has no value 'memory': there are wall"):
        parse(TEXT, AUSTIN.encode(), "memory")


@pytest.mark.parametrize(
    "line", ["P1;T2;a.py:f 3", "P1;T2;a.py:f:1", "P1;T2;a.py:f:1 x", "P1;T2;a.py:f:1 -4", "3"]
)
def test_invalid_lines(line: str) -> None:
    parsed = parse(TEXT, f"P1;T2;a.py:f:1 1\n{line}\n".encode())
    assert (parsed.samples, parsed.invalid) == (1, 1)
    assert parsed.first_invalid.startswith("line 2")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions_of_mojo(version: int) -> None:
    records = list(read_profile(BINARY, ProfileSource.of(mojo(version))).records)
    assert records == [(("main (/app.py:5)", "work (/app.py:7)"), 60), (("main (/app.py:5)",), 20)]


STACK = ("main (/app.py)", "work (/app.py)")
FREED = mojo(metrics=(b"\x09\x3c\x0a\x80\x08", b"\x08\x09\x14\x0a\x4c"), mode="full")
"""512 bytes, and an idle thread that frees 12."""


@pytest.mark.parametrize(
    ("data", "value", "stacks"),
    [
        pytest.param(FREED, "", {STACK: 3}, id="idle threads do not count"),
        pytest.param(FREED, "wall", {STACK: 3, STACK[:1]: 1}, id="idle threads on the wall"),
        pytest.param(FREED, "memory", {STACK: 512}, id="freed memory"),
        pytest.param(
            mojo(metrics=(b"\x09\x3c", b"\x0d\x09\x14")),
            "",
            {STACK: 3, (*STACK, STACK[0]): 1},
            id="main, under the stack before",
        ),
        pytest.param(
            mojo(metrics=(b"\x06inner\0\x06outer\0\x09\x3c", b"\x09\x14")),
            "",
            {(*STACK, "outer_[k]", "inner_[k]"): 3, STACK[:1]: 1},
            id="frames of the kernel are nearest to the leaf",
        ),
    ],
)
def test_stacks_of_mojo(data: bytes, value: str, stacks: dict[tuple[str, ...], int]) -> None:
    assert parse(BINARY, data, value).stacks == stacks


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(mojo() + b"\x63", "no event of number 99", id="no such event"),
        pytest.param(mojo() + b"\x0b" + b"\xff" * 20, "too many bytes", id="an endless number"),
        pytest.param(mojo() + b"\x0b\x01" + b"a" * 2**21, "without an end", id="an endless text"),
        pytest.param(mojo() + b"\x05\x3f", "not defined", id="no such frame"),
    ],
)
def test_damage_in_mojo(data: bytes, why: str) -> None:
    parsed = parse(BINARY, data)
    assert parsed.invalid == 1
    assert why in parsed.first_invalid
