"""Issues that alerts opened and somebody closes, as answers to their events.

A label says why, else the reason that the forge has. What says nothing of the event is kept as words for the
labeller. What forges send is described where their other webhooks are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.webhooks.forge_event import optional_section, required_moment, section, text
from agents.webhooks.mapping import Forge
from agents.webhooks.replies import COLLABORATORS, LONGEST_COMMENT, Said
from pipeline.analysis.feedback import RIGHT, WRONG
from pipeline.messages import fields
from pipeline.model import VerdictKind
from pipeline.model.errors import InvalidMessage

CLOSING_EVENTS: Mapping[Forge, str] = {"github": "issues", "gitlab": "Issue Hook"}
"""The event of an issue that is closed."""

YIELDS_S = 60.0
"""By how much a closing counts as earlier: what its author writes along with it says more, and wins."""

_LABELS: Mapping[str, VerdictKind] = {
    **{kind: kind for kind in (*RIGHT, *WRONG) if kind != "duplicate"},  # of which one no label says
    "false-positive": "false",
}
"""Labels that are verdicts, whatever the reason of the closing: what they say is about the event itself."""

_REASONS: Mapping[str, VerdictKind] = dict.fromkeys(("completed", "done", "fixed"), "fixed")
"""Reasons of GitHub and resolutions of Jira that are verdicts.

What is not planned may be false, expected, or beyond mending.
"""

_MOST_LABELS = 20

_SAYS_LESS: Mapping[VerdictKind, frozenset[VerdictKind]] = {
    "fixed": frozenset({"true", "acknowledged"}),
    "acknowledged": frozenset(),
}
"""Verdict that follows from a closing without a label → the states that it replaces."""


@dataclass(frozen=True, slots=True)
class Closing:
    """An issue was closed."""

    thread: str  # the issue, as alerts call it
    reason: str  # completed, not planned and so on; empty where the forge has none
    labels: tuple[str, ...]
    author: str  # as the forge names who closed it
    association: str  # of the author with the repository; empty where closing says nothing of it
    time: float  # epoch seconds

    @property
    def comment(self) -> str:
        """The way it was closed, in words."""
        why = f"closed as {self.reason}" if self.reason else "closed"
        return f"{why}, {', '.join(self.labels)}"[:LONGEST_COMMENT] if self.labels else why


def read_closing(forge: Forge, payload: Mapping[str, Any]) -> Closing | None:
    """Return what a webhook of CLOSING_EVENTS says; None if it closes nothing, or a program did.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    return _github(payload) if forge == "github" else _gitlab(payload)


def said_by_closing(closing: Closing) -> Said:
    """Return the answer of a closing to its event; ``acknowledged`` if it is no verdict.

    Raises:
        InvalidMessage: its labels say different things.
    """
    by_label = {_LABELS[name] for label in closing.labels if (name := _normal(label)) in _LABELS}
    if len(by_label) > 1:
        raise InvalidMessage(f"labels say {' and '.join(sorted(by_label))}")
    verdict = next(iter(by_label), _REASONS.get(closing.reason, "acknowledged"))
    return Said(verdict, comment=closing.comment)


def is_news(closing: Closing, said: Said, state: VerdictKind | None, resolved: bool) -> bool:
    """Return whether a closing adds to what is known of its event.

    Smidgen closes what is resolved, and so does who sees that it is: without a label that says nothing. Nor
    does it take back what a person said of the event in words.
    """
    if any(_normal(label) in _LABELS for label in closing.labels):
        return True
    return not resolved and (state is None or state in _SAYS_LESS.get(said.verdict, ()))


def _github(payload: Mapping[str, Any]) -> Closing | None:
    sender, issue = section(payload, "sender"), section(payload, "issue")
    if text(payload, "action") != "closed" or text(sender, "type") == "Bot":
        return None
    return Closing(
        thread=str(fields.integer(issue, "number")),
        reason=text(issue, "state_reason").replace("_", " "),
        labels=_names(issue, "name"),
        author=fields.text(sender, "login"),
        association=_association(sender, issue),
        time=required_moment(issue, "closed_at"),
    )


def _association(sender: Mapping[str, Any], issue: Mapping[str, Any]) -> str:
    """Return the association of who closes: what somebody else has opened takes the role triage to close."""
    own = text(sender, "login") == text(optional_section(issue, "user"), "login")
    return text(issue, "author_association") if own else COLLABORATORS[-1]


def _gitlab(payload: Mapping[str, Any]) -> Closing | None:
    issue = section(payload, "object_attributes")
    if text(issue, "action") != "close":
        return None
    return Closing(
        thread=str(fields.integer(issue, "iid")),
        reason="",
        labels=_names(payload, "title"),
        author=fields.text(optional_section(payload, "user"), "username"),
        association="",
        time=required_moment(issue, "closed_at", "updated_at"),
    )


def _names(raw: Mapping[str, Any], field: str) -> tuple[str, ...]:
    labels: Sequence[Any] = fields.listing(raw, "labels", optional=True)
    if not all(isinstance(label, dict) for label in labels):
        raise InvalidMessage("labels: should be objects")
    return tuple(text(label, field)[:100] for label in labels[:_MOST_LABELS])


def _normal(label: str) -> str:
    """Return a label's name without its scope and its spelling: ``verdict::False Positive``."""
    return re.sub(r"[\s_-]+", "-", label.rpartition(":")[2].strip().casefold())
