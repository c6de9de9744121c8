"""Which subroutines of files in other languages than Python a diff touches.

A changed line belongs to the innermost subroutine around it, as ctags sees the file. Without ctags it belongs
to the definition that git's hunk header shows, or to one that stands among the changed lines above it: a
guess that takes code between two functions for a part of the first. Blank lines, comments and lone brackets
count for nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from agents.changes.ctags import Mark
from agents.changes.languages import MAX_CLIMB, Definition, Language, definition_above, scope_above
from agents.changes.patch import FilePatch, Hunk, Line

MAX_HUNKS = 2000
"""Most hunks of one file that are looked at: no one changes a file by hand in more places."""

_NOTHING = re.compile(r"[\s{}()\[\];,]*|\s*(?://|/\*|\*/|\*\s|\*$).*")
_FUNCTIONS = frozenset({"function", "func", "method", "generator", "getter", "setter"})
_TYPES = frozenset(
    {"class", "struct", "interface", "implementation", "enum", "namespace", "module", "record"}
)
_ANONYMOUS = re.compile(r"__anon\w+")
_JAVA_PACKAGE = re.compile(r"^[ \t]*+package\s++([\w.]++)\s*+;", re.MULTILINE)
_PACKAGES = {
    "Kotlin": re.compile(r"^package[ \t]++([\w.]++)", re.MULTILINE),
    "Scala": re.compile(r"^package[ \t]++(?!object\b)([\w.]++)", re.MULTILINE),
    "C#": re.compile(r"^[ \t]*+namespace[ \t]++([\w.]++)", re.MULTILINE),
    "PHP": re.compile(r"^[ \t]*+namespace[ \t]++([\w\\]++)", re.MULTILINE),
}
_GO_PACKAGE = re.compile(r"^package\s+(\w+)", re.MULTILINE)
_GO_MODULE = re.compile(r"^module\s++\"?([^\s\"]++)", re.MULTILINE)

MAX_MANIFEST_BYTES = 256 * 1024
MAX_MANIFEST_LINE = 1000
"""Largest manifest that is read, and longest line in it, since a key of many parts takes their square."""


@dataclass(frozen=True, slots=True)
class Version:
    """One side of a changed file: its lines, empty if it was not read, and its tags, None without ctags."""

    lines: Sequence[str] = ()
    marks: Sequence[Mark] | None = None


def touched_subroutines(
    language: Language,
    patch: FilePatch,
    before: Version,
    after: Version,
    module: str,
    *,
    is_late: Callable[[], bool] = lambda: False,
) -> set[str]:
    """Return the subroutines that a patch touches, in every spelling that stack frames use for them.

    Once ``is_late``, which is asked before each hunk, the rest is left out.
    """
    found: set[Definition] = set()
    owners = [_owners(language, version) for version in (before, after)]
    for hunk in patch.hunks[:MAX_HUNKS]:
        if is_late():
            break
        for version, owner, lines in zip((before, after), owners, (hunk.removed, hunk.added), strict=True):
            if owner is None:
                found.update(_by_header(language, hunk, lines, version, before))
            else:
                found.update(_by_owner(owner, lines))
    return {name for definition in found for name in language.spell(definition, module)}


def module_of_source(language: Language, path: str, source: str, manifests: Mapping[str, bytes]) -> str:
    """Return the package, namespace, module path or crate module of a file.

    Kotlin's has the class that holds what stands outside classes besides: ``com.acme.BasketKt``.

    ``manifests`` holds the content of ``go.mod`` and ``Cargo.toml`` files by path.
    """
    if language.name == "Java":
        package = _JAVA_PACKAGE.search(source)
        return package[1] if package else ""
    if language.name in _PACKAGES:
        package = _PACKAGES[language.name].search(source)
        named = package[1] if package else ""
        return f"{named}.{PurePosixPath(path).stem}Kt".lstrip(".") if language.name == "Kotlin" else named
    path = path.lstrip("/")  # as a tree that no git made may hold it
    folder, manifest = _nearest(language, path, manifests)
    inside = PurePosixPath(path).relative_to(folder)
    if language.name == "Go":
        package = _GO_PACKAGE.search(source)
        root = _GO_MODULE.search(manifest.decode(errors="replace"))
        if not package or package[1] == "main" or not root:
            return package[1] if package else ""
        return "/".join([root[1], *inside.parent.parts])
    if language.name == "Rust":
        parts = [part for part in inside.with_suffix("").parts if part != "src"]
        if parts and parts[-1] in ("lib", "main", "mod"):
            parts.pop()
        return "::".join(part for part in (_crate(manifest), *parts) if part)
    return ""


def manifest_paths(language: Language, path: str) -> Iterator[str]:
    """Yield where the manifest of a file's module may stand, the nearest first."""
    if language.manifest:
        yield from (str(folder / language.manifest) for folder in PurePosixPath(path).parents)


