"""Suspects of requests that cost more, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.commands.request import EXISTING_FILE, option
from pipeline.commands.tables import print_table, text_columns
from pipeline.commands.terminal import print_lines, print_note
from pipeline.model.clock import to_iso
from pipeline.releases.requests import BASE, EVERY, CostChange, spelt

if TYPE_CHECKING:
    from agents.source.routes import RequestFinding, RequestSuspect, RequestSuspects

_SHOWN = 5
_MOST = 50
"""Most suspects of one request: on a terminal, and in JSON."""

_ID = 12  # characters of a commit's id
_SHOWN_METHODS = 3
_LONGEST_WAY = 6


class Finder:
    """Finds the suspects of changes of cost; the source is read for the first of them."""

    def __init__(self, repository: Path, revisions: str, roots: Sequence[str], profile: Path | None) -> None:
        from agents.source.routes import Release  # reading source takes long to import

        self._release = Release(repository, revisions, roots)
        self._profile = profile
        self._suspects: RequestSuspects | None = None
        self.commits = len(self._release.commits)

    def find(self, change: CostChange) -> RequestFinding | None:
        """Return the suspects of a rise; None if the change is no rise, or has no single request."""
        types = {name: chance for name, chance in change.likely.items() if name not in (BASE, EVERY)}
        if change.change <= 0 or not types:
            return None
        if self._suspects is None:
            self._suspects = self._release.suspects(self._profile)
            unread = self._suspects.application.unread
            if unread:
                path, why = next(iter(unread.items()))
                print_note(
                    f"not read: {path} ({why}){f' and {len(unread) - 1} more' if len(unread) > 1 else ''}"
                )
        return self._suspects.find(types)

    def to_json(self, change: CostChange) -> dict[str, Any]:
        """Return the routes and suspects of a rise as JSON has them."""
        finding = self.find(change)
        return _to_json(finding) if finding else {}

    def show(self, changes: Sequence[CostChange]) -> None:
        """Print the suspects under each request that costs more."""
        for change in changes:
            if finding := self.find(change):
                _show(spelt(change.type), finding, self.commits)


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """Options that name the source of the new release."""

    repo: Path | None = option(metavar="DIR", help="Git repository of the service.")
    revisions: str | None = option(
        flag="--range", metavar="A..B", help="Commits of the new release: all after A up to B."
    )
    roots: tuple[str, ...] = option(
        flag="--source-root",
        metavar="DIR",
        help="Folder in the repository that modules are named from.",
    )
    profile: Path | None = option(
        kind=EXISTING_FILE,
        metavar="FILE",
        help="Profile of production: its stacks show calls that source does not.",
    )

    def finder(self) -> Finder | None:
        """Return what finds suspects in the source; None without source.

        Raises:
            UsageError: an option lacks another one.
        """
        if (self.repo is None) != (self.revisions is None):
            raise click.UsageError("--repo and --range go together")
        if self.repo and self.revisions:
            return Finder(self.repo, self.revisions, self.roots, self.profile)
        if self.roots or self.profile:
            raise click.UsageError("--source-root and --profile need --repo and --range")
        return None


def _to_json(finding: RequestFinding) -> dict[str, Any]:
    """Return routes and suspects as JSON has them."""
    return {
        "routes": {
            name: {"route": route.name, "handler": route.handler, "file": route.path, "line": route.line}
            for name, route in finding.routes.items()
        },
        "suspects": [_suspect_json(suspect) for suspect in finding.suspects[:_MOST]],
    }


def _show(type_: str, finding: RequestFinding, commits: int) -> None:
    """Print the suspects of one request: commit, author, subject, and the ways to what it modifies."""
    if not finding.routes:
        print_lines([f"{type_}: no route in the source answers it, so no commit is suspected", ""])
        return
    print_lines(
        f"{request}: answered by {route.handler} ({route.path}:{route.line}), {route.name}"
        for request, route in finding.routes.items()
    )
    if not finding.suspects:
        print_lines([f"none of {commits} commits modifies what it may run", ""])
        return
    print_table(_COLUMNS, [row for suspect in finding.suspects[:_SHOWN] for row in _rows(suspect)])
    more = len(finding.suspects) - _SHOWN
    besides = f"{more} more of " if more > 0 else ""
    print_lines([f"{besides}{commits} commits: {len(finding.suspects)} modify what it may run", ""])


_COLUMNS = text_columns(("", "commit", "time", "author", "lines", "subject"), numbers=(0,))


def _rows(suspect: RequestSuspect) -> Iterator[tuple[str, ...]]:
    """Yield the cells of a suspect, and a row of each way to what it modifies."""
    added, removed = suspect.churn or (0, 0)
    change = suspect.change
    cells = (change.id[:_ID], to_iso(change.time), change.author, f"+{added} −{removed}", change.title)
    yield f"{suspect.score:.0%}", *cells
    for way in _ways(suspect):
        yield "", "", "", "", "", way


def _ways(suspect: RequestSuspect) -> list[str]:
    ways = []
    for method in suspect.methods[:_SHOWN_METHODS]:
        way = list(method.way)
        if len(way) > _LONGEST_WAY:
            way = [*way[:2], "…", *way[-3:]]
        ways.append(f"{' → '.join(way)} ({method.path}:{method.line})")
    return ways


def _suspect_json(suspect: RequestSuspect) -> dict[str, Any]:
    change = suspect.change
    return {
        "commit": change.id,
        "score": suspect.score,
        "factors": dict(suspect.factors),
        "time": to_iso(change.time),
        "author": change.author,
        "subject": change.title,
        "comment": change.summary,
        "churn": list(suspect.churn) if suspect.churn else None,
        "difference": change.content,
        "methods": [
            {"method": method.name, "file": method.path, "line": method.line, "path": list(method.way)}
            for method in suspect.methods
        ],
    }
