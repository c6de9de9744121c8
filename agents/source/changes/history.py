"""Commits as changes: what was deployed, by whom, and which subroutines it modified."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Protocol

from agents.profiles.naming import module_name, subroutine_name
from agents.source.changes.bounds import fit
from agents.source.changes.definitions import read_definitions
from agents.source.changes.git import Commit, FileChange, GitError
from agents.source.changes.languages import INTERPRETED, Language, language_of, may_be_unread_code
from agents.source.changes.modules import manifest_paths, module_of_source
from agents.source.changes.patch import FilePatch, content_of
from agents.source.changes.subroutines import compare_python
from agents.source.changes.trailers import expected_costs
from agents.source.gates.reads import gates_read
from agents.source.syntax import Question
from pipeline.messages.inputs import encode_change
from pipeline.model import Change, Outgoing

log = logging.getLogger(__name__)

MAX_SOURCES = 2000
"""Most source files of a commit that are searched for subroutines: more were not changed by hand."""

MAX_PARSED_BYTES = 1024**2
MAX_ALL_PARSED_BYTES = 8 * 1024**2
"""Largest Python file, and how much Python of one commit, is parsed: a tree is hundreds of times larger."""

LOOK_S = 60.0
"""Seconds for finding the subroutines of one commit."""

MAX_SCRIPTS = 200
"""Most files without a suffix whose first line is looked at."""

_NAMED = 3  # files that a remark names; it counts the rest

Patches = Mapping[tuple[str, str], FilePatch]


class Versions(Protocol):
    """A commit and its parent, as Repository has them; see there."""

    def is_cut_off(self, commit: Commit) -> bool:
        """Return whether the version before is unknown."""

    def changed_files(self, commit: Commit) -> list[FileChange]:
        """Return the files that differ."""

    def patches(self, commit: Commit) -> tuple[dict[tuple[str, str], FilePatch], str]:
        """Return the lines that differ, by blobs, and the reason why some are missing."""

    def paths(self, revision: str) -> frozenset[str]:
        """Return the path of every file of one of the two."""

    def read(self, objects: Sequence[str]) -> dict[str, bytes]:
        """Return contents by blob, or ``REVISION:PATH``."""


@dataclass(frozen=True, slots=True)
class Described:
    """A commit as a change, and remarks on what could not be read of it."""

    change: Change
    left_out: tuple[str, ...] = ()


def read_change(
    repository: Versions,
    commit: Commit,
    *,
    service: str,
    time: float,
    source_roots: Sequence[str] = (),
    gate_readers: Sequence[str] = (),
) -> Change:
    """Describe a commit as ``describe_commit`` does, and log in one line what was left out."""
    described = describe_commit(
        repository, commit, service=service, time=time, source_roots=source_roots, gate_readers=gate_readers
    )
    if described.left_out:
        log.warning("%s: %.12s: left out: %s", service, commit.sha, "; ".join(described.left_out))
    return described.change


def describe_commit(
    repository: Versions,
    commit: Commit,
    *,
    service: str,
    time: float,
    source_roots: Sequence[str] = (),
    gate_readers: Sequence[str] = (),
) -> Described:
    """Describe a commit as the change that was deployed to ``service`` at ``time`` (epoch seconds).

    Subroutines are spelt as they appear in stack frames: Python's see ``module_of``, other languages' see
    ``agents.source.changes.languages``; gates are those that its lines of code read, see
    ``agents.source.gates.reads``. Whatever the commit holds, the result is a change within the bounds of a
    message; what they cost stands in ``left_out``.

    Raises:
        GitError: the repository cannot be read.
    """
    expected, wrong = expected_costs(commit.body)
    change = Change(
        id=commit.sha,
        service=service,
        time=time,
        title=commit.title,
        author=commit.author,
        summary=commit.body,
        expected=expected,
    )
    if repository.is_cut_off(commit):
        fitted, lost = fit(change)
        return Described(fitted, (*wrong, "what it changed, because the clone is shallow", *lost))
    try:
        files = repository.changed_files(commit)
    except GitError as error:  # a comparison that takes too long, or objects that this clone lacks
        fitted, lost = fit(change)
        return Described(fitted, (*wrong, f"what it changed: {error}", *lost))
    patches, cut = repository.patches(commit)
    left_out = [*wrong, *([f"lines: {cut}"] if cut else [])]
    reader = _Reader(repository, commit, files, source_roots)
    subroutines = reader.python() | reader.others(patches)
    if unread := reader.unread(files):
        left_out.append(unread)
    fitted, lost = fit(
        replace(
            change,
            files=tuple(file.path for file in files),
            subroutines=tuple(sorted(subroutines)),
            gates=gates_read(_code_lines(files, patches), gate_readers),
            content=content_of([(file.path, patches.get(file.blobs)) for file in files]),
        )
    )
    return Described(fitted, (*left_out, *reader.left_out, *_without_lines(files, patches), *lost))


def _code_lines(files: Sequence[FileChange], patches: Patches) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each line of code that a commit added or removed."""
    for file in files:
        if file.blobs in patches and (file.path.endswith(".py") or language_of(file.path)):
            for hunk in patches[file.blobs].hunks:
                yield from ((file.path, line.text) for line in (*hunk.removed, *hunk.added))


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


