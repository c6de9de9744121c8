"""Replies on merge requests and issues: what they say, who may say it, and which event it is about."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents.webhooks.answers import WebhookAnswer
from agents.webhooks.mapping import AnswerRights, Forge, ServiceMap
from agents.webhooks.receiver import DeliveryReceiver
from agents.webhooks.replies import REPLY_EVENTS, Reply, Said, may_answer, read_answer, read_reply
from agents.webhooks.reply_receiver import ReplyReceiver
from pipeline.messages.inputs import decode_feedback
from pipeline.messages.records import columns_of
from pipeline.model import Outgoing, Verdict
from pipeline.model.errors import InvalidMessage, StoreUnavailable
from pipeline.storage.arrays import ArrayStore
from tests.unit.agents.webhooks.test_receiver import NOW, SHOP, TOKEN, WEB, Broker, hub_headers

AT = "2023-11-14T22:13:20Z"
RIGHTS = AnswerRights(("pull-requests",), ("Grace",))
EVENT, OTHER = "c0ffee01", "decade02"


def hub_reply(text: str, *, number: int = 7, association: str = "MEMBER", **own: Any) -> dict[str, Any]:
    """What GitHub sends of a new comment on a pull request, as far as it is read."""
    comment = {"body": text, "user": {"login": "ada", "type": "User"}, "author_association": association}
    issue = {"number": number, "pull_request": {}}
    return {
        "action": "created",
        "issue": issue,
        "comment": {**comment, "id": 11, "created_at": AT, **own},
        "repository": {"full_name": "acme/shop"},
    }


def lab_reply(text: str, **own: Any) -> dict[str, Any]:
    """What GitLab sends of a new note on a merge request."""
    note = {"note": text, "noteable_type": "MergeRequest", "created_at": "2023-11-14 22:13:20 UTC"}
    return {
        "object_kind": "note",
        "user": {"username": "grace", "name": "Grace"},
        "project": {"path_with_namespace": "acme/web/shop"},
        "merge_request": {"iid": 7},
        "object_attributes": {**note, "action": "create", "system": False, **own},
    }


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("/smidgen false it was the load test", Said("false", comment="it was the load test")),
        ("/smidgen true c0ffee01 the parser", Said("true", "c0ffee01", comment="the parser")),
        ("@smidgen expected\nnightly batch", Said("expected", comment="nightly batch")),
        ("/smidgen duplicate of decade02 same", Said("duplicate", subject="decade02", comment="same")),
        ("/smidgen cause 8f2c11d", Said("cause", subject="8f2c11d")),
        ("> Slower: shop.price\n\nFalse: load test", Said("false", comment="load test")),
        ("cost shift", Said("cost-shift")),
        ("Fixed.", Said("fixed")),
        ("Fixed in the next release", None),
        ("true enough, but look at line 3", None),
        ("expected behaviour?", None),
        ("falsely reported", None),
        ("nothing of ours", None),
        ("", None),
        ("> /smidgen false", None),
    ],
)
def test_a_reply_says_a_verdict_or_speaks_of_something_else(written: str, said: Said | None) -> None:
    assert read_answer(written) == said


@pytest.mark.parametrize("written", ["/smidgen", "/smidgen wrong", "/smidgen duplicate", "@smidgen cause it"])
def test_a_call_without_a_verdict_is_unclear(written: str) -> None:
    with pytest.raises(InvalidMessage):
        read_answer(written)


def test_forges_say_who_wrote_what_where() -> None:
    reply = Reply("7", "false", "ada", "MEMBER", 1_700_000_000.0)
    assert read_reply("github", hub_reply("false")) == reply
    on_merge_request = replace(reply, thread="!7", author="grace", association="")
    assert read_reply("gitlab", lab_reply("false")) == on_merge_request
    on_issue = {**lab_reply("false", noteable_type="Issue"), "issue": {"iid": 7}}
    assert read_reply("gitlab", on_issue) == replace(on_merge_request, thread="7")
    assert read_reply("github", {**hub_reply("false"), "action": "edited"}) is None
    assert read_reply("github", hub_reply("false", user={"login": "smidgen[bot]", "type": "Bot"})) is None
    assert read_reply("gitlab", lab_reply("false", action="update")) is None
    assert read_reply("gitlab", lab_reply("false", system=True)) is None
    assert read_reply("gitlab", lab_reply("false", noteable_type="Snippet")) is None
    for payload in (hub_reply("x", created_at=None), {"action": "created", "comment": {}}):
        with pytest.raises(InvalidMessage):
            read_reply("github", payload)


@pytest.mark.parametrize(
    ("author", "association", "rights", "may"),
    [
        ("ada", "MEMBER", RIGHTS, True),
        ("ada", "CONTRIBUTOR", RIGHTS, False),
        ("ada", "NONE", RIGHTS, False),
        ("ada", "", RIGHTS, False),
        ("grace", "", RIGHTS, True),
        ("ada", "OWNER", replace(RIGHTS, collaborators=False), False),
    ],
)
def test_collaborators_and_who_is_listed_may_answer(
    author: str, association: str, rights: AnswerRights, may: bool
) -> None:
    assert may_answer(author, association, rights) is may


class Away(ArrayStore):
    """A store that does not answer."""

    def rows(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        raise StoreUnavailable("away")


def alerted(*regressions: tuple[str, str], thread: str = "7") -> ArrayStore:
    """Return a store in which alerts wrote of regressions, each with its service, in one thread."""
    store = ArrayStore()
    for event, service in regressions:
        about = {"service": service, "time": NOW, "event": event, "regression": event}
        state = {"target": "pull-requests", "manner": "single", "state": "sent", "partition": 0}
        times = {"due_time": NOW, "changed_time": NOW, "thread": thread, "detail": "", "content": "{}"}
        store.insert("alerts", columns_of([{"id": f"d-{event}", **about, **state, **times}]))
    return store


class World:
    """A receiver over a store and a broker."""

    def __init__(self, store: ArrayStore) -> None:
        self.broker = Broker()
        sources = (replace(SHOP, answers=RIGHTS), replace(WEB, answers=RIGHTS))
        self.replies = ReplyReceiver(store, self.broker.send, clock=lambda: NOW)
        self.receiver = DeliveryReceiver(
            ServiceMap(sources), self.broker.send, clock=lambda: NOW, replies=self.replies
        )

    def __call__(
        self,
        *payloads: Mapping[str, Any],
        forge: Forge = "github",
        events: Mapping[Forge, str] = REPLY_EVENTS,
    ) -> list[WebhookAnswer]:
        async def main() -> list[WebhookAnswer]:
            found = []
            for payload in payloads:
                body = json.dumps(payload).encode()
                headers: Any = {"X-Gitlab-Event": events[forge], "X-Gitlab-Token": TOKEN}
                headers = hub_headers(body, events[forge]) if forge == "github" else headers
                found.append(await self.receiver.receive(forge, headers, body))
            return found

        return asyncio.run(main())

    @property
    def said(self) -> list[Verdict]:
        messages: Sequence[Outgoing] = self.broker.messages
        assert all(message.topic == "feedback" for message in messages)
        found = [decode_feedback(message.value) for message in messages]
        return [one for one in found if isinstance(one, Verdict)]

    @property
    def counts(self) -> dict[str, float]:
        return {labels["outcome"]: value for _, labels, value in self.replies.samples() if value}


@pytest.mark.parametrize(("forge", "author"), [("github", "ada"), ("gitlab", "grace")])
def test_a_reply_becomes_a_verdict_of_its_author_once(forge: Forge, author: str) -> None:
    world = World(alerted((EVENT, "shop"), thread="7" if forge == "github" else "!7"))
    payload = (hub_reply if forge == "github" else lab_reply)("/smidgen false load test")
    first, again = world(payload, payload, forge=forge)
    assert (first.status, again.text) == (200, "already published")
    assert world.said == [Verdict(EVENT, "shop", "false", 1_700_000_000.0, author, comment="load test")]
    assert world.counts == {"answered": 1}


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        pytest.param(hub_reply("looks good to me"), "other", id="of something else"),
        pytest.param(hub_reply("/smidgen perhaps"), "unclear", id="no verdict"),
        pytest.param(hub_reply("false", association="NONE"), "refused", id="a stranger"),
        pytest.param(hub_reply("false", number=8), "unknown", id="where no alert wrote"),
        pytest.param(hub_reply("/smidgen false 123456"), "unclear", id="another event"),
        pytest.param(hub_reply("/smidgen duplicate of 123456"), "unclear", id="of no event"),
    ],
)
def test_what_is_no_answer_is_counted_and_publishes_nothing(payload: dict[str, Any], outcome: str) -> None:
    world = World(alerted((EVENT, "shop")))
    (answer,) = world(payload)
    assert answer.status == 200
    assert (world.said, world.counts) == ([], {outcome: 1})


def test_a_reply_on_a_merge_request_is_none_on_the_issue_of_its_number() -> None:
    world = World(alerted((EVENT, "shop"), thread="7"))
    world(lab_reply("false"), forge="gitlab")
    assert (world.said, world.counts) == ([], {"unknown": 1})


def test_of_several_events_a_reply_names_one() -> None:
    world = World(alerted((EVENT, "shop"), (OTHER, "shop-next"), ("bad003", "of another repository")))
    world(hub_reply("/smidgen true"), hub_reply("/smidgen true decade0"), hub_reply("/smidgen true bad003"))
    assert [(one.event, one.service) for one in world.said] == [(OTHER, "shop-next")]
    assert world.counts == {"answered": 1, "unclear": 2}


def test_a_recorded_reply_and_one_without_the_store_are_not_taken() -> None:
    old = World(alerted((EVENT, "shop")))
    assert [one.status for one in old(hub_reply("false", created_at="2023-11-01T00:00:00Z"))] == [403]
    away = World(Away())
    assert [one.status for one in away(hub_reply("false"), hub_reply("false"))] == [503, 503]
    assert (old.said, away.said) == ([], [])
