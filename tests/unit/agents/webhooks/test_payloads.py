"""What the payloads of GitHub and GitLab say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.webhooks import github, gitlab
from agents.webhooks.forge_event import ForgeEvent, PayloadCommit, moment
from pipeline.model.errors import InvalidMessage

A, B, C, ZERO = "a" * 40, "b" * 40, "c" * 40, "0" * 40
HUB = {"full_name": "acme/shop", "pushed_at": 1_700_000_000}
LAB = {"path_with_namespace": "acme/web/shop"}


def commit(sha: str, message: str = "Fix totals\n\nThey were wrong.\n", **more: Any) -> dict[str, Any]:
    author = {"name": "Ada", "email": "ada@example.org"}
    return {"id": sha, "message": message, "author": author, "added": ["b.py"], "modified": ["a.py"], **more}


def payload_commit(sha: str = "") -> PayloadCommit:
    return PayloadCommit(sha, "Fix totals", "Ada <ada@example.org>", "They were wrong.", ("b.py", "a.py"))


def hub_push(**more: Any) -> dict[str, Any]:
    push = {"ref": "refs/heads/main", "before": A, "after": C, "commits": [commit(B), commit(C)]}
    return {**push, "repository": HUB, "head_commit": commit(C), **more}


def hub_tag(**more: Any) -> dict[str, Any]:
    return hub_push(**{"ref": "refs/tags/v1", "before": ZERO, "after": B, "commits": [], **more})


def hub_release(action: str = "published", **more: Any) -> dict[str, Any]:
    release = {"tag_name": "v1", "name": "First", "body": "New.", "target_commitish": "main", "draft": False}
    published = {"published_at": "2023-11-14T22:13:20Z", "author": {"login": "ada"}}
    return {"action": action, "release": {**release, **published, **more}, "repository": HUB}


def hub_deployment(state: str = "success", **more: Any) -> dict[str, Any]:
    status = {"state": state, "environment": "production", "created_at": "2023-11-14T22:13:20Z"}
    deployment = {"sha": B, "ref": "main", "environment": "old name", "description": None, "creator": None}
    return {"deployment_status": status, "deployment": {**deployment, **more}, "repository": HUB}


def lab_push(**more: Any) -> dict[str, Any]:
    push = {"object_kind": "push", "ref": "refs/heads/main", "before": A, "after": C, "project": LAB}
    return {**push, "commits": [commit(B), commit(C)], "total_commits_count": 2, **more}


def lab_tag(**more: Any) -> dict[str, Any]:
    tag = {"ref": "refs/tags/v1", "before": ZERO, "after": B, "checkout_sha": C, "project": LAB}
    return {**tag, "user_name": "Ada", "message": "First\n\nNew.", "commits": [], **more}


def lab_release(**more: Any) -> dict[str, Any]:
    release = {"action": "create", "tag": "v1", "name": "First", "description": "New.", "project": LAB}
    when = {"released_at": "2023-11-14 22:13:20 UTC", "created_at": "2020-01-01 00:00:00 UTC"}
    return {**release, **when, "commit": commit(B), **more}


def lab_deployment(**more: Any) -> dict[str, Any]:
    deployment = {"status": "success", "environment": "production", "project": LAB, "short_sha": B[:8]}
    when = {"status_changed_at": "2023-11-14 23:13:20 +0100", "user": {"name": "Ada"}}
    where = {
        "commit_url": f"https://git.example.org/acme/web/shop/-/commit/{B}",
        "commit_title": "Fix totals",
    }
    return {**deployment, **when, **where, **more}


PUSHED = 1_700_000_000.0
FIXES = (payload_commit(B), payload_commit(C))
DEPLOYED = PayloadCommit(B, "Deployment of main to production")
hub = partial(ForgeEvent, "acme/shop")
lab = partial(ForgeEvent, "acme/web/shop")
UNNAMED: dict[str, Any] = {"target_commitish": B, "name": None, "body": None, "published_at": None}
PLAIN_TAG = lab_tag(after=C, message=None, commits=[commit(C)])

DELIVERIES: Mapping[str, tuple[str, str, dict[str, Any], ForgeEvent | None]] = {
    "GitHub, push": ("github", "push", hub_push(), hub("branch", "main", FIXES, A, C, PUSHED)),
    "GitHub, new branch": (
        "github",
        "push",
        hub_push(before=ZERO, ref="refs/heads/feature/x", commits=[]),
        hub("branch", "feature/x", FIXES[1:], "", C, PUSHED),
    ),
    "GitHub, tag": ("github", "push", hub_tag(), hub("tag", "v1", (payload_commit(),), "", C, PUSHED)),
    "GitHub, deleted branch": ("github", "push", hub_push(after=ZERO, head_commit=None, commits=[]), None),
    "GitHub, notes": ("github", "push", hub_push(ref="refs/notes/x"), None),
    "GitHub, release": (
        "github",
        "release",
        hub_release(),
        hub("tag", "v1", (PayloadCommit("", "First", "ada", "New."),), "", "", PUSHED),
    ),
    "GitHub, release of a commit": (
        "github",
        "release",
        hub_release(**UNNAMED),
        hub("tag", "v1", (PayloadCommit("", "v1", "ada"),), "", B),
    ),
    "GitHub, edited release": ("github", "release", hub_release("edited"), None),
    "GitHub, draft": ("github", "release", hub_release(draft=True), None),
    "GitHub, deployment": (
        "github",
        "deployment_status",
        hub_deployment(),
        hub("environment", "production", (DEPLOYED,), "", B, PUSHED),
    ),
    "GitHub, deployment begins": ("github", "deployment_status", hub_deployment("in_progress"), None),
    "GitHub, deployment fails": ("github", "deployment_status", hub_deployment("failure"), None),
    "GitLab, push": ("gitlab", "Push Hook", lab_push(), lab("branch", "main", FIXES, A, C)),
    "GitLab, long push": (
        "gitlab",
        "Push Hook",
        lab_push(total_commits_count=42),
        lab("branch", "main", FIXES, A, C, left_out=40),
    ),
    "GitLab, new branch": (
        "gitlab",
        "Push Hook",
        lab_push(before=ZERO, commits=[], total_commits_count=0),
        lab("branch", "main", (), "", C),
    ),
    "GitLab, deleted branch": ("gitlab", "Push Hook", lab_push(after=ZERO, commits=[]), None),
    "GitLab, annotated tag": (
        "gitlab",
        "Tag Push Hook",
        lab_tag(),
        lab("tag", "v1", (PayloadCommit(C, "First", "Ada", "New."),), "", C),
    ),
    "GitLab, plain tag": ("gitlab", "Tag Push Hook", PLAIN_TAG, lab("tag", "v1", FIXES[1:], "", C)),
    "GitLab, deleted tag": ("gitlab", "Tag Push Hook", lab_tag(after=ZERO, checkout_sha=None), None),
    "GitLab, release": (
        "gitlab",
        "Release Hook",
        lab_release(),
        lab("tag", "v1", (PayloadCommit(B, "First", "Ada <ada@example.org>", "New."),), "", B, PUSHED),
    ),
    "GitLab, edited release": ("gitlab", "Release Hook", lab_release(action="update"), None),
    "GitLab, deployment": (
        "gitlab",
        "Deployment Hook",
        lab_deployment(),
        lab("environment", "production", (PayloadCommit(B, "Fix totals", "Ada"),), "", B, PUSHED),
    ),
    "GitLab, deployment begins": ("gitlab", "Deployment Hook", lab_deployment(status="running"), None),
    "GitLab, deployment fails": ("gitlab", "Deployment Hook", lab_deployment(status="failed"), None),
}


def read(forge: str, event: str, payload: dict[str, Any]) -> ForgeEvent | None:
    assert event in (github if forge == "github" else gitlab).EVENTS
    return (github.read_github if forge == "github" else gitlab.read_gitlab)(event, payload)


@pytest.mark.parametrize(("forge", "event", "payload", "expected"), DELIVERIES.values(), ids=DELIVERIES)
def test_deliveries(forge: str, event: str, payload: dict[str, Any], expected: ForgeEvent | None) -> None:
    assert read(forge, event, payload) == expected


@pytest.mark.parametrize(
    ("forge", "event", "payload", "field"),
    [
        pytest.param("github", "push", {}, "ref", id="empty"),
        pytest.param("github", "push", hub_push(after="main"), "after", id="not an id"),
        pytest.param("github", "push", hub_push(after="--upload-pack=x"), "after", id="option"),
        pytest.param("github", "push", hub_push(commits={}), "commits", id="commits"),
        pytest.param("github", "push", hub_push(commits=[3]), "commits", id="commit"),
        pytest.param("github", "push", hub_push(commits=[commit("x")]), "id", id="commit id"),
        pytest.param("github", "push", hub_push(commits=[commit(B, added=[1])]), "added", id="files"),
        pytest.param("github", "push", hub_push(repository=None), "repository", id="repository"),
        pytest.param("github", "push", hub_push(repository={"pushed_at": 1e300}), "pushed_at", id="time"),
        pytest.param("github", "release", {"action": "published"}, "release", id="release"),
        pytest.param("github", "release", hub_release(tag_name=None), "tag_name", id="tag"),
        pytest.param("github", "release", hub_release(published_at="noon"), "ISO 8601", id="release time"),
        pytest.param("github", "deployment_status", {}, "deployment_status", id="deployment"),
        pytest.param("github", "deployment_status", hub_deployment(sha="x"), "sha", id="deployed id"),
        pytest.param("gitlab", "Push Hook", lab_push(after=None), "after", id="lab push"),
        pytest.param("gitlab", "Push Hook", lab_push(total_commits_count="x"), "total_commits", id="count"),
        pytest.param("gitlab", "Tag Push Hook", lab_tag(checkout_sha=None), "checkout_sha", id="lab tag"),
        pytest.param("gitlab", "Release Hook", lab_release(commit=None), "commit", id="lab release"),
        pytest.param("gitlab", "Deployment Hook", lab_deployment(commit_url="x"), "commit_url", id="url"),
        pytest.param("gitlab", "Deployment Hook", lab_deployment(environment=3), "environment", id="env"),
    ],
)
def test_a_wrong_field_is_named(forge: str, event: str, payload: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidMessage, match=field):
        read(forge, event, payload)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([delivery[:3] for delivery in DELIVERIES.values() if delivery[3]]), st.data())
def test_any_value_in_any_field_is_read_or_named(
    case: tuple[str, str, dict[str, Any]], data: st.DataObject
) -> None:
    forge, event, payload = case
    field = data.draw(st.sampled_from(sorted(payload)))
    changed = {**payload, field: data.draw(JSON)}
    if isinstance(payload[field], dict) and data.draw(st.booleans()):
        inner = data.draw(st.sampled_from(sorted(payload[field])))
        changed[field] = {**payload[field], inner: data.draw(JSON)}
    try:
        forge_event = read(forge, event, changed)
    except InvalidMessage:
        return
    assert forge_event is None or isinstance(forge_event, ForgeEvent)


@pytest.mark.parametrize(
    "spelt",
    [
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:20.000Z",
        "2023-11-14 22:13:20 UTC",
        "2023-11-14 23:13:20 +0100",
        "2023-11-14T23:13:20+01:00",
        1_700_000_000,
        1_700_000_000.0,
    ],
)
def test_times_of_every_spelling(spelt: str | float) -> None:
    assert moment({"at": spelt}, "missing", "at") == 1_700_000_000.0


def test_a_time_of_a_million_spaces_is_no_time() -> None:
    """To look for an offset at every one of them took the square of their number."""
    with pytest.raises(InvalidMessage, match="at: longer than 64 characters"):
        moment({"at": "2023-11-14" + " " * 1_000_000 + "x"}, "at")
