"""Unified diffs, as ``git diff`` and ``diff -u`` print them: files with paths and hunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from agents.source.changes.patch import FilePatch, Hunk, PatchLine, line_of
from pipeline.model.errors import ConfigError

Mark = Literal[b" ", b"-", b"+"]
"""Whether a line of a hunk is in both versions, in the one before alone, or in the one after alone."""

Version = Literal[b"-", b"+"]
"""The mark of the lines that one version has alone: the one before, or the one after."""

_MARKS: Mapping[bytes, Mark] = {b" ": b" ", b"-": b"-", b"+": b"+", b"": b" ", b"\r": b" "}
"""First byte of a line of a hunk → mark. Some programs leave out blanks at the end of a line."""

_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_INDEX = re.compile(rb"index ([0-9a-f]+)\.\.([0-9a-f]+)")
_MODE = re.compile(rb"(?:old mode|new mode|new file mode|deleted file mode|index \S+) (\d{6})$")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_REGULAR = (b"100644", b"100755")
_NULL = "/dev/null"


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Lines of both versions in their order, without line ends, and where they begin (from 1)."""

    starts: tuple[int, int]
    lines: tuple[tuple[Mark, bytes], ...]

    def side(self, version: Version) -> list[bytes]:
        """Return the lines that one version has."""
        return [text for mark, text in self.lines if mark in (b" ", version)]

    def first(self, version: Version) -> int:
        """Return the index, from 0, at which its lines stand in one version."""
        start = self.starts[version == b"+"]
        return start - 1 if self.side(version) else start  # of no lines it is the line before


@dataclass(slots=True)
class FileDiff:
    """One file: its paths before and after, empty where it does not exist, and its hunks."""

    old_path: str
    new_path: str
    hunks: list[DiffHunk] = field(default_factory=list)
    binary: bool = False
    regular: bool = True  # no link, no submodule
    by_git: bool = False
    blobs: tuple[str, str] | None = None  # before and after, empty where it does not exist; of git alone

    @property
    def path(self) -> str:
        """Its path, the one before if it was deleted."""
        return self.new_path or self.old_path


def parse_diff(data: bytes) -> list[FileDiff]:
    """Read a unified diff; what stands around its files, such as a commit's message, counts for nothing.

    Raises:
        ConfigError: it holds no file, breaks off, is a merge's combined diff, or has a file twice.
    """
    files = list(_files(data, partial=False))
    if not files:
        raise ConfigError("holds no diff")
    _check_paths(files)
    return files


def parse_patch(data: bytes) -> Iterator[FilePatch]:
    """Read a patch made with ``--full-index``; one that breaks off gives what is whole in it.

    Its paths count for nothing, since they can hold anything: a file is known by its blobs.
    """
    for file in _files(data, partial=True):
        if file.blobs:
            yield patch_of(file, file.blobs)


def _files(data: bytes, *, partial: bool) -> Iterator[FileDiff]:
    """Yield the files of a diff, one after the other; ``partial`` takes what is whole of a broken one."""
    lines = iter(data.removesuffix(b"\n").split(b"\n"))
    file: FileDiff | None = None
    before = b""
    for line in lines:
        following: FileDiff | None = None
        if not partial and line.startswith((b"diff --cc ", b"diff --combined ")):
            raise ConfigError("is the combined diff of a merge: give one between two versions")
        if line.startswith(b"diff --git "):
            following = _of_head(line.removeprefix(b"diff --git "))
        elif line.startswith(b"+++ ") and before.startswith(b"--- "):
            if not (file and file.by_git and not file.hunks):
                following = _of_names(before[4:], line[4:])
        elif file and (head := _HUNK.match(line)):
            file.hunks.append(_hunk(head, lines, None if partial else file.path))
        elif file and not file.hunks:
            _describe(file, line)
        if following:
            if file:
                yield file
            file = following
        before = line
    if file:
        yield file


def other_version(content: bytes, hunks: Sequence[DiffHunk], held: Version) -> bytes | None:
    """Return what a file is in the other version; None if the hunks do not fit.

    Args:
        content: Of the file, whose line ends may be those of Windows.
        hunks: Of the file.
        held: The version that ``content`` is.
    """
    wanted: Version = b"-" if held == b"+" else b"+"
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    result: list[bytes] = []
    position = 0
    for hunk in hunks:
        first, lines_known = hunk.first(held), hunk.side(held)
        if first < position or lines[first : first + len(lines_known)] != lines_known:
            return None
        result += [*lines[position:first], *hunk.side(wanted)]
        position = first + len(lines_known)
    return b"\n".join([*result, *lines[position:]])


