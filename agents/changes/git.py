"""Reads a git repository through the ``git`` program, without touching it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ConfigError

_REGULAR = ("100644", "100755")
_ABSENT_MODE = "000000"


class GitError(ConfigError):
    """The repository or revision is wrong; the text is git's own."""


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


class Repository:
    """A repository on this machine, given by any folder inside it.

    Every method raises GitError if git fails, with git's reason.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise GitError(f"--repo: {path}: no such folder")
        self._path = path
        self._git("rev-parse", "--git-dir")

    def commit(self, revision: str) -> Commit:
        """Read the commit that a revision names."""
        sha = self._resolve(revision)
        shown = self._git("show", "--no-patch", "--format=%P%x00%an <%ae>%x00%ct%x00%s%x00%b", sha)
        parents, author, committed, title, body = shown.split("\0", 4)
        return Commit(sha, parents.split(" ")[0], author, float(committed), title, body.strip())

    def commits(self, revisions: str) -> list[Commit]:
        """Read the commits of ``A..B``, oldest first; what a merge brought in counts as that merge."""
        first, dots, last = revisions.partition("..")
        if not (first and dots and last) or last.startswith("."):
            raise GitError(f"--range: should be A..B, not {revisions!r}")
        span = f"{self._resolve(first)}..{self._resolve(last)}"
        return [
            self.commit(sha) for sha in self._git("rev-list", "--reverse", "--first-parent", span).split()
        ]

    def changed_files(self, commit: Commit) -> list[FileChange]:
        """Compare a commit with its first parent, following renames."""
        sides = (commit.parent, commit.sha) if commit.parent else ("--root", "--no-commit-id", commit.sha)
        out = self._git("diff-tree", "-r", "-z", "-M", "--raw", "--no-abbrev", *sides)
        tokens = iter(out.split("\0"))
        changes = []
        for head in tokens:
            if not head.startswith(":"):
                continue
            old_mode, new_mode, old_blob, new_blob, status = head[1:].split(" ")
            path = next(tokens)
            other = next(tokens) if status[0] in "RC" else path
            changes.append(
                FileChange(
                    old_path="" if old_mode == _ABSENT_MODE else path,
                    new_path="" if new_mode == _ABSENT_MODE else other,
                    old_blob=old_blob if old_mode in _REGULAR else "",
                    new_blob=new_blob if new_mode in _REGULAR else "",
                )
            )
        return changes

    def is_cut_off(self, commit: Commit) -> bool:
        """Tell whether the commit only seems to be a first one, because the clone is shallow."""
        return not commit.parent and self._git("rev-parse", "--is-shallow-repository").strip() == "true"

    def paths(self, revision: str) -> frozenset[str]:
        """Return the path of every file of a commit."""
        return frozenset(self._git("ls-tree", "-r", "-z", "--name-only", revision).split("\0"))

    def read(self, blobs: Sequence[str]) -> list[bytes]:
        """Return the content of blobs."""
        if not blobs:
            return []
        out = self._run(("cat-file", "--batch"), "\n".join(blobs).encode() + b"\n")
        contents, position = [], 0
        for blob in blobs:
            line_end = out.index(b"\n", position)
            header = out[position:line_end].split()
            if header[-1] == b"missing":
                raise GitError(f"git: blob {blob} is missing")
            size = int(header[2])
            contents.append(out[line_end + 1 : line_end + 1 + size])
            position = line_end + size + 2
        return contents

    def _resolve(self, revision: str) -> str:
        try:
            return self._git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"
            ).strip()
        except GitError:
            raise GitError(f"--repo: {self._path}: no commit {revision!r}") from None

    def _git(self, *arguments: str) -> str:
        return self._run(arguments, None).decode("utf-8", errors="replace")

    def _run(self, arguments: Sequence[str], stdin: bytes | None) -> bytes:
        options = ("-c", "i18n.logOutputEncoding=UTF-8", "-c", "log.showSignature=false")
        try:
            done = subprocess.run(
                ["git", "-C", str(self._path), "--no-pager", "--no-replace-objects", *options, *arguments],
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise GitError("git is not installed") from None
        if done.returncode:
            reason = done.stderr.decode("utf-8", errors="replace").strip().split("\n")[0]
            raise GitError(f"--repo: {self._path}: {reason.removeprefix('fatal: ') or 'git failed'}")
        return done.stdout
