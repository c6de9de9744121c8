"""Targets that keep issues: forges and Jira, against receivers that speak their protocols."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any

import pytest

from agents.webhooks.replies import read_answer
from pipeline.delivery.alerts.alert import SuspectedChange
from pipeline.delivery.alerts.message import note_of
from pipeline.delivery.alerts.targets import Unsuitable
from tests.support.alert_events import alert, detected, resolved
from tests.support.alert_receivers import HttpReceiver, Reply, Request
from tests.support.alert_targets import DASHBOARD, END, EVIL, OTHER, REPORT, SHA, UPDATE, secret, send, target


class FakeForge:
    """Issues, comments, merge requests and statuses of GitHub and GitLab, kept in memory."""

    def __init__(self, number: str, text: str) -> None:
        self.number, self.text = number, text  # what the forge calls them
        self.issues: list[dict[str, Any]] = []
        self.notes: list[tuple[str, str]] = []
        self.statuses: list[dict[str, Any]] = []
        self.changed: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Reply:
        path = request.path.removeprefix("/repos/acme/shop").removeprefix("/projects/acme%2Fshop")
        if path.startswith("/statuses/"):
            self.statuses.append({"sha": path.rpartition("/")[2], **request.json})
            return 201, {}
        if f"/commits/{SHA}" in path:
            return 200, [
                {self.number: 40, "state": "closed"},
                {self.number: 41, "merged_at": "x", "state": "merged"},
            ]
        if path.endswith(("/comments", "/notes")):
            if request.method == "GET":
                return 200, [{"body": text} for where, text in self.notes if where == path]
            self.notes.append((path, request.json["body"]))
            return 201, {}
        if path == "/issues" and request.method == "GET":
            assert request.query["labels"] == "smidgen"
            return 200, self.issues
        if path == "/issues":
            self.issues.append({**request.json, self.number: len(self.issues) + 1})
            return 201, self.issues[-1]
        self.changed.append(request.json)
        return 200, {}


FORGES = [
    pytest.param("github", "number", "body", {"state": "closed"}, "/issues/41/comments", id="github"),
    pytest.param(
        "gitlab", "iid", "description", {"state_event": "close"}, "/merge_requests/41/notes", id="gitlab"
    ),
]


@pytest.mark.parametrize(("forge", "number", "text", "closing", "where"), FORGES)
def test_forges_have_one_issue_comment_and_status(
    receiver: HttpReceiver, forge: str, number: str, text: str, closing: dict[str, str], where: str
) -> None:
    receiver.reply = kept = FakeForge(number, text)
    options: dict[str, Any] = {"repository": "acme/shop", "token": secret(), "api": receiver.url}
    issue = target(f"{forge}-issue", labels=["perf"], **options)
    thread = send(issue, REPORT)
    assert send(issue, REPORT) == thread == "1"  # found again by its marker
    for _ in range(2):
        send(issue, UPDATE, thread)
        send(issue, END, thread)
    assert [one["title"] for one in kept.issues] == [REPORT.title]
    assert "<!-- smidgen:r1 -->" in kept.issues[0][text]
    assert len(kept.notes) == 2
    assert kept.changed[0] == closing

    kept.notes.clear()
    comment = target(f"{forge}-comment", **options)
    request = "41" if forge == "github" else "!41"  # GitLab has issues of the same numbers
    assert send(comment, REPORT) == send(comment, REPORT) == request
    send(comment, END, request)
    assert [path for path, _ in kept.notes] == [where, where]

    status = target(f"{forge}-status", **options)
    send(status, END, send(status, REPORT))
    states = [one["state"] for one in kept.statuses]
    assert states in (["failure", "success"], ["failed", "success"])
    assert {one["sha"] for one in kept.statuses} == {SHA}


@pytest.mark.parametrize("kind", ["github-comment", "github-status", "gitlab-comment", "gitlab-status"])
@pytest.mark.parametrize(
    "suspect", [None, SuspectedChange(SHA, score=0.3), SuspectedChange("flag/nested-rules", score=0.9)]
)
def test_without_a_suspected_commit_there_is_nothing_to_say(
    kind: str, suspect: SuspectedChange | None
) -> None:
    one = target(kind, repository="acme/shop", token=secret(), api="http://127.0.0.1:9")
    with pytest.raises(Unsuitable):
        send(one, note_of(replace(alert(), suspect=suspect), DASHBOARD))


def test_no_name_steers_the_markdown_of_an_issue(receiver: HttpReceiver) -> None:
    receiver.reply = kept = FakeForge("number", "body")
    send(target("github-issue", repository="acme/shop", token=secret(), api=receiver.url), EVIL)
    body, code = kept.issues[0]["body"], "``<script>`x` *y* @all #1 ![z](u)``"
    body = body.replace("`` ", "``").replace(" ``", "``")
    assert "@here" not in body
    assert "fixes #7" not in body
    assert "**b**" not in body
    assert "<!channel>" not in body
    for sign in ("@all", "#1", "GH-12", "$3", "~bug", "https://evil", "www.evil"):
        assert sign not in re.sub(r"\\(.)", r"\1", body.replace(code, ""))
    assert code in body


@pytest.mark.parametrize("replies", [True, False])
def test_a_message_says_how_to_answer_where_replies_are_read(receiver: HttpReceiver, replies: bool) -> None:
    receiver.reply = kept = FakeForge("number", "body")
    options: dict[str, Any] = {"repository": "acme/shop", "token": secret(), "api": receiver.url}
    event = "c0ffee0123456789"
    report = note_of(alert(detected(event)), DASHBOARD)
    end = note_of(alert(resolved(event)), DASHBOARD)
    issue = target("github-issue", replies=replies, **options)
    comment = target("github-comment", replies=replies, **options)
    for one in (issue, comment):
        send(one, end, send(one, report))
    opened, (ended, commented, ended_too) = kept.issues[0]["body"], [text for _, text in kept.notes]
    assert ("`/smidgen false` and why" in opened) is replies
    assert ("`/smidgen false c0ffee012345` and why" in commented) is replies
    assert "`/smidgen" not in ended + ended_too
    for said in (command for text in (opened, commented) for command in re.findall("`(/smidgen.*?)`", text)):
        answer = read_answer(f"{said} it was a load test")
        assert answer is not None
        assert (answer.verdict, answer.comment) == ("false", "it was a load test")


class FakeJira:
    """Issues of Jira, kept in memory."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.moved: list[str] = []

    def __call__(self, request: Request) -> Reply:
        path = request.path.removeprefix("/rest/api/3")
        if path == "/search/jql":
            label = request.json["jql"].split('"')[1]
            return 200, {"issues": [{"key": "SHOP-1"} for one in self.issues if label in one["labels"]]}
        if path == "/issue":
            self.issues.append(request.json["fields"])
            return 201, {"key": f"SHOP-{len(self.issues)}"}
        if path == "/issue/SHOP-1/comment":
            if request.method == "POST":
                self.comments.append(request.json)
            return 200, {"comments": self.comments}
        if request.method == "GET":
            return 200, {"transitions": [{"id": "5", "name": "Done"}]}
        self.moved.append(request.json["transition"]["id"])
        return 204, {}


def test_jira_has_one_issue_that_is_moved_at_the_end(receiver: HttpReceiver) -> None:
    receiver.reply = kept = FakeJira()
    jira = target("jira", url=receiver.url, user="bot", token=secret(), project="SHOP", resolved="Done")
    thread = send(jira, REPORT)
    assert send(jira, REPORT) == thread == "SHOP-1"
    for note in (UPDATE, UPDATE, END):
        send(jira, note, thread)
    assert len(kept.issues) == 1
    assert len(kept.comments) == 2
    assert kept.moved == ["5"]
    assert kept.issues[0]["description"]["type"] == "doc"
    assert "/smidgen false" not in str(kept.issues[0])
    send(target("jira", url=receiver.url, user="bot", token=secret(), project="SHOP", replies=True), OTHER)
    assert "/smidgen false" in str(kept.issues[1]["description"])
    login = base64.b64encode(b"bot:secret-token").decode()
    assert receiver.requests[0].headers["Authorization"] == f"Basic {login}"
