"""Changed lines of files, and their text as a change's content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MAX_CONTENT_BYTES = 20_000
"""Most bytes of a change's content: enough for its words, small beside the message's other parts."""

CUT = "[cut]"
"""The mark on a line of its own where lines of a file were left out."""

_MIN_SHARE = 512
"""Least bytes of a file: of very many files, the first have some words, rather than each a part of one."""

_MAX_LINE = 400


@dataclass(frozen=True, slots=True)
class PatchLine:
    """A changed line: its number, from 1, in the version that it belongs to, and its text."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that were replaced, and what replaced them."""

    removed: tuple[PatchLine, ...]
    added: tuple[PatchLine, ...]


@dataclass(slots=True)
class FilePatch:
    """The hunks of one file, known by its blobs before and after (empty where it did not exist)."""

    blobs: tuple[str, str]
    hunks: list[Hunk] = field(default_factory=list)
    binary: bool = False

    @property
    def touched(self) -> tuple[list[int], list[int]]:
        """The numbers of the lines removed from the version before, and of those added to the one after."""
        return (
            [line.number for hunk in self.hunks for line in hunk.removed],
            [line.number for hunk in self.hunks for line in hunk.added],
        )


def line_of(number: int, text: bytes) -> PatchLine:
    """Return a changed line as it is kept: printable, and of a bounded length."""
    return PatchLine(number, _text(text))


def content_of(sections: Sequence[tuple[str, FilePatch | None]]) -> str:
    """Return the text of a diff: each path, then its removed and added lines; at most MAX_CONTENT_BYTES.

    If it does not fit, small files keep all their lines and the largest share what is left, each cut at a
    line with a mark.
    """
    texts = [list(_section(path, patch)) for path, patch in sections]
    sizes = [sum(len(line.encode()) + 1 for line in lines) for lines in texts]
    share = max(_fair_share(sizes, MAX_CONTENT_BYTES), _MIN_SHARE)
    content: list[str] = []
    room = MAX_CONTENT_BYTES
    for lines in texts:
        part = _cut(lines, min(share, room))
        room -= sum(len(line.encode()) + 1 for line in part)
        content.extend(part)
        if room < len(CUT) + 1:
            break
    return "\n".join(content)


def _section(path: str, patch: FilePatch | None) -> Iterator[str]:
    yield _printable(path)
    for hunk in patch.hunks if patch else ():
        yield from (f"-{line.text}" for line in hunk.removed)
        yield from (f"+{line.text}" for line in hunk.added)


def _fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the largest size to which each can be cut so that all fit: the level of water-filling."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return max(room // left, 1)
        room -= size
        left -= 1
    return max(sizes, default=0)


def _cut(lines: Sequence[str], max_bytes: int) -> list[str]:
    sizes = [len(line.encode()) + 1 for line in lines]
    if sum(sizes) <= max_bytes:
        return list(lines)
    head: list[str] = []
    room = max_bytes - len(CUT) - 1
    for line, size in zip(lines, sizes, strict=True):
        room -= size
        if room < 0:
            break
        head.append(line)
    return [*head, CUT] if head else []


def _text(line: bytes) -> str:
    return _printable(line[: 4 * _MAX_LINE].decode("utf-8", errors="replace").rstrip("\r")[:_MAX_LINE])


def _printable(text: str) -> str:
    """Replace what a terminal or a JSON reader could stumble over: control characters, lone surrogates."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\t" else "�" for char in text)
