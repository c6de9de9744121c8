"""Bytes and lines of profile files."""

from __future__ import annotations

import gzip
import io

import pytest

from agents.profiles.formats import source
from agents.profiles.formats.source import HEAD_BYTES, MAX_LINE, Damaged, ProfileSource


def lines_of(data: bytes) -> list[tuple[int, str]]:
    return list(ProfileSource.of(data).lines())


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        pytest.param(b"a\nb", ["a", "b"], id="no line feed at the end"),
        pytest.param(b"a\n\nb\n", ["a", "", "b"], id="an empty line"),
        pytest.param("é\nü\n".encode("utf-16"), ["é", "ü"], id="UTF-16"),
        pytest.param(gzip.compress(b"a\n") + gzip.compress(b"b\n"), ["a", "b"], id="two members of gzip"),
        pytest.param(gzip.compress(b"a\n") + bytes(9), ["a"], id="padding after gzip"),
    ],
)
def test_lines(data: bytes, lines: list[str]) -> None:
    assert lines_of(data) == list(enumerate(lines, start=1))


def test_lines_over_the_borders_of_chunks() -> None:
    text = "\n".join(f"{number};é" * 50 for number in range(20_000))
    assert [line for _, line in lines_of(text.encode())] == text.split("\n")


def test_a_line_without_an_end_is_cut() -> None:
    lines = lines_of(b"a" * (5 * MAX_LINE) + b"\nb\n")
    assert [(number, len(line)) for number, line in lines] == [(1, MAX_LINE + 1), (2, 1)]


def test_a_stream_is_read_byte_by_byte() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(1)

    data = gzip.compress(b"a\nb\n")
    seen = bytearray()
    found = ProfileSource(Slow(data), seen.extend)
    assert list(found.lines()) == [(1, "a"), (2, "b")]
    assert bytes(seen) == data


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 100_000)
    found = ProfileSource.of(gzip.compress(bytes(50_000_000)))
    assert len(found.head) < 10 * HEAD_BYTES
    with pytest.raises(Damaged, match="more than 100000 bytes"):
        found.read_all()


@pytest.mark.parametrize(
    ("data", "why"),
    [(gzip.compress(b"a\n" * 9)[:-9], "cut"), (b"\x1f\x8bjunk of some length", "gzip")],
    ids=["cut", "junk"],  # gzip has the time in it, and processes that share the tests need the same names
)
def test_what_is_there_is_read_before_the_damage(data: bytes, why: str) -> None:
    lines: list[tuple[int, str]] = []
    with pytest.raises(Damaged, match=why):
        lines.extend(ProfileSource.of(data).lines())
    assert {line for _, line in lines} <= {"a"}
