"""Targets against receivers that speak their protocols: begun once, followed, ended, and safe from names."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agents.webhooks.replies import read_answer
from pipeline.alerts.alert import SuspectedChange
from pipeline.alerts.message import Note, digest_of, note_of
from pipeline.alerts.secret import GivenSecret
from pipeline.alerts.targets import (
    KINDS,
    Http,
    Target,
    TargetRefused,
    TargetUnavailable,
    Unsuitable,
)
from pipeline.alerts.targets.http import _seconds
from pipeline.errors import ConfigError
from pipeline.validation import validate
from tests.support.alert_events import alert, detected, outcome, resolved, updated, verdict
from tests.support.alert_receivers import HttpReceiver, Reply, Request, SmtpReceiver

DASHBOARD = "https://smidgen.example.com"
SHA = "8f2c11d0"


def secret(text: str = "secret-token") -> GivenSecret:
    return GivenSecret(text)


def target(kind: str, **options: Any) -> Target:
    return validate(KINDS[kind], {"kind": kind, **options}, "targets.one")


def send(one: Target, note: Note, thread: str = "") -> str:
    async def sending() -> str:
        http = Http()
        try:
            return await one.send(note, thread, http)
        finally:
            await http.close()

    return asyncio.run(sending())


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with HttpReceiver() as running:
        yield running


REPORT = note_of(alert(), DASHBOARD)
UPDATE = note_of(alert(updated("r1")), DASHBOARD)
END = note_of(alert(resolved("r1")), DASHBOARD)
OTHER = note_of(alert(detected("r9")), DASHBOARD)
DIGEST = digest_of([alert(), alert(updated("r2"))], DASHBOARD, "d1")
EVIL = note_of(
    replace(
        alert(service="a<b>&c", metric="<script>`x` *y* @all #1 ![z](u)"),
        suspect=SuspectedChange(
            "8f2c11d0",
            "<!channel> @here fixes #7 GH-12 $3 ~bug https://evil www.evil **b** </p>\r\nBcc: x@y",
            "Eve <e>",
            0.9,
        ),
    ),
    DASHBOARD,
)


def test_slack_replies_in_the_thread(receiver: HttpReceiver) -> None:
    receiver.reply = lambda _: (200, {"ok": True, "ts": "17.5"})
    slack = target("slack", token=secret(), channel="#perf", api=receiver.url)
    thread = send(slack, REPORT)
    assert send(slack, END, thread) == thread == "17.5"
    first, second = receiver.sent("POST", "/chat.postMessage")
    assert receiver.requests[0].headers["Authorization"] == "Bearer secret-token"
    assert "thread_ts" not in first
    assert (second["thread_ts"], second["channel"]) == ("17.5", "#perf")
    sections = first["blocks"][0]["elements"]
    texts = ["".join(piece["text"] for piece in section["elements"]) for section in sections]
    assert texts[:3] == [
        "Slower: shop.pricing.total of shop takes 33.3% more CPU\n",
        "6.000% → 8.000% of CPU, 20 servers of 1,000, since 2026-09-21 13:13 UTC\n",
        "Suspect: 8f2c11d0 Rules may be nested by Ada (score 0.91)\n",
    ]
    assert sections[3]["elements"][0]["url"] == f"{DASHBOARD}/regressions/r1"


@pytest.mark.parametrize(
    ("error", "kind"), [("ratelimited", TargetUnavailable), ("channel_not_found", TargetRefused)]
)
def test_slack_says_what_is_wrong(receiver: HttpReceiver, error: str, kind: type[Exception]) -> None:
    receiver.reply = lambda _: (200, {"ok": False, "error": error})
    slack = target("slack", token=secret(), channel="#perf", api=receiver.url)
    with pytest.raises(kind, match=error):
        send(slack, REPORT)


def test_slack_by_webhook_has_no_thread(receiver: HttpReceiver) -> None:
    slack = target("slack", webhook=secret(f"{receiver.url}/services/T0/B0/x"))
    assert send(slack, EVIL) == ""
    (message,) = receiver.sent("POST", "/services/T0/B0/x")
    assert "<" not in message["text"].replace("&lt;", "")
    assert "<script>" in str(message["blocks"])  # rich text takes it as it is
    assert "<!channel>" not in str(message["blocks"])


def test_teams_gets_a_card_of_text_runs(receiver: HttpReceiver) -> None:
    assert send(target("teams", webhook=secret(f"{receiver.url}/workflow")), REPORT) == ""
    (message,) = receiver.sent("POST", "/workflow")
    card = message["attachments"][0]["content"]
    assert card["body"][0]["inlines"][0]["text"] == REPORT.title
    assert {element["type"] for element in card["body"]} == {"RichTextBlock"}
    assert card["actions"][0]["url"] == REPORT.link


def test_mail_is_one_conversation_and_no_name_makes_a_header() -> None:
    with SmtpReceiver() as server:
        mail = target(
            "email",
            **{"host": "127.0.0.1", "port": server.port, "security": "none"},
            **{"from": "smidgen@example.com", "to": ["team@example.com"]},
        )
        thread = send(mail, EVIL)
        send(mail, END, thread)
    first, second = server.messages
    assert first["Message-ID"] == "<r1.detected@example.com>"
    assert (second["In-Reply-To"], second["Subject"]) == (first["Message-ID"], f"Re: {first['Subject']}")
    assert "Bcc" not in first
    html = first.get_body(("html",))
    assert html is not None
    assert "<script>" not in html.get_content()
    assert "&lt;script&gt;" in html.get_content()


def test_mail_to_nobody_is_refused_and_a_server_that_is_away_is_not() -> None:
    with SmtpReceiver() as server:
        options = {"host": "127.0.0.1", "port": server.port, "security": "none", "from": "a@b"}
        with pytest.raises(TargetRefused):
            send(target("email", to=["nobody@example.com"], **options), REPORT)
    with pytest.raises(TargetUnavailable):
        send(target("email", to=["team@example.com"], **options), REPORT)


def test_pagerduty_has_an_incident_for_each_regression(receiver: HttpReceiver) -> None:
    pager = target("pagerduty", routing_key=secret(), api=receiver.url)
    thread = send(pager, REPORT)
    send(pager, END, thread)
    events = receiver.sent("POST", "/v2/enqueue")
    assert [event["event_action"] for event in events] == ["trigger", "resolve"]
    assert {event["dedup_key"] for event in events} == {"smidgen-r1"}
    assert events[0]["links"] == [{"href": REPORT.link, "text": "Open its page"}]


def test_opsgenie_opens_notes_and_closes_by_alias(receiver: HttpReceiver) -> None:
    genie = target("opsgenie", key=secret(), api=receiver.url)
    thread = send(genie, REPORT)
    send(genie, UPDATE, thread)
    send(genie, END, thread)
    paths = [request.path for request in receiver.requests]
    assert paths == ["/v2/alerts", "/v2/alerts/smidgen-r1/notes", "/v2/alerts/smidgen-r1/close"]
    assert receiver.requests[0].json["alias"] == "smidgen-r1"
    assert receiver.requests[2].query == {"identifierType": "alias"}
    assert receiver.requests[0].headers["Authorization"] == "GenieKey secret-token"


def test_a_webhook_is_signed_as_standard_webhooks_are(receiver: HttpReceiver) -> None:
    key = base64.b64encode(b"k" * 24).decode()
    hook = target("webhook", url=f"{receiver.url}/hook", secret=secret(f"whsec_{key}"))
    send(hook, REPORT)
    (request,) = receiver.requests
    signed = (
        f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    )
    mac = base64.b64encode(hmac.new(b"k" * 24, signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{mac}"
    assert request.json["alerts"][0]["regression"] == "r1"
    send(hook, DIGEST)
    assert len(receiver.requests[1].json["alerts"]) == 2


def test_apprise_speaks_to_its_addresses(receiver: HttpReceiver) -> None:
    address = receiver.url.replace("http://", "json://")
    send(target("apprise", urls=[secret(f"{address}/notify")]), REPORT)
    (message,) = receiver.sent("POST", "/notify")
    assert (message["title"], "Slower" in message["message"]) == (REPORT.title, True)
    receiver.reply = lambda _: (500, {})
    with pytest.raises(TargetUnavailable):
        send(target("apprise", urls=[secret(address)]), REPORT)
    with pytest.raises(TargetRefused, match=r"urls\.0: apprise does not know"):
        send(target("apprise", urls=[secret("nothing-at-all")]), REPORT)


def test_no_name_mentions_anybody_in_what_apprise_speaks_to(receiver: HttpReceiver) -> None:
    evil = alert(service="@everyone", metric="<@U1>", root_causes=[])
    by = SuspectedChange("8f2c11d0", "<!channel> see http://evil.example", "@here mailto:x@y", 0.9)
    address = receiver.url.replace("http://", "json://")
    send(target("apprise", urls=[secret(address)]), note_of(replace(evil, suspect=by), DASHBOARD))
    sent = f"{receiver.requests[0].json['title']} {receiver.requests[0].json['message']}"
    assert not re.search(r"@\w|<[!@]|mailto:|http://evil", sent)
    assert f"Open its page: {DASHBOARD}" in sent


def test_alertmanager_fires_and_ends_one_alert(receiver: HttpReceiver) -> None:
    manager = target("alertmanager", url=receiver.url, labels={"team": "shop"})
    send(manager, END, send(manager, REPORT))
    (fired,), (ended,) = receiver.sent("POST", "/api/v2/alerts")
    assert fired["labels"] == ended["labels"]
    assert fired["labels"]["regression"] == "r1"
    assert fired["endsAt"] > "2026-10-20"
    assert ended["endsAt"] == "2026-09-21T14:15:20.000Z"


class Annotations:
    """Grafana's annotations, kept in memory."""

    def __init__(self) -> None:
        self.kept: dict[int, dict[str, Any]] = {}

    def __call__(self, request: Request) -> Reply:
        if request.method == "GET":
            tag = request.query["tags"]
            return 200, [{"id": n} for n, one in self.kept.items() if tag in one["tags"]]
        if request.method == "POST":
            self.kept[len(self.kept) + 1] = request.json
            return 200, {"id": len(self.kept)}
        self.kept[int(request.path.rpartition("/")[2])] |= request.json
        return 200, {}


