"""Common parts of forges: an issue, a comment on the suspected merge request, a commit's status."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import Field

from pipeline.delivery.alerts.markup import as_markdown
from pipeline.delivery.alerts.message import Note, how_to_answer
from pipeline.delivery.alerts.rules import Share
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import OneAlert, Unsuitable
from pipeline.delivery.alerts.targets.github import GitHub
from pipeline.delivery.alerts.targets.gitlab import GitLab
from pipeline.delivery.alerts.targets.http import Http
from pipeline.delivery.alerts.targets.repository import Forge, Status

_COMMIT = re.compile(r"[0-9a-f]{7,64}")

_DIGITS = 12
"""Characters of an event's id in a message."""

FORGES: Mapping[str, tuple[Callable[..., Forge], str]] = {
    "github": (GitHub, "https://api.github.com"),
    "gitlab": (GitLab, "https://gitlab.com/api/v4"),
}
"""Forges by the first word of a target's kind, and the default addresses of their API."""


class ForgeTarget(OneAlert):
    """A repository, with a token that may write what the kind of target needs."""

    kind: str  # the forge, and what is written there
    repository: str = Field(pattern=r"^[\w.-]+(/[\w.-]+)+$")
    token: Secret
    api: str = ""  # of a server of one's own

    def forge(self, http: Http, labels: tuple[str, ...] = ()) -> Forge:
        """Return the repository; issues that are opened there carry ``labels``."""
        forge, api = FORGES[self.kind.partition("-")[0]]
        return forge(http, self.api or api, self.repository, self.token.get_secret_value(), labels)


class ForgeConversation(ForgeTarget):
    """A conversation that people can reply to. ``replies``: webhooks read the replies as answers."""

    replies: bool = False

    def text(self, note: Note, marker: str, event: str = "") -> str:
        """Return a message: the text, how to answer while the event can be answered, and a marker."""
        asks = self.replies and note.answerable
        lines = (*note.lines, how_to_answer(event)) if asks else note.lines
        return f"{as_markdown(lines)}\n\n{marker}\n"

    async def comment_once(
        self, forge: Forge, subject: Literal["issue", "merge request"], number: str, note: Note
    ) -> None:
        """Comment, unless the comment exists: a merge request may have several events, so it is named."""
        marker = _marker(f"{note.id}.{note.occasion}")
        if not any(marker in text for text in await forge.comments(subject, number)):
            event = note.alert.regression[:_DIGITS] if subject == "merge request" else ""
            await forge.comment(subject, number, self.text(note, marker, event))


class ForgeIssue(ForgeConversation):
    """An issue for each regression; its later events are comments, and it is closed when it is resolved."""

    kind: Literal["github-issue", "gitlab-issue"]
    labels: tuple[str, ...] = ()
    close: bool = True

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Open an issue, unless it exists; or add a comment."""
        forge = self.forge(http, self.labels)
        marker = _marker(note.alert.regression)
        number = thread or await forge.find_issue(marker)
        if not number:
            return await forge.open_issue(note.title, self.text(note, marker))
        if note.occasion != "detected":
            await self.comment_once(forge, "issue", number, note)
            if note.occasion == "resolved" and self.close:
                await forge.close_issue(number)
        return number


class ForgeComment(ForgeConversation):
    """A comment on the merge request of the likeliest suspect."""

    kind: Literal["github-comment", "gitlab-comment"]
    min_score: Share = 0.5

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Comment, unless the comment exists."""
        forge = self.forge(http)
        number = thread.removeprefix(forge.merge_request_mark)
        if not number:
            commit = _suspected_commit(note, self.min_score)
            number = await forge.merge_request_of(commit)
            if not number:
                raise Unsuitable(f"no merge request brought the commit {commit[:12]}")
        await self.comment_once(forge, "merge request", number, note)
        return f"{forge.merge_request_mark}{number}"


class ForgeStatus(ForgeTarget):
    """The status of the likeliest suspect: failure, and success once the regression is resolved."""

    kind: Literal["github-status", "gitlab-status"]
    min_score: Share = 0.5

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Set the status; setting it again has no effect."""
        commit = thread or _suspected_commit(note, self.min_score)
        state: Status = "success" if note.occasion == "resolved" else "failure"
        await self.forge(http).set_status(commit, state, note.title[:140], note.link)
        return commit


def _marker(name: str) -> str:
    """Return a marker that is invisible in a text and can be searched for."""
    return f"<!-- smidgen:{name} -->"


def _suspected_commit(note: Note, min_score: float) -> str:
    suspect = note.alert.suspect
    if suspect is None or suspect.score < min_score:
        raise Unsuitable("no change is suspected enough")
    if not _COMMIT.fullmatch(suspect.id):
        raise Unsuitable("the suspect is no commit")
    return suspect.id
