"""Kind of a change: whether it modifies code, and whether it has a description."""

from __future__ import annotations

import re

from pipeline.model import Change

_DOCUMENT_SUFFIXES = frozenset(
    (
        *(".md", ".markdown", ".rst", ".adoc", ".asciidoc", ".textile", ".pdf", ".docx", ".odt"),
        *(".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".ico", ".bmp", ".drawio", ".puml"),
    )
)
_DOCUMENT_NAME = re.compile(
    r"(?i)(readme|changelog|licen[cs]e|copying|notice|authors|contributors|contributing|codeowners)(\.txt)?"
)
_DOCUMENT_FOLDERS = frozenset({"doc", "docs"})  # at the top: a package may be called so
_TEST_FOLDERS = frozenset({"test", "tests", "__tests__"})
_TEST_NAME = re.compile(r"test_.+\.py|conftest\.py|.+_test\.(py|go|cc|cpp|rb)|.+\.(test|spec)\.[cm]?[jt]sx?")


def modifies_no_code(change: Change) -> bool:
    """Return whether a change is known to modify nothing that runs: all its files are documentation or tests.

    A change that flips a gate, or has no files, may affect anything. So may text in a format that programs
    read too: ``requirements.txt`` is no documentation, unless it lies below ``docs``.
    """
    return bool(change.files) and not change.gates and all(map(_never_runs, change.files))


def _never_runs(file: str) -> bool:
    *folders, name = file.split("/")
    stem, dot, suffix = name.rpartition(".")
    return (
        (bool(stem) and f"{dot}{suffix}".lower() in _DOCUMENT_SUFFIXES)
        or _DOCUMENT_NAME.fullmatch(name) is not None
        or not _DOCUMENT_FOLDERS.isdisjoint(folders[:1])
        or not _TEST_FOLDERS.isdisjoint(folders)
        or _TEST_NAME.fullmatch(name) is not None
    )


def says_something(change: Change) -> bool:
    """Return whether a change has more than a deployer and a time.

    A title is enough: people who announce bare deployments want the preceding one to be named.
    """
    contents = (
        change.title,
        change.summary,
        change.content,
        *change.files,
        *change.subroutines,
        *change.gates,
    )
    return any(text.strip() for text in contents)
