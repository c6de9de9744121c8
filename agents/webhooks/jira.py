"""Jira's webhooks: comments on the issues of alerts, and issues that are done.

The payloads are described at https://developer.atlassian.com/cloud/jira/platform/webhooks/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.webhooks.closings import Closing
from agents.webhooks.forge_event import optional_section, required_moment, section, text
from agents.webhooks.replies import Reply
from pipeline.messages import fields

_DONE = frozenset({"status", "resolution"})
"""Fields of which a change may say that an issue is done."""


def project_of(payload: Mapping[str, Any]) -> str:
    """Return the key of the project of a webhook's issue, such as ``SHOP``."""
    return fields.text(section(payload, "issue"), "key").rpartition("-")[0]


def read_jira(payload: Mapping[str, Any]) -> Reply | Closing | None:
    """Return what a webhook says of an issue; None if it is no new comment and closes nothing.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    event = text(payload, "webhookEvent")
    if event == "comment_created":
        return _comment(payload)
    return _closing(payload) if event == "jira:issue_updated" else None


def _comment(payload: Mapping[str, Any]) -> Reply | None:
    comment = section(payload, "comment")
    author = section(comment, "author")
    if text(author, "accountType") == "app":
        return None
    return Reply(
        thread=fields.text(section(payload, "issue"), "key"),
        text=text(comment, "body"),
        author=fields.text(author, "accountId"),
        association="",
        time=required_moment(comment, "created"),
    )


def _closing(payload: Mapping[str, Any]) -> Closing | None:
    issue, user = section(payload, "issue"), section(payload, "user")
    now = section(issue, "fields")
    status = optional_section(optional_section(now, "status"), "statusCategory")
    changed = fields.listing(optional_section(payload, "changelog"), "items", optional=True)
    if text(status, "key") != "done" or text(user, "accountType") == "app":
        return None
    if not any(isinstance(item, dict) and item.get("field") in _DONE for item in changed):
        return None
    return Closing(
        thread=fields.text(issue, "key"),
        reason=text(optional_section(now, "resolution"), "name").lower()[:100],
        labels=tuple(label[:100] for label in fields.texts(now, "labels")[:20]),
        author=fields.text(user, "accountId"),
        association="",
        time=fields.number(payload, "timestamp") / 1000,
    )
