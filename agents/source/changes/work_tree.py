"""A work tree with a diff that leads to it, or from it: two versions, as a commit and its parent are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import xxhash

from agents.source.changes.diff import FileDiff, other_version, patch_of
from agents.source.changes.git import MAX_FILE_BYTES, MAX_READ_BYTES, Commit, FileChange, Repository
from agents.source.changes.languages import language_of
from agents.source.changes.patch import FilePatch
from pipeline.model.errors import ConfigError, file_errors

DIFF = Commit("diff", "before", "", 0.0, "", "")
"""Stands for the change of a diff."""


class WorkTree:
    """The versions before and after a diff, of which a work tree is one; answers as Repository does of DIFF.

    Only regular files inside the work tree are read, as far as Repository would read them.

    Args:
        repository: Repository of the work tree.
        diffs: Files of the diff, with paths from the top.

    Raises:
        ConfigError: A file with code is neither the version before nor the one after.
        GitError: There is no work tree.
    """

    def __init__(self, repository: Repository, diffs: Sequence[FileDiff]) -> None:
        self._top = repository.top()
        self._tracked = Repository(self._top).tracked()
        self._room = MAX_READ_BYTES
        self._contents: dict[str, bytes] = {}
        self._files: list[FileChange] = []
        self._patches: dict[tuple[str, str], FilePatch] = {}
        self._after: dict[str, str] = {}  # path → blob
        for diff in diffs:
            self._add(diff)

    def is_cut_off(self, commit: Commit) -> bool:
        """Return False: the version before is known."""
        return False

    def changed_files(self, commit: Commit) -> list[FileChange]:
        """Return the files of the diff."""
        return self._files

    def patches(self, commit: Commit) -> tuple[dict[tuple[str, str], FilePatch], str]:
        """Return the changed lines by the blobs before and after, all of them."""
        return self._patches, ""

    def paths(self, revision: str) -> frozenset[str]:
        """Return the path of every file of a version."""
        old, new = ({path for path in paths if path} for paths in zip(*self._both(), strict=True))
        own, opposite = (new, old) if revision == DIFF.sha else (old, new)
        return frozenset((self._tracked - opposite) | own)

    def read(self, objects: Sequence[str]) -> dict[str, bytes]:
        """Return contents of the diff by their blobs, and of ``diff:PATH`` as it is after it."""
        contents: dict[str, bytes] = {}
        for name in objects:
            path = name.removeprefix(f"{DIFF.sha}:")
            content = self._contents.get(self._after.get(path, "") if path != name else name)
            if content is None and path != name and path in self._tracked:
                content = self._text(path)
            if content is not None:
                contents[name] = content
        return contents

    def _both(self) -> list[tuple[str, str]]:
        return [(file.old_path, file.new_path) for file in self._files] or [("", "")]

    def _add(self, diff: FileDiff) -> None:
        before, after = self._versions(diff)
        old_blob, new_blob = (
            self._blob(diff.old_path, before, diff),
            self._blob(diff.new_path, after, diff),
        )
        file = FileChange(diff.old_path, diff.new_path, old_blob, new_blob)
        self._files.append(file)
        self._after[diff.new_path] = file.new_blob
        if diff.hunks or diff.binary:
            self._patches[file.blobs] = patch_of(diff, file.blobs)

    def _blob(self, path: str, content: bytes | None, diff: FileDiff) -> str:
        """Return the id of a version of a file, under which its content is kept if it is known."""
        if not path or not diff.regular:
            return ""
        if content is None:
            return f"unread {path}"
        blob = xxhash.xxh3_128_hexdigest(content)
        self._contents[blob] = content
        return blob

    def _versions(self, diff: FileDiff) -> tuple[bytes | None, bytes | None]:
        """Return the content before and after, None where it is not known."""
        if diff.binary or not diff.regular:
            return None, None
        if not diff.old_path:
            return None, other_version(b"", diff.hunks, b"-")
        if not diff.new_path:
            return other_version(b"", diff.hunks, b"+"), None
        after, before = (self._text(path) for path in (diff.new_path, diff.old_path))
        if after is not None and (reconstructed := other_version(after, diff.hunks, b"+")) is not None:
            return reconstructed, after
        if before is not None and (reconstructed := other_version(before, diff.hunks, b"-")) is not None:
            return before, reconstructed
        if not self._is_large(diff) and (diff.path.endswith(".py") or language_of(diff.path)):
            raise ConfigError(f"the diff does not fit {diff.path!r} in {self._top}")
        return None, None

    def _is_large(self, diff: FileDiff) -> bool:
        files = [file for path in (diff.new_path, diff.old_path) if (file := self._file(path))]
        return self._room <= 0 or any(file.stat().st_size > MAX_FILE_BYTES for file in files)

    def _text(self, path: str) -> bytes | None:
        """Return the content of a file of the work tree; None if there is none that may be read."""
        file = self._file(path)
        if file is None or file.stat().st_size > MAX_FILE_BYTES or self._room <= 0:
            return None
        with file_errors(file):
            content = file.read_bytes()
        self._room -= len(content)
        return content

    def _file(self, path: str) -> Path | None:
        """Return a regular file inside the work tree; a diff may name any other."""
        parts = PurePosixPath(path).parts
        if not parts or "\0" in path or ".." in parts or parts[0] in ("/", ".git"):
            return None
        file = self._top / path
        if file.is_symlink() or not file.is_file() or not file.resolve().is_relative_to(self._top.resolve()):
            return None
        return file
