"""Targets against receivers that speak their protocols: begun once, followed, ended, and safe from names."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import replace
from typing import Any

import pytest

from pipeline.delivery.alerts.alert import SuspectedChange
from pipeline.delivery.alerts.message import note_of
from pipeline.delivery.alerts.targets import KINDS, TargetRefused, TargetUnavailable
from pipeline.delivery.alerts.targets.http import _seconds
from pipeline.model.errors import ConfigError
from tests.support.alert_events import alert, outcome, verdict
from tests.support.alert_receivers import HttpReceiver, Reply, Request, SmtpReceiver
from tests.support.alert_targets import DASHBOARD, DIGEST, END, EVIL, REPORT, UPDATE, secret, send, target


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