def test_alertmanager_knows_an_experiment_by_itself(receiver: HttpReceiver) -> None:
    """The metric that leads may be another one in a later verdict; labels stay the same."""
    later = [outcome("calls", "fail", 0.5)]
    for event in (verdict(), verdict(revision=2, metrics=later)):
        send(target("alertmanager", url=receiver.url), note_of(alert(event), ""))
    first, second = (sent[0]["labels"] for sent in receiver.sent("POST", "/api/v2/alerts"))
    assert first == second
    assert (first["alertname"], first["experiment"]) == ("SmidgenTrial", "pr-7")


def test_grafana_has_one_annotation_that_becomes_a_region(receiver: HttpReceiver) -> None:
    receiver.reply = annotations = Annotations()
    grafana = target("grafana", url=receiver.url, token=secret(), tags=["perf"])
    thread = send(grafana, REPORT)
    assert send(grafana, REPORT) == thread  # after a crash before it was kept
    send(grafana, END, thread)
    ((_, one),) = annotations.kept.items()
    assert one["tags"] == ["smidgen", "regression", "shop", "smidgen-r1", "perf"]
    assert one["timeEnd"] > one["time"]
    assert "back to its level" in one["text"]


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


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, TargetUnavailable) for status in (408, 429, 500, 503)),
        *((status, TargetRefused) for status in (301, 400, 401, 404)),
    ],
)
def test_answers_are_for_later_or_for_good(
    receiver: HttpReceiver, status: int, kind: type[Exception]
) -> None:
    receiver.reply = lambda _: (status, {"message": "no"})
    with pytest.raises(kind, match=f"HTTP {status}"):
        send(target("webhook", url=receiver.url), REPORT)


