"""Commits as changes: what was deployed, by whom, and which subroutines it modified."""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from agents.changes.git import Commit, FileChange, Repository
from agents.changes.subroutines import modified_scopes
from agents.naming import module_name, subroutine_name
from pipeline.codec.inputs import encode_change
from pipeline.model import Change, Outgoing

log = logging.getLogger(__name__)

MAX_TEXT = 4000
MAX_SUMMARY = 20_000
"""Longest title, name or path, and longest summary, in characters."""

FILES_BYTES = 300_000
SUBROUTINES_BYTES = 500_000
"""What the lists of a change may take of its message."""


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
    subroutines = _modified(repository, commit, files, source_roots)
    paths = _within([change.path for change in files], FILES_BYTES)
    kept = _within(subroutines, SUBROUTINES_BYTES)
    if len(paths) < len(files) or len(kept) < len(subroutines):
        log.warning("%.12s changes too much for one message; the first files are published", commit.sha)
    return Change(
        id=commit.sha,
        service=service,
        time=time,
        title=commit.title[:MAX_TEXT],
        author=commit.author[:MAX_TEXT],
        summary=commit.body[:MAX_SUMMARY],
        files=paths,
        subroutines=kept,
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
    blobs = sorted(
        {blob for change in python for blob in (change.old_blob, change.new_blob) if blob.strip("0")}
    )
    content = dict(zip(blobs, repository.read(blobs), strict=True))
    tree = functools.cache(repository.paths)
    found: set[str] = set()
    for change in python:
        revision = commit.sha if change.new_path else commit.parent
        module = module_of(change.path, tree(revision), source_roots)
        for scope in modified_scopes(content.get(change.old_blob), content.get(change.new_blob)):
            found.add(subroutine_name(module, scope))
    return sorted(found)


def _within(texts: Sequence[str], max_bytes: int) -> tuple[str, ...]:
    """Return as many of the first texts as fit, each cut to MAX_TEXT."""
    cut = [text[:MAX_TEXT] for text in texts]
    sizes = itertools.accumulate(len(text.encode(errors="replace")) + 3 for text in cut)
    return tuple(text for text, size in zip(cut, sizes, strict=True) if size <= max_bytes)
