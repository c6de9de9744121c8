"""Jira's comments and done issues as answers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from agents.webhooks.answers import WebhookAnswer
from agents.webhooks.closings import YIELDS_S, Closing
from agents.webhooks.jira import read_jira
from agents.webhooks.mapping import AnswerRights, Tracker, load_service_map
from agents.webhooks.receiver import DeliveryReceiver
from agents.webhooks.replies import Reply
from agents.webhooks.reply_receiver import ReplyReceiver
from agents.webhooks.server import make_app
from agents.webhooks.tracker_receiver import TrackerReceiver
from pipeline.analysis.feedback.labeller import Answers, label
from pipeline.messages.inputs import decode_feedback
from pipeline.model import Verdict
from pipeline.model.errors import ConfigError, InvalidMessage
from tests.unit.agents.webhooks.test_receiver import NOW, SERVICES, Broker
from tests.unit.agents.webhooks.test_replies import EVENT, alerted

SECRET = "tracker secret"
CLOSED = 1_700_000_000.0
PEOPLE = AnswerRights(("pull-requests",), ("5b10",))
SHOP = Tracker("SHOP", frozenset({"shop"}), SECRET, PEOPLE)


def done(resolution: str | None = "Done", *, key: str = "SHOP-1", **own: Any) -> dict[str, Any]:
    """What Jira sends of an issue that is done, as far as it is read."""
    now = {"resolution": resolution and {"name": resolution}, "labels": ["smidgen"]}
    return {
        "webhookEvent": "jira:issue_updated",
        "timestamp": int(CLOSED * 1000),
        "user": {"accountId": "5b10", "displayName": "Grace", "accountType": "atlassian"},
        "issue": {"key": key, "fields": {**now, "status": {"statusCategory": {"key": "done"}}, **own}},
        "changelog": {"items": [{"field": "status", "toString": "Done"}]},
    }


def commented(text: str, author: str = "5b10") -> dict[str, Any]:
    """What Jira sends of a comment."""
    comment = {"author": {"accountId": author}, "body": text, "created": "2023-11-14T22:13:20.000+0000"}
    return {"webhookEvent": "comment_created", "comment": comment, "issue": {"key": "SHOP-1"}}


def signed(body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"X-Hub-Signature": f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"}


class World:
    """A receiver over a store in which an alert opened SHOP-1."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.replies = ReplyReceiver(
            alerted((EVENT, "shop"), thread="SHOP-1"), self.broker.send, clock=lambda: NOW
        )
        self.receiver = TrackerReceiver((SHOP,), self.replies)

    def __call__(self, payload: Mapping[str, Any], secret: str = SECRET) -> WebhookAnswer:
        body = json.dumps(payload).encode()
        return asyncio.run(self.receiver.receive(signed(body, secret), body))

    @property
    def said(self) -> list[Any]:
        return [decode_feedback(message.value) for message in self.broker.messages]


def test_a_comment_and_a_done_issue_become_verdicts() -> None:
    world = World()
    assert world(done()).status == world(commented("/smidgen false load test")).status == 200
    assert world.said == [
        Verdict(EVENT, "shop", "fixed", CLOSED - YIELDS_S, "5b10", comment="closed as done, smidgen"),
        Verdict(EVENT, "shop", "false", CLOSED, "5b10", comment="load test"),
    ]


@pytest.mark.parametrize(
    ("payload", "secret", "status"),
    [
        pytest.param(done(), "guess", 401, id="secret"),
        pytest.param(done(key="TILL-1"), SECRET, 401, id="another project"),
        pytest.param(commented("false", author="5b11"), SECRET, 200, id="who may not"),
        pytest.param({**done(), "timestamp": 1_690_000_000_000}, SECRET, 403, id="recorded"),
        pytest.param({**done(), "timestamp": "soon"}, SECRET, 400, id="no time"),
        pytest.param(done(key=7), SECRET, 400, id="no key"),  # type: ignore[arg-type]
        pytest.param({"webhookEvent": "jira:issue_created"}, SECRET, 200, id="another event"),
    ],
)
def test_what_is_no_answer_publishes_nothing(payload: dict[str, Any], secret: str, status: int) -> None:
    world = World()
    assert world(payload, secret).status == status
    assert world.said == []


def test_jira_says_who_did_what() -> None:
    assert read_jira(done("Won't Do")) == Closing("SHOP-1", "won't do", ("smidgen",), "5b10", "", CLOSED)
    assert read_jira(commented("x")) == Reply("SHOP-1", "x", "5b10", "", CLOSED)
    assert read_jira(done(status={"statusCategory": {"key": "new"}})) is None
    assert read_jira({**done(), "changelog": {"items": [{"field": "summary"}]}}) is None
    assert read_jira({**done(), "user": {"accountId": "b", "accountType": "app"}}) is None
    with pytest.raises(InvalidMessage):
        read_jira(done(labels=[1]))


@pytest.mark.parametrize(
    ("resolution", "status"),
    [
        ("Won't Do", "will not fix"),
        ("Duplicate", "duplicate"),
        ("Cannot Reproduce", "false positive"),
        (None, "review"),
    ],
)
def test_other_resolutions_are_words_for_the_labeller(resolution: str | None, status: str) -> None:
    world = World()
    world(done(resolution))
    (said,) = world.said
    assert (said.verdict, label(Answers((said.comment,), said.verdict)).status) == ("acknowledged", status)


def test_the_map_names_projects(tmp_path: Any) -> None:
    path = tmp_path / "services.yaml"
    path.write_text(
        "trackers: {SHOP: {kind: jira, secret_env: S, services: [shop], answers: {targets: [tickets]}}}"
    )
    found = load_service_map(path, {"S": SECRET})
    assert found.is_answered
    assert found.trackers == (Tracker("SHOP", frozenset({"shop"}), SECRET, AnswerRights(("tickets",))),)
    assert SECRET not in repr(found)
    with pytest.raises(ConfigError, match=r"trackers\.SHOP\.secret_env"):
        load_service_map(path, {})


def test_over_http() -> None:
    world, body = World(), json.dumps(done()).encode()
    app = make_app(
        DeliveryReceiver(SERVICES, world.broker.send, clock=lambda: NOW), None, world.replies, world.receiver
    )

    async def main() -> list[int]:
        async with TestServer(app) as running, ClientSession() as session:
            url = running.make_url("/jira")
            found = []
            for headers in ({}, signed(body, "guess"), signed(body)):
                async with session.post(url, data=body, headers=headers) as answer:
                    found.append(answer.status)
            return found

    assert asyncio.run(main()) == [401, 401, 200]
