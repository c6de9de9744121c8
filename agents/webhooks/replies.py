"""Replies to what alerts wrote on a merge request or an issue, as answers to its event.

A reply answers if it begins with a verdict: ``/smidgen false it was the load test``, or the plain word alone
or before a colon, comma or full stop. What forges send is described where their other webhooks are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from agents.webhooks.forge_event import optional_section, required_moment, section, text
from agents.webhooks.mapping import AnswerRights, Forge
from pipeline.delivery.alerts.targets.gitlab import GitLab
from pipeline.messages import fields
from pipeline.model import VerdictKind
from pipeline.model.errors import InvalidMessage

REPLY_EVENTS: Mapping[Forge, str] = {"github": "issue_comment", "gitlab": "Note Hook"}
"""The event of a comment on a merge request or an issue."""

COLLABORATORS = ("OWNER", "MEMBER", "COLLABORATOR")
"""GitHub's associations of those who may write to a repository, or belong to its organisation."""

LONGEST_COMMENT = 1_000
"""Most characters of a reply that are kept."""

_LAB_SUBJECTS = {
    "MergeRequest": ("merge_request", GitLab.merge_request_mark),
    "Issue": ("issue", ""),
}
"""Where GitLab has what a note is about, and what alerts put before its number."""

_KINDS = "|".join(kind.replace("-", "[- ]") for kind in get_args(VerdictKind))
_COMMAND = re.compile(rf"(?:/|@)smidgen\s+({_KINDS})(?![\w-])[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(rf"({_KINDS})[ \t]*(?:$|[:,.!;\n](?:\s+|$)(.*))", re.IGNORECASE | re.DOTALL)
_CALLED = re.compile(r"(?:/|@)smidgen\b", re.IGNORECASE)
_EVENT = re.compile(r"([0-9a-f]{6,64})(?=\s|$)[ \t]*")
_SUBJECT = re.compile(r"(?:of\s+)?([0-9a-f]{6,64})(?=\s|$)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """A new comment on a merge request or an issue."""

    thread: str  # the merge request or issue, as alerts call it
    text: str
    author: str  # as the forge names who wrote it
    association: str  # of the author with the repository, as GitHub says it; empty on GitLab
    time: float  # epoch seconds


@dataclass(frozen=True, slots=True)
class Said:
    """What a reply says of an event; ``event`` is the beginning of its id, empty where none is named."""

    verdict: VerdictKind
    event: str = ""
    subject: str = ""  # of a duplicate the beginning of the other event's id, of a cause the change
    comment: str = ""


def read_reply(forge: Forge, payload: Mapping[str, Any]) -> Reply | None:
    """Return the comment that a webhook of REPLY_EVENTS brings; None if it is not new, or a program's.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    return _github(payload) if forge == "github" else _gitlab(payload)


def may_answer(author: str, association: str, rights: AnswerRights) -> bool:
    """Return whether an author is a collaborator of the repository, or on its list."""
    listed = author.casefold() in {name.casefold() for name in rights.people}
    return listed or (rights.collaborators and association in COLLABORATORS)


def read_answer(written: str) -> Said | None:
    """Return what a reply says; None if it speaks of something else.

    Raises:
        InvalidMessage: it calls Smidgen, and says nothing that is a verdict.
    """
    lines = [line for line in written.splitlines() if not line.lstrip().startswith(">")]
    own = "\n".join(lines).strip()
    match = _COMMAND.match(own) or _WORD.match(own)
    if not match:
        if _CALLED.match(own):
            raise InvalidMessage("no verdict")
        return None
    verdict = cast("VerdictKind", match[1].lower().replace(" ", "-"))
    rest = (match[2] or "").strip()
    event = subject = ""
    if verdict in ("duplicate", "cause"):
        if not (named := _SUBJECT.match(rest)):
            raise InvalidMessage(f"{verdict} names nothing")
        subject, rest = named[1].lower(), rest[named.end() :]
    elif named := _EVENT.match(rest):
        event, rest = named[1], rest[named.end() :]
    return Said(verdict, event, subject, rest.strip()[:LONGEST_COMMENT])


def _github(payload: Mapping[str, Any]) -> Reply | None:
    comment = section(payload, "comment")
    user = section(comment, "user")
    if text(payload, "action") != "created" or text(user, "type") == "Bot":
        return None
    return Reply(
        thread=str(fields.integer(section(payload, "issue"), "number")),
        text=text(comment, "body"),
        author=fields.text(user, "login"),
        association=text(comment, "author_association"),
        time=required_moment(comment, "created_at"),
    )


def _gitlab(payload: Mapping[str, Any]) -> Reply | None:
    note = section(payload, "object_attributes")
    subject, mark = _LAB_SUBJECTS.get(text(note, "noteable_type"), (None, ""))
    if subject is None or text(note, "action") not in ("", "create") or note.get("system") is True:
        return None
    return Reply(
        thread=f"{mark}{fields.integer(section(payload, subject), 'iid')}",
        text=text(note, "note"),
        author=fields.text(optional_section(payload, "user"), "username"),
        association="",
        time=required_moment(note, "created_at"),
    )