def patch_of(diff: FileDiff, blobs: tuple[str, str]) -> FilePatch:
    """Return the changed lines of a file alone, as those of a commit."""
    return FilePatch(blobs, [part for hunk in diff.hunks for part in _changed(hunk)], diff.binary)


def _changed(hunk: DiffHunk) -> Iterator[Hunk]:
    """Yield the changed lines of a hunk, a part for each run of them."""
    removed: list[PatchLine] = []
    added: list[PatchLine] = []
    old, new = hunk.starts
    for mark, text in (*hunk.lines, (b" ", b"")):
        if mark == b"-":
            removed.append(line_of(old, text))
        elif mark == b"+":
            added.append(line_of(new, text))
        elif removed or added:
            yield Hunk(tuple(removed), tuple(added))
            removed, added = [], []
        old += mark != b"+"
        new += mark != b"-"


def _hunk(head: re.Match[bytes], lines: Iterator[bytes], path: str | None) -> DiffHunk:
    """Read as many lines as the head promises, so that no line of a file is taken for one of the diff.

    Raises:
        ConfigError: they are not all there; without a ``path``, the hunk has those that are.
    """
    old_start, old, new_start, new = (1 if part is None else int(part) for part in head.groups())
    marked: list[tuple[Mark, bytes]] = []
    while old > 0 or new > 0:
        line = next(lines, b"?")
        if line.startswith(b"\\"):  # no newline at the end of the file
            continue
        mark = _MARKS.get(line[:1])
        if mark is None:
            if path is None:
                break
            raise ConfigError(f"breaks off in a hunk of {path!r}")
        marked.append((mark, line[1:].removesuffix(b"\r")))
        old -= mark != b"+"
        new -= mark != b"-"
    if path is not None and (old or new):
        raise ConfigError(f"has a hunk of {path!r} with other lines than it says")
    return DiffHunk((old_start, new_start), tuple(marked))


def _of_head(names: bytes) -> FileDiff:
    """Return a file by git's first line: both names are the same, or lines about a renaming follow."""
    middle = len(names) // 2
    return replace(_of_names(names[:middle], names[middle + 1 :]), by_git=True)


def _of_names(old: bytes, new: bytes) -> FileDiff:
    return FileDiff(*_without_prefixes(_name(old), _name(new)))


def _describe(diff: FileDiff, line: bytes) -> None:
    """Take what one of git's lines before the hunks says of a file."""
    if index := _INDEX.match(line):
        before, after = (blob.decode() if blob.strip(b"0") else "" for blob in index.groups())
        diff.blobs = before, after
    if mode := _MODE.match(line):
        diff.regular = diff.regular and mode[1] in _REGULAR
    if line.startswith(b"new file mode "):
        diff.old_path = ""
    elif line.startswith(b"deleted file mode "):
        diff.new_path = ""
    elif line.startswith((b"rename from ", b"copy from ")):
        diff.old_path = _name(line.split(b" from ", 1)[1])
    elif line.startswith((b"rename to ", b"copy to ")):
        diff.new_path = _name(line.split(b" to ", 1)[1])
    elif line.startswith((b"Binary files ", b"GIT binary patch")):
        diff.binary = True


def _name(written: bytes) -> str:
    """Return a name as git writes it, perhaps in quotes, or with a tab and a time behind it."""
    if written.startswith(b'"'):
        inner = written.strip().removeprefix(b'"').removesuffix(b'"')
        written = _ESCAPE.sub(lambda escape: _escaped(escape[1]), inner)
    else:
        written = written.split(b"\t")[0].rstrip(b"\r")
    return written.decode("utf-8", errors="replace")


def _escaped(code: bytes) -> bytes:
    return bytes([int(code, 8) % 256]) if len(code) == 3 else _ESCAPED.get(code, code)


def _without_prefixes(old: str, new: str) -> tuple[str, str]:
    """Return names without what distinguishes the versions, such as ``a/`` and ``b/``, if there is any."""
    if _NULL in (old, new):
        return _after_prefix(old), _after_prefix(new)
    (before, _, old_rest), (after, _, new_rest) = old.partition("/"), new.partition("/")
    short = len(before) == len(after) == 1
    if before != after and old_rest and new_rest and (short or old_rest == new_rest):
        return old_rest, new_rest
    return old, new


def _after_prefix(name: str) -> str:
    return "" if name == _NULL else name.removeprefix("a/" if name.startswith("a/") else "b/")


def _check_paths(diffs: Sequence[FileDiff]) -> None:
    """Refuse files that come twice: of several commits a later diff does not stand on the same lines."""
    seen: set[str] = set()
    for diff in diffs:
        if diff.path in seen:
            raise ConfigError(f"has {diff.path!r} twice: give one diff between two versions")
        seen.add(diff.path)
