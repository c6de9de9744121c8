"""GitHub's webhooks: push, release and deployment_status.

The payloads are described at https://docs.github.com/webhooks/webhook-events-and-payloads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.webhooks.forge_event import (
    SHA,
    ForgeEvent,
    moment,
    optional_section,
    payload_commit,
    pushed_commits,
    section,
    sha,
    text,
)
from pipeline.messages import fields

EVENTS = frozenset({"push", "release", "deployment_status"})


def repository_of(payload: Mapping[str, Any]) -> str:
    """Return the full name of the repository, such as ``acme/shop``; empty where none is given."""
    return text(optional_section(payload, "repository"), "full_name")


def read_github(event: str, payload: Mapping[str, Any]) -> ForgeEvent | None:
    """Return what an event of EVENTS says, None if it deploys nothing: a draft, a failure, a deletion.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    if event == "push":
        return _push(payload)
    if event == "release":
        return _release(payload)
    return _deployment(payload)


def _push(payload: Mapping[str, Any]) -> ForgeEvent | None:
    ref, after = fields.text(payload, "ref"), sha(payload, "after")
    head = optional_section(payload, "head_commit")
    if not after or not ref.startswith(("refs/heads/", "refs/tags/")):  # deleted, or notes and the like
        return None
    heads = pushed_commits({"commits": [head] if head else []})
    repository = section(payload, "repository")
    if ref.startswith("refs/tags/"):
        return ForgeEvent(
            repository=repository_of(payload),
            occasion="tag",
            name=ref.removeprefix("refs/tags/"),
            # Without the commit's id, which a release does not have: both are one change.
            commits=tuple(replace(head, sha="") for head in heads),
            after=heads[0].sha if heads else "",  # an annotated tag's own id is no commit's
            time=moment(repository, "pushed_at"),
        )
    return ForgeEvent(
        repository=repository_of(payload),
        occasion="branch",
        name=ref.removeprefix("refs/heads/"),
        commits=pushed_commits(payload) or heads,
        before=sha(payload, "before"),
        after=after,
        time=moment(repository, "pushed_at"),
    )


def _release(payload: Mapping[str, Any]) -> ForgeEvent | None:
    if text(payload, "action") != "published":
        return None
    release = section(payload, "release")
    if fields.flag(release, "draft"):
        return None
    tag, target = fields.text(release, "tag_name"), text(release, "target_commitish")
    message = f"{text(release, 'name') or tag}\n{text(release, 'body')}"
    author = text(optional_section(release, "author"), "login")
    return ForgeEvent(
        repository=repository_of(payload),
        occasion="tag",
        name=tag,
        commits=(payload_commit("", message, author),),
        after=target if SHA.fullmatch(target) else "",
        time=moment(release, "published_at", "created_at"),
    )


def _deployment(payload: Mapping[str, Any]) -> ForgeEvent | None:
    status, deployment = section(payload, "deployment_status"), section(payload, "deployment")
    if text(status, "state") != "success":
        return None
    environment = text(status, "environment") or fields.text(deployment, "environment")
    commit = sha(deployment, "sha")
    title = f"Deployment of {text(deployment, 'ref') or commit[:12]} to {environment}"
    author = text(optional_section(deployment, "creator"), "login")
    return ForgeEvent(
        repository=repository_of(payload),
        occasion="environment",
        name=environment,
        commits=(payload_commit(commit, f"{title}\n{text(deployment, 'description')}", author),),
        after=commit,
        time=moment(status, "created_at", "updated_at"),
    )