@pytest.mark.parametrize(
    ("asked", "wait_s"),
    [("120", 120.0), ("²", 0.0), ("9" * 400, 86_400.0), ("-1", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0)],
)
def test_what_a_target_asks_to_wait_is_bounded(asked: str, wait_s: float) -> None:
    assert _seconds(asked) == wait_s


def test_an_address_where_nobody_is_may_be_there_later() -> None:
    with pytest.raises(TargetUnavailable):
        send(target("webhook", url="http://127.0.0.1:9"), REPORT)


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("slack", {"webhook": "https://hooks.slack.com/x"}, "webhook: a secret: give it as {env: NAME}"),
        ("slack", {"token": secret()}, "give either webhook, or token and channel"),
        ("pagerduty", {"routing_key": secret(), "digest": {"at": "09:00"}}, "takes single alerts only"),
        ("github-issue", {"token": secret(), "repository": "shop"}, "repository: "),
        ("email", {"host": "h", "from": "a@b", "to": ["no address"]}, "to.0: "),
    ],
)
def test_wrong_options_are_named(kind: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        target(kind, **options)
    assert said in str(caught.value)
    assert "secret-token" not in str(caught.value)


def test_every_kind_has_a_docstring_and_its_own_name() -> None:
    for kind, one in KINDS.items():
        assert one.__doc__
        assert kind in str(one.model_fields["kind"].annotation)
