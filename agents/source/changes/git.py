"""A git repository, read through the ``git`` program, not touched and not trusted.

A repository can name programs to run: hooks, a file system monitor, drivers for diffs, transports that fetch
what a partial clone lacks. None of them runs here, and no variable of the caller's environment redirects git
to another repository. What git prints is read up to a bound of bytes and of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agents.source.changes.diff import parse_patch
from agents.source.changes.git_output import (
    COMMIT_FORMAT,
    TAG_FORMAT,
    Commit,
    FileChange,
    Tag,
    parse_commits,
    parse_contents,
    parse_files,
    parse_sizes,
    parse_tags,
    split_listings,
    split_patches,
)
from agents.source.changes.git_program import GitError, git_failure, run_git
from agents.source.changes.patch import FilePatch
from pipeline.processes import Output

MAX_LISTING_BYTES = 128 * 1024**2
"""Longest list of files: some hundred thousand with long paths."""

MAX_PATCH_BYTES = 16 * 1024**2
"""Most bytes of a commit's diff that are read."""

MAX_FILE_BYTES = 4 * 1024**2
"""Largest file that is read; a larger one is hardly written by hand."""

MAX_READ_BYTES = 64 * 1024**2
"""Most bytes of all files that are read for one commit."""

RENAME_LIMIT = 1000
"""Most files that are compared pair by pair to find renames: git's own default, fixed."""

TIMEOUT_S = 60.0
"""Timeout of one call of git, in seconds."""

__all__ = ["Commit", "FileChange", "GitError", "Repository", "Tag"]


