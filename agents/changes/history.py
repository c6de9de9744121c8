"""Commits as changes: what was deployed, by whom, and which subroutines it modified."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import PurePosixPath

from agents.changes.git import Commit, FileChange, Repository
from agents.changes.subroutines import modified_scopes
from agents.naming import module_name, subroutine_name
from pipeline.codec.inputs import encode_change
from pipeline.model import Change, Outgoing

log = logging.getLogger(__name__)

MAX_SUMMARY = 20_000
MAX_FILES = 2000
MAX_SUBROUTINES = 5000
"""Bounds that keep a change within one message; a commit beyond them blames everything, hence nothing."""

MAX_TEXT = 4000


def read_change(
    repository: Repository,
    commit: Commit,
    *,
    service: str,
    time: float,
    source_roots: Sequence[str] = (),
) -> Change:
    """Describe a commit as the change that was deployed to ``service`` at ``time`` (epoch seconds).

    Subroutines are spelt as they appear in stack frames, see ``module_of``.

    Raises:
        GitError: the repository cannot be read.
    """
    files: list[FileChange] = []
    if repository.is_cut_off(commit):
        log.warning("%s: the clone is shallow, so what %.12s changed is unknown", service, commit.sha)
    else:
        files = repository.changed_files(commit)
    subroutines = _modified(repository, commit, files[:MAX_FILES], source_roots)
    if len(files) > MAX_FILES or len(subroutines) > MAX_SUBROUTINES:
        log.warning(
            "%.12s changes %d files and %d subroutines; the first ones are published",
            commit.sha,
            len(files),
            len(subroutines),
        )
    return Change(
        id=commit.sha,
        service=service,
        time=time,
        title=commit.title[:MAX_TEXT],
        author=commit.author[:MAX_TEXT],
        summary=commit.body[:MAX_SUMMARY],
        files=tuple(change.path[:MAX_TEXT] for change in files[:MAX_FILES]),
        subroutines=tuple(name[:MAX_TEXT] for name in subroutines[:MAX_SUBROUTINES]),
    )


def change_message(change: Change) -> Outgoing:
    """Return a change as a message of the ``changes`` topic."""
    return Outgoing("changes", change.service, encode_change(change))


def module_of(path: str, paths: Collection[str], source_roots: Sequence[str] = ()) -> str:
    """Return the module of a Python file in a repository, as the service's stack frames spell it.

    Below one of ``source_roots`` it is the path from there. Otherwise it is as samplers shorten file names:
    the path from the outermost package, a package being a folder with an ``__init__.py``; so neither
    ``src/`` nor any other folder above the packages is part of it.
    """
    for root in sorted(source_roots, key=len, reverse=True):
        prefix = root.strip("/").removeprefix("./") + "/"
        if prefix in ("/", "./"):
            return module_name(path)
        if path.startswith(prefix):
            return module_name(path[len(prefix) :])
    folder = PurePosixPath(path).parent
    while folder.name and str(folder / "__init__.py") in paths:
        folder = folder.parent
    return module_name(str(PurePosixPath(path).relative_to(folder)))


def _modified(
    repository: Repository, commit: Commit, files: Sequence[FileChange], source_roots: Sequence[str]
) -> list[str]:
    python = [change for change in files if change.path.endswith(".py")]
    blobs = sorted({blob for change in python for blob in (change.old_blob, change.new_blob) if blob.strip("0")})
    content = dict(zip(blobs, repository.read(blobs), strict=True))
    spell: dict[bool, Callable[[str], str]] = {}
    for deleted, revision in ((False, commit.sha), (True, commit.parent)):
        if any(bool(change.new_path) is not deleted for change in python):
            paths = repository.paths(revision)
            spell[deleted] = lambda path, paths=paths: module_of(path, paths, source_roots)  # type: ignore[misc]
    found: set[str] = set()
    for change in python:
        module = spell[not change.new_path](change.path)
        for scope in modified_scopes(content.get(change.old_blob), content.get(change.new_blob)):
            found.add(subroutine_name(module, scope))
    return sorted(found)