def _nearest(language: Language, path: str, manifests: Mapping[str, bytes]) -> tuple[PurePosixPath, bytes]:
    for place in manifest_paths(language, path):
        if place in manifests:
            return PurePosixPath(place).parent, manifests[place]
    return PurePosixPath(), b""


def _crate(manifest: bytes) -> str:
    longest = max(map(len, manifest.split(b"\n")))
    if len(manifest) > MAX_MANIFEST_BYTES or longest > MAX_MANIFEST_LINE:
        return ""
    try:
        name = tomllib.loads(manifest.decode(errors="replace")).get("package", {}).get("name", "")
    except (ValueError, AttributeError, RecursionError):  # not TOML, a number of thousands of digits; nested
        return ""
    return str(name).replace("-", "_")


def _by_owner(owners: Sequence[Definition | None], lines: Iterable[Line]) -> Iterator[Definition]:
    """Yield the innermost subroutine around each changed line."""
    for line in lines:
        owner = owners[line.number - 1] if 0 < line.number <= len(owners) else None
        if owner and not _NOTHING.fullmatch(line.text):
            yield owner


def _owners(language: Language, version: Version) -> list[Definition | None] | None:
    """Return for each line the subroutine around it, None without ctags.

    An inner subroutine begins later and so takes its lines. Where ctags knows no ends, a subroutine reaches
    to the next one or the next type.
    """
    if version.marks is None:
        return None
    owners: list[Definition | None] = [None] * len(version.lines)
    for mark in version.marks:
        if not 1 <= mark.line <= len(owners) or _ANONYMOUS.fullmatch(mark.name):
            continue  # a lambda belongs to the function around it
        defined = language.define(version.lines[mark.line - 1])
        if mark.kind in _FUNCTIONS or (defined and defined.name == mark.name):
            owner = _definition(language, mark, defined)
        elif mark.kind in _TYPES and mark.end is None:
            owner = None
        else:
            continue
        end = min(mark.end or len(owners), len(owners))
        owners[mark.line - 1 : end] = [owner] * (end - mark.line + 1)
    return owners


def _definition(language: Language, mark: Mark, defined: Definition | None) -> Definition:
    if language.name == "Go":
        return replace(defined, name=mark.name) if defined else Definition(mark.name)
    scope = tuple(part for part in re.split(r"::|\.", mark.scope) if part)
    return Definition(mark.name, tuple(_ANONYMOUS.sub("(anonymous namespace)", part) for part in scope))


def _by_header(
    language: Language, hunk: Hunk, lines: Iterable[Line], version: Version, before: Version
) -> Iterator[Definition]:
    """Yield the header's definition, until one among the lines themselves takes its place."""
    current = _headed(language, hunk, before)
    for line in lines:
        if defined := language.define(line.text):
            current = _placed(defined, version, line.number)
        said = line.text.partition("#")[0] if language.name == "Ruby" else line.text
        if current and not _NOTHING.fullmatch(said):
            yield current


def _headed(language: Language, hunk: Hunk, version: Version) -> Definition | None:
    """Return the definition in a hunk's header, which git cuts at 80 bytes.

    Where git shows none, such as for a method in the body of its C++ class, indentation tells.
    """
    last = min(hunk.old_start, len(version.lines))
    defined = language.define(hunk.header)
    if not defined:
        above = definition_above(language, version.lines, last) if last else None
        return _placed(above[0], version, above[1]) if above else None
    for number in range(last, max(last - MAX_CLIMB, 0), -1):
        if version.lines[number - 1].strip().startswith(hunk.header.strip()):
            return _placed(defined, version, number)
    return defined


def _placed(defined: Definition, version: Version, number: int) -> Definition:
    if defined.receiver or number > len(version.lines):
        return defined
    return replace(defined, scope=(*scope_above(version.lines, number), *defined.scope))
