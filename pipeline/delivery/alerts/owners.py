"""Owners of a regression: by patterns of subroutines, and by CODEOWNERS."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.delivery.alerts.alert import Alert

_LARGEST_LINE = 2000


@dataclass(frozen=True, slots=True)
class OwnerLine:
    """A pattern and its owners; nobody owns its matches if there are none."""

    pattern: str
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Owners:
    """Owners of subroutines, and of files by service. Later lines win, as in CODEOWNERS."""

    subroutines: tuple[OwnerLine, ...] = ()
    files: tuple[tuple[str, tuple[OwnerLine, ...]], ...] = ()  # glob of services, lines of a CODEOWNERS

    def of(self, alert: Alert) -> tuple[str, ...]:
        """Return the owners of a regression.

        The pattern of a subroutine decides. Where none matches, it is the CODEOWNERS of its service: of the
        suspect's files first, and then of the subroutine's name read as a path.
        """
        for line in reversed(self.subroutines):
            if fnmatch.fnmatchcase(alert.metric, line.pattern):
                return line.owners
        lines = [
            line for glob, lines in self.files if fnmatch.fnmatchcase(alert.service, glob) for line in lines
        ]
        for path in _paths(alert):
            if (owners := owners_of_path(path, lines)) is not None:
                return owners
        return ()


def _paths(alert: Alert) -> Iterator[str]:
    if alert.suspect:
        yield from alert.suspect.files
    if alert.is_share:
        yield "/".join(re.split(r"[.:/]+", alert.metric.strip("/")))


def owners_of_path(path: str, lines: Sequence[OwnerLine]) -> tuple[str, ...] | None:
    """Return who owns a file by a CODEOWNERS, whose last matching line wins; None where none matches."""
    parts = path.lstrip("/").split("/")
    for line in reversed(lines):
        if _matches_path(line.pattern, parts):
            return line.owners
    return None


def parse_codeowners(text: str) -> tuple[OwnerLine, ...]:
    """Read a CODEOWNERS file of GitHub or GitLab: comments and GitLab's sections are left out."""
    owner_lines = []
    for raw in text.splitlines():
        line = re.split(r"(?:^|\s)#", raw[:_LARGEST_LINE], maxsplit=1)[0].strip()
        if line and not re.match(r"\^?\[", line):
            pattern, *owners = re.split(r"(?<!\\)\s+", line)
            owner_lines.append(OwnerLine(pattern.replace("\\ ", " "), tuple(owners)))
    return tuple(owner_lines)


def parse_owner_patterns(raw: Mapping[str, Sequence[str]]) -> tuple[OwnerLine, ...]:
    """Return the lines of an owners file: a pattern of subroutines → owners."""
    return tuple(OwnerLine(pattern, tuple(owners)) for pattern, owners in raw.items())


def _matches_path(pattern: str, path: Sequence[str]) -> bool:
    """Return whether a pattern of CODEOWNERS is about a path, given as its folders and its file.

    Its rules are those of gitignore without ! and [ ]. It takes time linear in both lengths, so that no
    pattern of a CODEOWNERS can take for ever.
    """
    parts = pattern.strip("/").split("/")
    ends: set[int] = {0}  # how many parts of the path the pattern so far may be about
    if "/" not in pattern.rstrip("/"):
        parts.insert(0, "**")
    for part in parts:
        if part == "**":
            ends = set(range(min(ends), len(path) + 1)) if ends else ends
        else:
            glob = part.replace("[", "[[]")
            ends = {at + 1 for at in ends if at < len(path) and fnmatch.fnmatchcase(path[at], glob)}
    if pattern.endswith("/*"):  # its own files, none of its folders
        return len(path) in ends
    if pattern.endswith("/"):
        return any(at < len(path) for at in ends)
    return bool(ends)