class _Reader:
    """Finds the subroutines of one commit's files, and remembers the files that it could not read."""

    def __init__(
        self,
        repository: Versions,
        commit: Commit,
        files: Sequence[FileChange],
        source_roots: Sequence[str],
    ) -> None:
        self.left_out: list[str] = []
        self._repository = repository
        self._commit = commit
        self._source_roots = source_roots
        self._deadline = time.monotonic() + LOOK_S
        self._trees: dict[str, frozenset[str]] = {}
        sources = [f for f in files if f.path.endswith(".py") or language_of(f.path)]
        if len(sources) > MAX_SOURCES:
            self.left_out.append(
                f"the subroutines of {len(sources) - MAX_SOURCES} source files, of {len(sources)}"
            )
        self._sources = sources[:MAX_SOURCES]
        self._content = repository.read([blob for file in self._sources for blob in file.blobs])

    def python(self) -> set[str]:
        """Return the modified subroutines of Python files."""
        files = [file for file in self._sources if file.path.endswith(".py")]
        subroutines: set[str] = set()
        broken, unread = [], []
        room = MAX_ALL_PARSED_BYTES
        for index, file in enumerate(files):
            if self._is_late(len(files) - index):
                break
            if not self._is_read(file):
                unread.append(file.path)
                continue
            old, new = (self._content.get(blob) for blob in file.blobs)
            sizes = (len(old or b""), len(new or b""))
            room -= sum(sizes)
            compared = compare_python(old, new, parse=room >= 0 and max(sizes) <= MAX_PARSED_BYTES)
            if not compared.parsed:
                broken.append(file.path)
            revision = self._commit.sha if file.new_path else self._commit.parent
            module = module_of(file.path, self._tree(revision), self._source_roots)
            subroutines.update(subroutine_name(module, scope) for scope in compared.modified)
        if broken:
            self.left_out.append(
                f"the syntax of {_names(broken)}, not valid Python or too large: compared by indentation"
            )
        if unread:
            self.left_out.append(f"the subroutines of {_names(unread)}, too large or missing")
        return subroutines

    def others(self, patches: Patches) -> set[str]:
        """Return the touched subroutines of files in other languages."""
        files = [(f, lang) for f in self._sources if (lang := language_of(f.path)) and f.blobs in patches]
        if not files or self._is_late(len(files)):
            return set()
        manifests = self._manifests(files)
        questions = [
            (file, language, Question(language.grammar, self._content[blob], lines))
            for file, language in files
            for blob, lines in zip(file.blobs, patches[file.blobs].touched, strict=True)
            if lines and blob in self._content
        ]
        answers = read_definitions(
            [question for _, _, question in questions], timeout_s=self._deadline - time.monotonic()
        )
        subroutines: set[str] = set()
        for (file, language, _), definitions in zip(questions, answers, strict=True):
            for definition in definitions or ():
                module = module_of_source(language, file.path, definition.package, manifests)
                subroutines.update(language.spell(definition, module))
        silent = [
            file.path for (file, _, _), answer in zip(questions, answers, strict=True) if answer is None
        ]
        if silent:
            names = _names(list(dict.fromkeys(silent)))
            self.left_out.append(f"some subroutines of {names}, which could not be parsed in time")
        return subroutines

    def unread(self, files: Sequence[FileChange]) -> str:
        """Name the files with code in a language that is not read; empty where there are none."""
        changed = [file for file in files if file.blobs[0] != file.blobs[1]]
        classified = [(file, may_be_unread_code(file.path)) for file in changed]
        doubtful = [file for file, code in classified if code is None][:MAX_SCRIPTS]
        content = self._repository.read([file.blobs[1] or file.blobs[0] for file in doubtful])
        scripts = {f.path for f in doubtful if INTERPRETED.match(content.get(f.blobs[1] or f.blobs[0], b""))}
        names = [file.path for file, code in classified if code or file.path in scripts]
        return f"the subroutines of {_names(names)}, in a language that is not read" if names else ""

    def _tree(self, revision: str) -> frozenset[str]:
        """Return the paths of a commit; none if they cannot be listed, so that modules have short names."""
        if revision not in self._trees:
            try:
                self._trees[revision] = self._repository.paths(revision)
            except GitError as error:
                self._trees[revision] = frozenset()
                self.left_out.append(f"the packages of Python modules: {error}")
        return self._trees[revision]

    def _is_late(self, left: int) -> bool:
        """Return whether the time for one commit is used up, and remember how many files that costs."""
        late = self._is_over()
        if late:
            self.left_out.append(f"the subroutines of {left} files: took longer than {LOOK_S:g} s")
        return late

    def _is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def _is_read(self, file: FileChange) -> bool:
        return all(blob in self._content for blob in file.blobs if blob)

    def _manifests(self, files: Sequence[tuple[FileChange, Language]]) -> dict[str, bytes]:
        paths = {path: None for f, lang in files for path in manifest_paths(lang, f.path)}
        objects = {f"{self._commit.sha}:{path}": path for path in paths}
        return {objects[name]: content for name, content in self._repository.read(list(objects)).items()}


def _without_lines(files: Sequence[FileChange], patches: Patches) -> list[str]:
    """Say which files have no lines to show, though they changed."""
    remarks = []
    binary = [f.path for f in files if f.blobs in patches and patches[f.blobs].binary]
    if binary:
        remarks.append(f"the lines of {_names(binary)}, binary or too large")
    irregular = [f.path for f in files if not any(f.blobs)]
    if irregular:
        remarks.append(f"what stands behind {_names(irregular)}, a link or submodule")
    return remarks


def _names(paths: Sequence[str]) -> str:
    shown = ", ".join(repr(path[:80]) for path in paths[:_NAMED])
    return shown if len(paths) <= _NAMED else f"{shown} and {len(paths) - _NAMED} more"
