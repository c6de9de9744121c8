"""Applications and releases, read from folders and git repositories."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agents.profiles.formats import AUTO, ProfileSource, count_samples, find_format, read_profile
from agents.profiles.naming import name_stack
from agents.profiles.profile_source import named
from agents.source.changes import Commit, Repository, describe_commit
from agents.source.routes.application import MAX_FILE_BYTES, Application, is_read, read_application
from agents.source.routes.reaches import Reaches
from agents.source.routes.suspects import RequestSuspects
from pipeline.model.errors import ConfigError, file_errors

MOST_FILES = 50_000
"""Most files of a tree that are read."""

MOST_COMMITS = 5_000
"""Most commits of a release."""

_AT_ONCE = 50
"""Commits that git compares in one call."""


def read_folder(folder: Path, source_roots: Sequence[str] = ()) -> Application:
    """Read the application in a folder; links that leave it, and files that cannot be read, count as unread.

    Raises:
        ConfigError: the folder cannot be listed, or has no source of a language that is read.
    """
    sources: dict[str, bytes] = {}
    unread: dict[str, str] = {}
    with file_errors(folder):
        os.scandir(folder).close()
    for path in _paths(folder):
        file = folder / path
        try:
            if not file.resolve().is_relative_to(folder.resolve()) or not file.is_file():
                unread[path] = "not a plain file of the folder"
            elif file.stat().st_size > MAX_FILE_BYTES:
                unread[path] = f"larger than {MAX_FILE_BYTES} bytes"
            else:
                sources[path] = file.read_bytes()
        except OSError as error:
            unread[path] = error.strerror or str(error)
        if len(sources) >= MOST_FILES:
            break
    return _read(str(folder), sources, unread, source_roots)


def read_revision(repository: Repository, revision: str, source_roots: Sequence[str] = ()) -> Application:
    """Read the application of a commit.

    Raises:
        GitError: the repository cannot be read.
        ConfigError: the commit has no source of a language that is read.
    """
    paths = [path for path in sorted(repository.paths(revision)) if is_read(path)][:MOST_FILES]
    objects = {f"{revision}:{path}": path for path in paths}
    sources = {objects[name]: content for name, content in repository.read(list(objects)).items()}
    unread = dict.fromkeys(set(paths) - sources.keys(), "too large")
    return _read(revision, sources, unread, source_roots)


def read_reaches(repository: Repository, revision: str, source_roots: Sequence[str] = ()) -> Reaches:
    """Read what the handlers of a commit's application reach.

    Raises:
        GitError: the repository cannot be read.
        ConfigError: the commit has no source of a language that is read, or no routes that are.
    """
    application = read_revision(repository, revision, source_roots)
    if not application.routes:
        raise ConfigError(f"{revision:.12} has none that are read")
    return Reaches(application)


class Release:
    """The commits of a range, as far as ``commits`` are known; the source is read when it is asked for.

    Raises:
        GitError: the repository cannot be read, or has no such range.
        ConfigError: the range holds no commit, or too many; the last has no such source root.
    """

    def __init__(self, repository: Path, revisions: str, source_roots: Sequence[str] = ()) -> None:
        self._repository = Repository(repository)
        self._source_roots = tuple(source_roots)
        self.commits: Sequence[Commit] = self._repository.commits(revisions)
        if not self.commits:
            raise ConfigError(f"--range: {revisions}: holds no commit")
        if len(self.commits) > MOST_COMMITS:
            raise ConfigError(
                f"--range: {revisions}: holds {len(self.commits)} commits, more than {MOST_COMMITS}"
            )
        for root in self._source_roots:
            if not self._repository.has_folder(self.commits[-1].sha, root):
                raise ConfigError(f"--source-root: {root}: no such folder in {self.commits[-1].sha[:12]}")

    def suspects(self, profile: Path | None = None) -> RequestSuspects:
        """Read the application of the last commit, and what each commit modifies.

        Args:
            profile: A profile file of production, whose stacks show calls that source does not.

        Raises:
            GitError: the repository cannot be read.
            ConfigError: there is no source, or the profile cannot be read.
        """
        application = read_revision(self._repository, self.commits[-1].sha, self._source_roots)
        if profile:
            graph = application.graph.with_stacks(read_stacks(profile))
            application = replace(application, graph=graph)
        changes = []
        churn: dict[str, tuple[int, int]] = {}
        for first in range(0, len(self.commits), _AT_ONCE):
            some = self.commits[first : first + _AT_ONCE]
            self._repository.read_ahead(some)
            for commit in some:
                described = describe_commit(
                    self._repository, commit, service="", time=commit.time, source_roots=self._source_roots
                )
                changes.append(described.change)
                churn[commit.sha] = self._churn(commit)
        return RequestSuspects(application, changes, churn)

    def _churn(self, commit: Commit) -> tuple[int, int]:
        """Return how many lines a commit added and removed."""
        patches, _ = self._repository.patches(commit)
        hunks = [hunk for patch in patches.values() for hunk in patch.hunks]
        return sum(len(hunk.added) for hunk in hunks), sum(len(hunk.removed) for hunk in hunks)


def read_stacks(profile: Path) -> list[tuple[str, ...]]:
    """Return the stacks of a profile file, root first, as subroutines.

    Raises:
        ConfigError: the file cannot be read, is of no known format, or holds no stack.
    """
    with file_errors(profile), named(profile), profile.open("rb") as stream:
        source = ProfileSource(stream)
        samples = count_samples(read_profile(find_format(AUTO, source.head), source))
    if not samples.stacks:
        raise ConfigError(f"{profile}: holds no stack")
    return [tuple(frame.name for frame in name_stack(frames)) for frames in samples.stacks]


def _paths(folder: Path) -> Iterator[str]:
    """Yield the paths of sources in a fixed order; links to folders are not followed."""
    for around, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if is_read(f"{name}/a.py"))
        for name in sorted(names):
            path = Path(around, name).relative_to(folder).as_posix()
            if is_read(path):
                yield path


def _read(
    what: str, sources: dict[str, bytes], unread: dict[str, str], source_roots: Sequence[str]
) -> Application:
    if not sources and not unread:
        raise ConfigError(f"{what}: holds no source of a language whose routes are read")
    application = read_application(sources, source_roots)
    return replace(application, unread={**application.unread, **unread})
