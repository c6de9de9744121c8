"""DTrace's output as stacks."""

from __future__ import annotations

import pytest

from agents.profiles.formats import parse
from agents.profiles.formats.dtrace import MAX_DEPTH, DtraceFormat

DTRACE = DtraceFormat()


@pytest.mark.parametrize(
    ("text", "stacks"),
    [
        pytest.param("\n  a`f+0x3\n  a`main\n  3\n", {("a`main", "a`f"): 3}, id="offsets"),
        pytest.param("\n  a`f(int, char*)+0x3\n  3\n", {("a`f(int, char*)",): 3}, id="a signature"),
        pytest.param("\n  0x104d08831\n  a`main\n 1\n", {("a`main", "[unknown]"): 1}, id="no symbol"),
        pytest.param("a header\n\n  j`f->g\n  1\n", {("j`f", "g_[i]"): 1}, id="Java's inlined functions"),
        pytest.param("\n  a`f->\n  1\n", {("a`f->",): 1}, id="an arrow to nothing"),
        pytest.param("\n  a`f\n  1\n  a`f\n  2\n", {("a`f",): 3}, id="no blank lines between"),
        pytest.param("\n  cafe\n  a`f\n  2\n", {("a`f", "cafe"): 2}, id="a name without a module"),
        pytest.param("\n  a`f\r\n  2\r\n", {("a`f",): 2}, id="CR LF"),
        pytest.param("\n\n   7\n\n  a`f\n  2\n", {("a`f",): 2, (): 7}, id="a count alone has no frames"),
    ],
)
def test_stacks(text: str, stacks: dict[tuple[str, ...], int]) -> None:
    parsed = parse(DTRACE, text.encode())
    assert parsed.frameless == stacks.get((), 0)
    assert parsed.stacks == {stack: count for stack, count in stacks.items() if stack}
    assert parsed.invalid == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\n  a`f\n  2\n\n  a`g\n", id="no count at the end"),
        pytest.param("\n  a`f\n  2\n" + "  a`g\n" * (MAX_DEPTH + 1), id="endlessly deep"),
    ],
)
def test_stacks_without_an_end_are_invalid(text: str) -> None:
    parsed = parse(DTRACE, text.encode())
    assert parsed.stacks == {("a`f",): 2}
    assert parsed.invalid >= 1
    assert parsed.first_invalid.startswith("line 5" if text.count("g") == 1 else "line 4")


@pytest.mark.parametrize("data", [b"  a;b\n  3\n", b"  a`f 3\n", b"a`f\n3\n"])
def test_other_files_are_not_recognised(data: bytes) -> None:
    assert not DTRACE.recognises(data)