class Repository:
    """A repository on this machine, given by any folder inside it.

    Every method raises GitError if git fails, with git's reason, or takes longer than ``timeout_s``.
    """

    def __init__(self, path: Path, *, timeout_s: float = TIMEOUT_S) -> None:
        if not path.is_dir():
            raise GitError(f"--repo: {path}: no such folder")
        self._path = path
        self._timeout_s = timeout_s
        self._listings: dict[str, list[FileChange]] = {}
        self._patches: dict[str, bytes] = {}
        self._parents: dict[str, str] = {}
        self._trees: dict[str, frozenset[str]] = {}
        self._git("rev-parse", "--git-dir")

    def commit(self, revision: str) -> Commit:
        """Read the commit that a revision names."""
        return self._commits([self._resolve(revision)])[0]

    def commits(self, revisions: str) -> list[Commit]:
        """Read the commits of ``A..B``, oldest first; what a merge brought in counts as that merge."""
        first, dots, last = revisions.partition("..")
        if not (first and dots and last) or last.startswith("."):
            raise GitError(f"--range: should be A..B, not {revisions!r}")
        return self.commits_between(self._resolve(first), self._resolve(last))

    def commits_between(self, first: str, last: str, *, at_most: int | None = None) -> list[Commit]:
        """Read the commits after ``first`` up to ``last``, oldest first, the newest ``at_most`` of them."""
        return self.commits_since([self._resolve(first)], last, at_most=at_most)

    def commits_since(self, known: Sequence[str], last: str, *, at_most: int | None = None) -> list[Commit]:
        """Read the commits up to ``last`` that no commit of ``known`` (ids) reaches, oldest first."""
        limit = () if at_most is None else (f"--max-count={at_most}",)
        span = _lines([self._resolve(last), *(f"^{sha}" for sha in known)])
        shas = self._git("rev-list", "--first-parent", *limit, "--stdin", stdin=span).split()
        return self._commits(shas[::-1])

    def read_ahead(self, commits: Sequence[Commit]) -> None:
        """Compare many commits with their first parents by two calls of git instead of two for each.

        ``changed_files`` and ``patches`` then know the answers. Where git fails, or prints more than of one
        commit is read, nothing is known ahead, and each commit is compared by itself.
        """
        self._listings, self._patches = {}, {}
        self._parents = {commit.sha: commit.parent for commit in commits}
        stdin = _lines([f"{commit.sha} {commit.parent}".strip() for commit in commits])
        ids = [commit.sha for commit in commits]
        listed = self._read((*_LISTING, "--root", "--stdin"), stdin=stdin)
        if not _why_cut(listed):
            listings = split_listings(listed.data.decode("utf-8", errors="replace"))
            self._listings = {sha: parse_files(listings.get(sha, "")) for sha in ids}
        printed = self._read(
            (*_PATCH, "--root", "--stdin"), stdin=stdin, options=_PLAIN, max_bytes=MAX_PATCH_BYTES
        )
        if not _why_cut(printed):
            patches = split_patches(printed.data)
            self._patches = {sha: patches.get(sha, b"") for sha in ids}

    def branch_tip(self, branch: str) -> str:
        """Return the commit of a local or else a remote-tracking branch: ``main`` or ``origin/main``."""
        for namespace in ("refs/heads/", "refs/remotes/"):
            tip = self._find(namespace + branch)
            if tip:
                return tip
        raise GitError(f"--branch: {self._path}: no branch {branch!r}")

    def tags(self, pattern: str) -> list[Tag]:
        """Read the tags that match a glob, oldest first; tags of anything but a commit are left out."""
        if "\0" in pattern:
            return []
        return parse_tags(self._git("for-each-ref", f"--format={TAG_FORMAT}", "refs/tags/" + pattern))

    def tags_without(self, sha: str) -> list[Tag]:
        """Read the tags that do not contain a commit: earlier ones, and those of other branches."""
        # for-each-ref would walk the history anew for each tag
        listed = self._git("tag", "--list", "--no-column", f"--no-contains={sha}", f"--format={TAG_FORMAT}")
        return parse_tags(listed)

    def has_commit(self, sha: str) -> bool:
        """Return whether a commit is in this clone."""
        return bool(self._find(sha))

    def has_folder(self, revision: str, folder: str) -> bool:
        """Return whether a commit has a folder, given from the top of the repository."""
        inside = folder.strip("/").removeprefix("./")
        if inside in ("", "."):
            return True
        if "\0" in inside:
            return False
        output = self._read(("cat-file", "-t", f"{self._resolve(revision)}:{inside}"))
        return output.data.strip() == b"tree"

    def changed_files(self, commit: Commit) -> list[FileChange]:
        """Compare a commit with its first parent, following renames."""
        if commit.sha in self._listings:
            return self._listings[commit.sha]
        return parse_files(self._git(*_LISTING, *_sides(commit)))

    def patches(self, commit: Commit) -> tuple[dict[tuple[str, str], FilePatch], str]:
        """Return the changed lines of a commit by the blobs before and after, and why some are missing.

        Files that git takes for binary, and those above MAX_FILE_BYTES, have no lines.
        """
        if commit.sha in self._patches:
            return {patch.blobs: patch for patch in parse_patch(self._patches[commit.sha])}, ""
        output = self._read((*_PATCH, *_sides(commit)), options=_PLAIN, max_bytes=MAX_PATCH_BYTES)
        return {patch.blobs: patch for patch in parse_patch(output.data)}, _why_cut(output)

    def is_cut_off(self, commit: Commit) -> bool:
        """Return whether the commit only seems to be a first one, because the clone is shallow."""
        return not commit.parent and self._git("rev-parse", "--is-shallow-repository").strip() == "true"

    def paths(self, revision: str) -> frozenset[str]:
        """Return the path of every file of a commit."""
        if revision in self._trees:
            return self._trees[revision]
        tree = self._next_tree(revision)
        if tree is None:
            tree = frozenset(self._git("ls-tree", "-r", "-z", "--name-only", revision).split("\0"))
        self._trees = {**dict([*self._trees.items()][-1:]), revision: tree}  # a commit and its parent
        return tree

    def _next_tree(self, revision: str) -> frozenset[str] | None:
        """Return the paths of a commit that follows one whose paths are known, by what was read ahead."""
        changes = []
        while revision not in self._trees:
            if revision not in self._listings:
                return None
            changes.append(self._listings[revision])
            revision = self._parents[revision]
        tree = set(self._trees[revision])
        for files in reversed(changes):
            tree -= {file.old_path for file in files}
            tree |= {file.new_path for file in files if file.new_path}
        return frozenset(tree)

    def top(self) -> Path:
        """Return the top folder of the work tree."""
        return Path(self._git("rev-parse", "--show-toplevel").removesuffix("\n"))

    def tracked(self) -> frozenset[str]:
        """Return the path of every file of the index in this folder, from the folder on."""
        return frozenset(self._git("ls-files", "-z").split("\0")) - {""}

    def read(self, objects: Sequence[str]) -> dict[str, bytes]:
        """Return the content of objects: blob ids, or ``REVISION:PATH`` for a path without a line break.

        Objects are left out if they do not exist here, are larger than MAX_FILE_BYTES, or do not fit in
        MAX_READ_BYTES together with the objects before them.
        """
        names = [name for name in dict.fromkeys(objects) if name and "\n" not in name]
        if not names:
            return {}
        wanted, total = [], 0
        sizes = self._read(("cat-file", "--batch-check"), stdin=_lines(names)).data
        for name, size in zip(names, parse_sizes(sizes), strict=False):
            if size is not None and size <= MAX_FILE_BYTES:
                total += size
                if total <= MAX_READ_BYTES:
                    wanted.append(name)
        if not wanted:
            return {}
        limit = MAX_READ_BYTES + 200 * len(wanted)
        out = self._read(("cat-file", "--batch"), stdin=_lines(wanted), max_bytes=limit)
        contents = zip(wanted, parse_contents(out.data), strict=False)
        return {name: content for name, content in contents if content is not None}

    def _commits(self, shas: Sequence[str]) -> list[Commit]:
        if not shas:
            return []
        shown = self._git(
            *("log", "-z", "--no-walk=unsorted", f"--format={COMMIT_FORMAT}", "--stdin"), stdin=_lines(shas)
        )
        return parse_commits(shown)

    def _resolve(self, revision: str) -> str:
        sha = self._find(revision)
        if not sha:
            raise GitError(f"{self._path}: no commit {revision!r}")
        return sha

    def _find(self, revision: str) -> str:
        if "\0" in revision:
            return ""
        try:
            return self._git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"
            ).strip()
        except GitError:
            return ""

    def _git(self, *arguments: str, stdin: bytes = b"") -> str:
        output = self._read(arguments, stdin=stdin)
        if failure := git_failure(output):
            raise GitError(f"--repo: {self._path}: {failure}")
        if output.cut:
            raise GitError(f"--repo: {self._path}: git {arguments[0]} {output.cut}")
        return output.data.decode("utf-8", errors="replace")

    def _read(
        self,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        options: Sequence[str] = (),
        max_bytes: int = MAX_LISTING_BYTES,
    ) -> Output:
        threshold = ("-c", f"core.bigFileThreshold={MAX_FILE_BYTES}")
        return run_git(
            self._path,
            (*threshold, *options, *arguments),
            stdin=stdin,
            max_bytes=max_bytes,
            timeout_s=self._timeout_s,
        )


_RENAMES = ("-M", f"-l{RENAME_LIMIT}")
_LISTING = ("diff-tree", "-r", "-z", *_RENAMES, "--raw", "--no-abbrev")
_PATCH = (
    *("diff-tree", "-r", "-p", "-U0", "--full-index", "--no-color", *_RENAMES),
    *("--no-ext-diff", "--no-textconv", "--indent-heuristic"),
)
_PLAIN = ("-c", "core.attributesFile=/dev/null")  # attributes of the caller may hide lines


def _sides(commit: Commit) -> tuple[str, ...]:
    return (commit.parent, commit.sha) if commit.parent else ("--root", "--no-commit-id", commit.sha)


def _why_cut(output: Output) -> str:
    if failure := git_failure(output):
        return f"git failed: {failure}"
    return f"the diff {output.cut}" if output.cut else ""


def _lines(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode(errors="replace")
