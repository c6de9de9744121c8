from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.profiles.formats import Measure, parse
from agents.profiles.formats.collapsed import CollapsedFormat, parse_collapsed
from agents.profiles.message import ProfileOrigin
from agents.profiles.profile_files import Import, read_files
from pipeline.model.errors import ConfigError
from tests.support.paths import REAL_DATA

SAMPLES = REAL_DATA / "profiles"
SIMPLE = {("a", "b", "c"): 5, ("a", "b", "d"): 4, ("a", "b"): 5}


@pytest.mark.parametrize(
    ("data", "stacks"),
    [
        pytest.param(b"a;b 3\na;b 4\n", {("a", "b"): 7}, id="equal stacks add up"),
        pytest.param(b"a;b 3\r\nc 1\r\n", {("a", "b"): 3, ("c",): 1}, id="CR LF"),
        pytest.param(b"a;b\t3", {("a", "b"): 3}, id="tab"),
        pytest.param(b"a b(int, x);c d 3", {("a b(int, x)", "c d"): 3}, id="spaces in names"),
        pytest.param(b"f (a.py:1);g (b.py:2) 12", {("f (a.py:1)", "g (b.py:2)"): 12}, id="py-spy"),
        pytest.param(b"a;;b 2", {("a", "b"): 2}, id="empty frames vanish"),
        pytest.param(
            b"main;f(Ljava/lang/String;)V;g([La/B;I)Lc/D;;h(I)V 2",
            {("main", "f(Ljava/lang/String;)V", "g([La/B;I)Lc/D", "h(I)V"): 2},
            id="descriptors of the JVM",
        ),
        pytest.param(
            b"Lcom/acme/Shop;::total(Ljava/lang/String;)V;La/B;.run 2",
            {("Lcom/acme/Shop;::total(Ljava/lang/String;)V", "La/B;.run"): 2},
            id="classes as the JVM describes them",
        ),
        pytest.param(
            b"f(L;)V;Load;run(a;b) 2", {("f(L", ")V", "Load", "run(a", "b)"): 2}, id="no descriptors"
        ),
        pytest.param(b"a 3.0\nb 2.\n", {("a",): 3, ("b",): 2}, id="whole decimals"),
        pytest.param(b"a 0\nb 1", {("b",): 1}, id="counted 0 times"),
        pytest.param(b"\xef\xbb\xbfa 1", {("a",): 1}, id="UTF-8 with a mark"),
        pytest.param("é 1".encode("utf-16"), {("é",): 1}, id="UTF-16 with a mark"),
        pytest.param("ab;c 1".encode("utf-16-le"), {("ab", "c"): 1}, id="UTF-16 LE without a mark"),
        pytest.param("ab;c 1".encode("utf-16-be"), {("ab", "c"): 1}, id="UTF-16 BE without a mark"),
        pytest.param(b"a\xff;b 1", {("a\ufffd", "b"): 1}, id="a byte that is not UTF-8"),
        pytest.param("a\u2028b;c 1".encode(), {("a\u2028b", "c"): 1}, id="only line feeds end lines"),
        pytest.param(b"", {}, id="empty"),
        pytest.param(
            b"#<Class:Order>.load;Order#total 7\n//api/cart;render 2\n#\n//\n",
            {("#<Class:Order>.load", "Order#total"): 7, ("//api/cart", "render"): 2},
            id="Ruby's singleton classes, and roots that are hosts",
        ),
        pytest.param(b"# frames 3\n// more 4\n\n  \na 1", {("a",): 1}, id="comments and blank lines"),
    ],
)
def test_stacks_are_read(data: bytes, stacks: dict[tuple[str, ...], int]) -> None:
    collapsed = parse_collapsed(data)
    assert collapsed.stacks == stacks
    assert collapsed.invalid == 0


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("invalid line", id="no count"),
        pytest.param("a;b3", id="no space before the count"),
        pytest.param("a -3", id="negative"),
        pytest.param("#<Class:Order>;load", id="no comment, and no count"),
        pytest.param("a 1e3", id="exponent"),
        pytest.param("a ٣", id="digits of another script"),
        pytest.param("a " + "9" * 5000, id="absurdly many digits"),
        pytest.param(f"a {2**40 + 1}", id="absurdly many samples"),
    ],
)
def test_invalid_lines_are_counted_and_shown(line: str) -> None:
    collapsed = parse_collapsed(f"a 1\n{line}\nb 2\n{line}".encode())
    assert collapsed.stacks == {("a",): 1, ("b",): 2}
    assert collapsed.invalid == 2
    assert collapsed.first_invalid.startswith(f"line 2: '{line[:10]}")


def test_parts_of_samples_are_neither_made_nor_lost_and_those_without_frames_distinguished() -> None:
    collapsed = parse_collapsed(b"a 1.5\nb 0.5\nc 2\na 0.5\nd 0.5\n 2\n; 3\n")
    assert (collapsed.samples, collapsed.frameless, collapsed.invalid) == (5, 5, 0)
    assert (collapsed.stacks["a",], collapsed.stacks["c",]) == (2, 2)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared profiles are not beside this checkout")
@pytest.mark.parametrize("name", ["simple-crlf.txt", "simple-utf16-le.txt", "simple-with-invalids.txt"])
def test_real_files(name: str) -> None:
    assert parse_collapsed((SAMPLES / name).read_bytes()).stacks == SIMPLE


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        pytest.param("main;work 3\nmain 1\n", True, id="stacks"),
        pytest.param("Web Content;js main;f 3\n" * 4, True, id="spaces in names"),
        pytest.param("main; work 3\nmain;f 2\n", True, id="one space among stacks"),
        pytest.param("SELECT a FROM t; LIMIT 3\n" * 9, False, id="SQL"),
        pytest.param("session=a; Path=/; Max-Age 3600\n" * 5, False, id="headers"),
        pytest.param("chain a; rule 1; packets 10\nchain a; rule 2; packets 9\n", False, id="prose"),
    ],
)
def test_what_is_recognised(text: str, is_taken: bool) -> None:
    assert CollapsedFormat().recognises(text.encode()) == is_taken


@pytest.mark.parametrize(
    ("value", "measure"),
    [
        ("", Measure("samples", "count")),
        ("samples", Measure("samples", "count")),
        ("us", Measure("weight", "microseconds")),
        ("nanoseconds", Measure("weight", "nanoseconds")),
        ("bytes", Measure("bytes", "bytes")),
    ],
)
def test_lines_count_what_the_user_says(value: str, measure: Measure) -> None:
    assert parse(CollapsedFormat(), b"main;work 3000\n", value).measure == measure


def test_lines_of_time_are_divided_by_the_period_and_refused_without_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("main;work 30000000\nmain;rest 10000000\n")
    request = Import(ProfileOrigin("s", "h"), 1e9, 60.0, 10_000, value="nanoseconds")
    with pytest.raises(ConfigError, match="give it by --period"):
        read_files([tmp_path / "a"], request)
    with pytest.raises(ConfigError, match="say its unit by --value"):
        read_files([tmp_path / "a"], replace(request, value="", period=1e7))
    (file,) = read_files([tmp_path / "a"], replace(request, period=1e7))
    assert file.parsed.samples == 4
