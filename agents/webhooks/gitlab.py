"""GitLab's webhooks: push, tag push, deployment and release.

The payloads are described at https://docs.gitlab.com/user/project/integrations/webhook_events/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.webhooks.forge_event import (
    SHA,
    ForgeEvent,
    PayloadCommit,
    moment,
    optional_section,
    payload_commit,
    person,
    pushed_commits,
    section,
    sha,
    text,
)
from pipeline.messages import fields
from pipeline.model.errors import InvalidMessage

FLAG_EVENT = "Feature Flag Hook"
"""Event of a feature flag that was turned on or off: ``agents.webhooks.flag_events`` reads it."""

EVENTS = frozenset({"Push Hook", "Tag Push Hook", "Deployment Hook", "Release Hook", FLAG_EVENT})


def repository_of(payload: Mapping[str, Any]) -> str:
    """Return the path of the project, such as ``acme/web/shop``; empty where none is given."""
    return text(optional_section(payload, "project"), "path_with_namespace")


def read_gitlab(event: str, payload: Mapping[str, Any]) -> ForgeEvent | None:
    """Return what an event of EVENTS says, None if it deploys nothing: a failure, a deletion, an edit.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    if event == "Push Hook":
        return _push(payload)
    if event == "Tag Push Hook":
        return _tag(payload)
    if event == "Release Hook":
        return _release(payload)
    return _deployment(payload)


def _push(payload: Mapping[str, Any]) -> ForgeEvent | None:
    after = sha(payload, "after")
    if not after:
        return None
    commits = pushed_commits(payload)
    return ForgeEvent(
        repository=repository_of(payload),
        occasion="branch",
        name=fields.text(payload, "ref").removeprefix("refs/heads/"),
        commits=commits,
        before=sha(payload, "before"),
        after=after,
        left_out=max(fields.integer(payload, "total_commits_count", 0) - len(commits), 0),
    )


def _tag(payload: Mapping[str, Any]) -> ForgeEvent | None:
    if not sha(payload, "after"):
        return None
    name = fields.text(payload, "ref").removeprefix("refs/tags/")
    commit = sha(payload, "checkout_sha")  # an annotated tag's own id is no commit's
    commits = [c for c in pushed_commits(payload) if c.sha == commit]
    message = f"{text(payload, 'message') or name}"
    return ForgeEvent(
        repository=repository_of(payload),
        occasion="tag",
        name=name,
        commits=tuple(commits) or (payload_commit(commit, message, text(payload, "user_name")),),
        after=commit,
    )


def _release(payload: Mapping[str, Any]) -> ForgeEvent | None:
    if text(payload, "action") != "create":
        return None
    commit, tag = section(payload, "commit"), fields.text(payload, "tag")
    message = f"{text(payload, 'name') or tag}\n{text(payload, 'description')}"
    commit_sha = sha(commit, "id")
    return ForgeEvent(
        repository=repository_of(payload),
        occasion="tag",
        name=tag,
        commits=(payload_commit(commit_sha, message, person(optional_section(commit, "author"))),),
        after=commit_sha,
        time=moment(payload, "released_at", "created_at"),
    )


def _deployment(payload: Mapping[str, Any]) -> ForgeEvent | None:
    if text(payload, "status") != "success":
        return None
    commit = text(payload, "commit_url").rpartition("/")[2]  # the only place of the whole id
    if not SHA.fullmatch(commit):
        raise InvalidMessage("commit_url: should end in a commit id")
    author = text(optional_section(payload, "user"), "name")
    environment = fields.text(payload, "environment")
    title = text(payload, "commit_title") or f"Deployment of {commit[:12]} to {environment}"
    return ForgeEvent(
        repository=repository_of(payload),
        occasion="environment",
        name=environment,
        commits=(PayloadCommit(commit, title, author),),
        after=commit,
        time=moment(payload, "status_changed_at"),
    )
