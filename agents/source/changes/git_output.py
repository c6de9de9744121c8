"""Git's output as values. The repository may be hostile, so nothing here trusts a line to be whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

COMMIT_FORMAT = "%H%x00%P%x00%an <%ae>%x00%ct%x00%s%x00%b"
"""The format of ``git log -z`` that ``parse_commits`` reads."""

_FIELDS = 6
_ID = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")

TAG_FORMAT = (
    "%(creatordate:unix)%00%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)%00%(refname)"
)
"""The format of ``git for-each-ref`` that ``parse_tags`` reads."""

_REGULAR = ("100644", "100755")
_ABSENT_MODE = "000000"
_MOST_DIGITS = 18  # most digits of a size or a time


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. ``time`` is its committer's, in epoch seconds; ``parent`` is empty for a first commit."""

    sha: str
    parent: str
    author: str
    time: float
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag and the commit that it names; ``time`` (epoch seconds) is the tag's own if it is annotated."""

    name: str
    sha: str
    time: float


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a commit: paths and blob ids before and after, empty where it did not exist.

    Blob ids are empty too for what is not a regular file, such as a symbolic link or a submodule.
    """

    old_path: str
    new_path: str
    old_blob: str
    new_blob: str

    @property
    def path(self) -> str:
        """Its path, the one before if it was deleted."""
        return self.new_path or self.old_path

    @property
    def blobs(self) -> tuple[str, str]:
        """Its blob ids before and after, empty where there is no content."""
        return self.old_blob if self.old_blob.strip("0") else "", (
            self.new_blob if self.new_blob.strip("0") else ""
        )


def parse_commits(shown: str) -> list[Commit]:
    """Read commits in COMMIT_FORMAT. One without a time, which no git makes, is of 1970."""
    values = shown.split("\0")
    firsts = range(0, len(values) - _FIELDS + 1, _FIELDS)
    return [parse_commit(values[first], values[first + 1 : first + _FIELDS]) for first in firsts]


def parse_commit(sha: str, values: Sequence[str]) -> Commit:
    """Read what follows the id of a commit in COMMIT_FORMAT, as far as it goes."""
    parents, author, committed, title, body = [*values, "", "", "", "", ""][:5]
    return Commit(sha, parents.split(" ")[0], author, _number(committed) or 0.0, title, body.strip())


def split_listings(listed: str) -> dict[str, str]:
    """Split what ``git diff-tree --stdin --raw -z`` prints into the listing of each commit."""
    by_commit: dict[str, list[str]] = {}
    sha, paths = "", 0
    for token in listed.split("\0"):
        if paths:
            paths -= 1
        elif token.startswith(":"):
            paths = 2 if token.rpartition(" ")[2][:1] in ("R", "C") else 1
        else:
            sha = token
            continue
        by_commit.setdefault(sha, []).append(token)
    return {sha: "\0".join(tokens) for sha, tokens in by_commit.items()}


def split_patches(patches: bytes) -> dict[str, bytes]:
    """Split what ``git diff-tree --stdin -p`` prints: a line of a patch is never a bare id."""
    by_commit: dict[str, list[bytes]] = {}
    lines: list[bytes] = []
    for line in patches.split(b"\n"):
        if _ID.fullmatch(line):
            lines = by_commit.setdefault(line.decode(), [])
        else:
            lines.append(line)
    return {sha: b"\n".join([*lines, b""]) for sha, lines in by_commit.items()}


def parse_tags(listed: str) -> list[Tag]:
    """Read tags in TAG_FORMAT, oldest first; tags of anything but a commit are left out."""
    tags = []
    for line in listed.split("\n"):  # and at no other line end: a name may hold those of Unicode
        parts = line.split("\0")
        if len(parts) != 6:
            continue
        created, kind, sha, inner_kind, inner, ref = parts
        time = _number(created)
        if "commit" in (kind, inner_kind) and time is not None:
            name = ref.removeprefix("refs/tags/")
            tags.append(Tag(name, sha if kind == "commit" else inner, time))
    return sorted(tags, key=lambda tag: (tag.time, tag.name))


def parse_files(listed: str) -> list[FileChange]:
    """Read what ``git diff-tree --raw -z`` prints; an entry that breaks off is left out."""
    tokens = iter(listed.split("\0"))
    changes = []
    for head in tokens:
        parts = head[1:].split(" ")
        if not head.startswith(":") or len(parts) != 5 or not parts[4]:
            continue
        old_mode, new_mode, old_blob, new_blob, status = parts
        path = next(tokens, None)
        new = next(tokens, None) if status[0] in "RC" else path
        if path is None or new is None:
            break
        changes.append(
            FileChange(
                old_path="" if old_mode == _ABSENT_MODE else path,
                new_path="" if new_mode == _ABSENT_MODE else new,
                old_blob=old_blob if old_mode in _REGULAR else "",
                new_blob=new_blob if new_mode in _REGULAR else "",
            )
        )
    return changes


def parse_sizes(listed: bytes) -> Iterator[int | None]:
    """Read what ``git cat-file --batch-check`` prints: the size of each object, None if it is no blob."""
    for line in listed.split(b"\n"):
        words = line.split()
        yield _size(words[2]) if len(words) == 3 and words[1] == b"blob" else None


def parse_contents(batch: bytes) -> Iterator[bytes | None]:
    """Yield each content that ``git cat-file --batch`` prints, None for missing ones; the last may miss."""
    position = 0
    while (line_end := batch.find(b"\n", position)) >= 0:
        words = batch[position:line_end].split()
        position = line_end + 1
        size = _size(words[2]) if len(words) == 3 else None
        if size is None:  # "… missing", without a content
            yield None
            continue
        yield batch[position : position + size]
        position += size + 1


def _number(text: str) -> float | None:
    digits = text.removeprefix("-")
    return float(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


def _size(word: bytes) -> int | None:
    return int(word) if word.isdigit() and len(word) <= _MOST_DIGITS else None
