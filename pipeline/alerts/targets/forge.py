"""What forges have in common: an issue, a comment on the suspected merge request, a commit's status."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Literal, Protocol

from pydantic import Field

from pipeline.alerts.markup import as_markdown
from pipeline.alerts.message import Note
from pipeline.alerts.rules import Share
from pipeline.alerts.secret import Secret
from pipeline.alerts.targets.base import OneAlert, Unsuitable
from pipeline.alerts.targets.http import Http

_COMMIT = re.compile(r"[0-9a-f]{7,64}")

Status = Literal["failure", "success"]


class Forge(Protocol):
    """One repository of a forge. Issues and merge requests go by the numbers that people see."""

    async def find_issue(self, marker: str) -> str:
        """Return the issue whose text holds a marker; empty if there is none."""

    async def open_issue(self, title: str, text: str) -> str:
        """Open an issue and return its number."""

    async def close_issue(self, number: str) -> None:
        """Close an issue."""

    async def merge_request_of(self, commit: str) -> str:
        """Return the merge request that brought a commit; empty if there is none."""

    async def comments(self, subject: Literal["issue", "merge request"], number: str) -> list[str]:
        """Return the texts of the latest comments."""

    async def comment(self, subject: Literal["issue", "merge request"], number: str, text: str) -> None:
        """Add a comment."""

    async def set_status(self, commit: str, state: Status, text: str, link: str) -> None:
        """Set the status of a commit, in place of the one before."""


class ForgeTarget(OneAlert):
    """A repository, with a token that may write what the kind of target says."""

    repository: str = Field(pattern=r"^[\w.-]+(/[\w.-]+)+$")
    token: Secret

    @abstractmethod
    def forge(self, http: Http) -> Forge:
        """Return the repository."""


class ForgeIssue(ForgeTarget):
    """An issue for each regression; what becomes of it is a comment, and it is closed when it is resolved."""

    labels: tuple[str, ...] = ()
    close: bool = True

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Open an issue, unless it is there; or add a comment."""
        forge = self.forge(http)
        marker = _marker(note.alert.regression)
        number = thread or await forge.find_issue(marker)
        if not number:
            return await forge.open_issue(note.title, _text(note, marker))
        if note.occasion != "detected":
            await _comment_once(forge, "issue", number, note)
            if note.occasion == "resolved" and self.close:
                await forge.close_issue(number)
        return number


class ForgeComment(ForgeTarget):
    """A comment on the merge request of the likeliest suspect."""

    min_score: Share = 0.5

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Comment, unless the comment is there."""
        forge = self.forge(http)
        number = thread
        if not number:
            commit = _suspected_commit(note, self.min_score)
            number = await forge.merge_request_of(commit)
            if not number:
                raise Unsuitable(f"no merge request brought the commit {commit[:12]}")
        await _comment_once(forge, "merge request", number, note)
        return number


class ForgeStatus(ForgeTarget):
    """The status of the likeliest suspect: failure, and success once the regression is resolved."""

    min_score: Share = 0.5

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Set the status; the same once more changes nothing."""
        commit = thread or _suspected_commit(note, self.min_score)
        state: Status = "success" if note.occasion == "resolved" else "failure"
        await self.forge(http).set_status(commit, state, note.title[:140], note.link)
        return commit


def _marker(name: str) -> str:
    """Return what nobody sees in a text, and a search finds."""
    return f"<!-- smidgen:{name} -->"


def _text(note: Note, marker: str) -> str:
    return f"{as_markdown(note.lines)}\n\n{marker}\n"


async def _comment_once(
    forge: Forge, subject: Literal["issue", "merge request"], number: str, note: Note
) -> None:
    marker = _marker(f"{note.id}.{note.occasion}")
    if not any(marker in text for text in await forge.comments(subject, number)):
        await forge.comment(subject, number, _text(note, marker))


def _suspected_commit(note: Note, min_score: float) -> str:
    suspect = note.alert.suspect
    if suspect is None or suspect.score < min_score:
        raise Unsuitable("no change is suspected enough")
    if not _COMMIT.fullmatch(suspect.id):
        raise Unsuitable("the suspect is no commit")
    return suspect.id
