"""Signatures, and what is answered and published."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict

from agents.webhooks import deployments
from agents.webhooks.answers import Answer
from agents.webhooks.mapping import ServiceMap, Source
from agents.webhooks.receiver import Receiver
from agents.webhooks.signatures import github_signed, gitlab_signed
from pipeline.messages.inputs import decode_change
from pipeline.model import Change, Outgoing
from pipeline.model.errors import BrokerUnavailable, InvalidMessage
from tests.support.repositories import Work
from tests.unit.agents.webhooks.test_payloads import (
    B,
    C,
    commit,
    hub_deployment,
    hub_push,
    hub_release,
    hub_tag,
    lab_deployment,
    lab_push,
    lab_release,
    lab_tag,
)

NOW = 1_700_000_100.0
SECRET, OTHER, TOKEN = "correct horse", "battery staple", "lab token 12345"
KEY = b"0123456789abcdef0123456789abcdef"
SIGNING = "whsec_" + base64.b64encode(KEY).decode()

RULES = (
    ("branch", "main", "shop"),
    ("branch", "rel/*", "shop-next"),
    ("tag", "v*", "shop"),
    ("environment", "production", "shop"),
    ("environment", "production", "till"),
)
SHOP = Source("acme/shop", "github", RULES, SECRET)  # type: ignore[arg-type]
WEB = Source("acme/web/shop", "gitlab", RULES, TOKEN)  # type: ignore[arg-type]
SIGNED = Source("acme/signed", "gitlab", RULES, SIGNING)  # type: ignore[arg-type]
ELSE = Source("acme/else", "github", RULES, OTHER)  # type: ignore[arg-type]
SERVICES = ServiceMap((SHOP, WEB, SIGNED, ELSE))


def hub_headers(
    body: bytes, event: str = "push", secret: str = SECRET, delivery: str = "1"
) -> CIMultiDict[str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return CIMultiDict(
        {"X-GitHub-Event": event, "X-GitHub-Delivery": delivery, "X-Hub-Signature-256": f"sha256={digest}"}
    )


def standard_headers(
    body: bytes, *, at: float = NOW, key: bytes = KEY, identity: str = "m1"
) -> CIMultiDict[str]:
    signed = b".".join([identity.encode(), str(int(at)).encode(), body])
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return CIMultiDict(
        {
            "webhook-id": identity,
            "webhook-timestamp": str(int(at)),
            "webhook-signature": f"v1,{base64.b64encode(b'old').decode()} v1,{signature}",
            "X-Gitlab-Event": "Push Hook",
        }
    )


class Broker:
    """Takes messages, or fails as ordered."""

    def __init__(self) -> None:
        self.messages: list[Outgoing] = []
        self.failures: list[Exception] = []
        self.gate: asyncio.Event | None = None

    async def send(self, messages: Sequence[Outgoing]) -> None:
        if self.gate:
            await self.gate.wait()
        if self.failures:
            raise self.failures.pop()
        self.messages += messages

    @property
    def changes(self) -> list[Change]:
        assert {message.topic for message in self.messages} <= {"changes"}
        return [decode_change(message.value) for message in self.messages]


def receive(
    payload: object, *, headers: CIMultiDict[str] | None = None, forge: Any = "github", event: str = "push",
    services: ServiceMap = SERVICES, broker: Broker | None = None,
) -> tuple[Answer, list[Change]]:  # fmt: skip
    """Receive one delivery, signed if no headers are given."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    broker = broker or Broker()
    if headers is None and forge == "github":
        headers = hub_headers(body, event)
    elif headers is None:
        headers = CIMultiDict({"X-Gitlab-Event": event, "X-Gitlab-Token": TOKEN})

    async def main() -> Answer:
        return await Receiver(services, broker.send, clock=lambda: NOW).receive(forge, headers or {}, body)

    return asyncio.run(main()), broker.changes


@pytest.mark.parametrize(
    ("header", "right"),
    [
        pytest.param("sha256=" + hmac.new(b"s", b"body", hashlib.sha256).hexdigest(), True, id="right"),
        pytest.param("sha256=" + hmac.new(b"t", b"body", hashlib.sha256).hexdigest(), False, id="secret"),
        pytest.param("sha256=" + hmac.new(b"s", b"other", hashlib.sha256).hexdigest(), False, id="body"),
        pytest.param("sha1=" + hmac.new(b"s", b"body", hashlib.sha1).hexdigest(), False, id="sha1"),
        pytest.param(hmac.new(b"s", b"body", hashlib.sha256).hexdigest(), False, id="no prefix"),
        pytest.param("", False, id="empty"),
        pytest.param("sha256=\udcff\u00e9", False, id="not ASCII"),
    ],
)
def test_github_signatures(header: str, right: bool) -> None:
    assert github_signed("s", {"X-Hub-Signature-256": header}, b"body") is right
    assert not github_signed("s", {}, b"body")


def test_gitlab_tokens() -> None:
    assert gitlab_signed(TOKEN, {"X-Gitlab-Token": TOKEN}, b"", NOW)
    assert not gitlab_signed(TOKEN, {"X-Gitlab-Token": TOKEN[:-1]}, b"", NOW)
    assert not gitlab_signed(TOKEN, {}, b"", NOW)
    assert not gitlab_signed(SIGNING, {"X-Gitlab-Token": SIGNING}, b"", NOW), "a signing token is never sent"


@pytest.mark.parametrize(
    ("headers", "right"),
    [
        pytest.param(standard_headers(b"x"), True, id="right"),
        pytest.param(standard_headers(b"x", at=NOW - 299), True, id="a little old"),
        pytest.param(standard_headers(b"x", at=NOW - 301), False, id="replayed"),
        pytest.param(standard_headers(b"x", at=NOW + 301), False, id="ahead"),
        pytest.param(standard_headers(b"y"), False, id="body"),
        pytest.param(standard_headers(b"x", key=b"other"), False, id="key"),
        pytest.param({**standard_headers(b"x"), "webhook-id": "m2"}, False, id="id"),
        pytest.param({**standard_headers(b"x"), "webhook-timestamp": "١"}, False, id="digits"),
        pytest.param({**standard_headers(b"x"), "webhook-timestamp": "9" * 5000}, False, id="number"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_standard_webhooks_signatures(headers: CIMultiDict[str], right: bool) -> None:
    assert gitlab_signed(SIGNING, headers, b"x", NOW) is right


def test_a_push_becomes_one_change_a_commit() -> None:
    answer, changes = receive(hub_push())
    assert answer == Answer(200, "published 2 changes for branch 'main' of acme/shop")
    first, second = changes
    assert first == Change(
        id=B,
        service="shop",
        time=1_700_000_000.0,
        title="Fix totals",
        author="Ada <ada@example.org>",
        summary="They were wrong.",
        files=("b.py", "a.py"),
    )
    assert second.id == C


@pytest.mark.parametrize(
    ("forge", "event", "payload", "expected"),
    [
        pytest.param("github", "release", hub_release(), [("acme/shop@v1", "shop")], id="release"),
        pytest.param("github", "deployment_status", hub_deployment(), [(B, "shop"), (B, "till")], id="two"),
        pytest.param("github", "push", hub_push(ref="refs/heads/rel/7"), [(B, "shop-next"), (C, "shop-next")],
                     id="glob"),
        pytest.param("gitlab", "Push Hook", lab_push(), [(B, "shop"), (C, "shop")], id="gitlab push"),
        pytest.param("gitlab", "Push Hook", lab_push(commits=[]), [(C, "shop")], id="push without commits"),
        pytest.param("gitlab", "Tag Push Hook", lab_tag(), [(C, "shop")], id="gitlab tag"),
        pytest.param("gitlab", "Deployment Hook", lab_deployment(), [(B, "shop"), (B, "till")], id="gitlab"),
        pytest.param("github", "push", hub_push(repository={"full_name": "ACME/Shop"}),
                     [(B, "shop"), (C, "shop")], id="capitals"),
    ],
)  # fmt: skip
def test_rules_name_the_services(
    forge: str, event: str, payload: object, expected: list[tuple[str, str]]
) -> None:
    answer, changes = receive(payload, forge=forge, event=event)
    assert answer.status == 200
    assert [(change.id, change.service) for change in changes] == expected


HUB_TAG = [("push", hub_tag()), ("release", hub_release())]
HUB_COMMIT = [("push", hub_tag(after=C)), ("release", hub_release(target_commitish=C))]
LAB_TAG = [("Tag Push Hook", lab_tag()), ("Release Hook", lab_release(commit=commit(C)))]


@pytest.mark.parametrize(
    ("forge", "deliveries", "expected"),
    [
        pytest.param("github", HUB_TAG, "acme/shop@v1", id="push of an annotated tag first"),
        pytest.param("github", HUB_TAG[::-1], "acme/shop@v1", id="release first"),
        pytest.param("github", HUB_COMMIT, "acme/shop@v1", id="release of a commit"),
        pytest.param("github", [HUB_TAG[0], HUB_COMMIT[1]], "acme/shop@v1", id="release of another commit"),
        pytest.param("gitlab", LAB_TAG, C, id="gitlab"),
        pytest.param("gitlab", LAB_TAG[::-1], C, id="gitlab release first"),
    ],
)
def test_all_that_is_reported_a_tag_is_one_change(
    forge: str, deliveries: list[tuple[str, dict[str, Any]]], expected: str
) -> None:
    """Each is read by a process of its own, so that nothing hangs on what one remembers."""
    again = [*deliveries, deliveries[0]]
    ids = [change.id for event, body in again for change in receive(body, forge=forge, event=event)[1]]
    assert ids == [expected] * 3


def test_a_time_ahead_of_the_clock_is_now() -> None:
    _, changes = receive(hub_push(repository={"full_name": "acme/shop", "pushed_at": 1_900_000_000}))
    assert {change.time for change in changes} == {NOW}
    _, changes = receive(lab_push(), forge="gitlab", event="Push Hook")
    assert {change.time for change in changes} == {NOW}, "GitLab does not say when a push was"


PUSH = json.dumps(hub_push()).encode()


@pytest.mark.parametrize(
    ("payload", "headers", "status", "words"),
    [
        pytest.param(hub_push(), CIMultiDict({"X-GitHub-Event": "push"}), 401, "signature", id="unsigned"),
        pytest.param(PUSH, hub_headers(PUSH, secret="wrong wrong"), 401, "signature", id="wrong secret"),
        pytest.param(
            PUSH, hub_headers(PUSH, secret=OTHER), 401, "signature", id="another repository's secret"
        ),
        pytest.param(PUSH, hub_headers(PUSH + b" "), 401, "signature", id="changed body"),
        pytest.param(hub_push(repository={"full_name": "acme/x"}), None, 404, "'acme/x'", id="unknown"),
        pytest.param(hub_push(repository={}), None, 404, "unknown repository", id="no name"),
        pytest.param({}, None, 404, "unknown repository", id="no repository"),
        pytest.param(b"", None, 400, "empty", id="empty"),
        pytest.param(b"{", None, 400, "not JSON", id="broken"),
        pytest.param(b"payload=%7B%7D", None, 400, "application/json", id="form"),
        pytest.param([], None, 400, "should be a JSON object", id="list"),
        pytest.param(b"[" * 100_000, None, 400, "not JSON", id="deep"),
        pytest.param(hub_push(after="x"), None, 400, "after", id="wrong field"),
        pytest.param(hub_push(ref="refs/heads/dev"), None, 200, "nothing to publish", id="no rule"),
        pytest.param(hub_push(after="0" * 40), None, 200, "nothing was deployed", id="deleted"),
    ],
)
def test_what_is_not_published(
    payload: object, headers: CIMultiDict[str] | None, status: int, words: str
) -> None:
    answer, changes = receive(payload, headers=headers)
    assert answer.status == status
    assert words in answer.text
    assert "\n" not in answer.text
    assert changes == []


def test_other_events() -> None:
    assert receive(hub_push(), event="ping")[0] == Answer(200, "pong")
    assert receive(hub_push(), event="star")[0] == Answer(204)
    tag = {"ref": "v1", "ref_type": "tag", "repository": {"full_name": "acme/shop"}}
    assert receive(tag, event="create")[0] == Answer(204), "the push of the tag says more"
    assert receive(lab_push(), forge="gitlab", event="Wiki Page Hook")[0] == Answer(204)
    assert receive(b"not JSON", event="star")[0] == Answer(204)


def test_a_signing_token_of_gitlab() -> None:
    body = json.dumps(lab_push(project={"path_with_namespace": "acme/signed"})).encode()
    answer, changes = receive(body, headers=standard_headers(body), forge="gitlab")
    assert (answer.status, len(changes)) == (200, 2)


def deliver(receiver: Receiver, delivery: str = "1", body: bytes = PUSH) -> Awaitable[Answer]:
    return receiver.receive("github", hub_headers(body, delivery=delivery), body)


async def test_a_delivery_is_published_once() -> None:
    broker = Broker()
    receiver = Receiver(SERVICES, broker.send, clock=lambda: NOW)
    assert (await deliver(receiver)).text.startswith("published 2")
    assert await deliver(receiver) == Answer(200, "already published")
    assert await deliver(receiver, "2") == Answer(200, "already published"), "the id is not signed"
    other = json.dumps(hub_push(commits=[commit(C)])).encode()
    assert (await deliver(receiver, "1", other)).text.startswith("published 1")
    assert len(broker.messages) == 3


async def test_equal_bodies_of_gitlab_are_two_events_if_their_ids_differ() -> None:
    broker = Broker()
    body = json.dumps(lab_push(project={"path_with_namespace": "acme/signed"})).encode()
    receiver = Receiver(SERVICES, broker.send, clock=lambda: NOW)
    for identity, words in (("m1", "published 2"), ("m1", "already"), ("m2", "published 2")):
        headers = standard_headers(body, identity=identity)
        assert (await receiver.receive("gitlab", headers, body)).text.startswith(words)
    assert len(broker.messages) == 4


DAYS = 86_400.0


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        pytest.param("push", hub_push(), id="push"),
        pytest.param("push", hub_tag(), id="tag"),
        pytest.param("release", hub_release(), id="release"),
        pytest.param("deployment_status", hub_deployment(), id="deployment"),
    ],
)
def test_a_recorded_delivery_of_github_is_refused_after_three_days(event: str, payload: object) -> None:
    body = json.dumps(payload).encode()
    broker = Broker()

    async def main(now: float) -> Answer:
        receiver = Receiver(SERVICES, broker.send, clock=lambda: now)  # which remembers nothing
        return await receiver.receive("github", hub_headers(body, event), body)

    assert asyncio.run(main(NOW + 2.9 * DAYS)).status == 200
    sent = len(broker.messages)
    assert sent
    assert asyncio.run(main(NOW + 3.1 * DAYS)) == Answer(403, "older than three days")
    assert len(broker.messages) == sent


def test_a_delivery_that_is_sent_again_after_a_restart_says_the_same() -> None:
    broker = Broker()

    async def main(now: float) -> None:
        await deliver(Receiver(SERVICES, broker.send, clock=lambda: now))

    for now in (NOW, NOW + DAYS):
        asyncio.run(main(now))
    first, second = broker.messages[:2], broker.messages[2:]
    assert first == second


async def test_a_delivery_that_comes_twice_at_once_is_published_once() -> None:
    broker = Broker()
    broker.gate = asyncio.Event()
    receiver = Receiver(SERVICES, broker.send, clock=lambda: NOW)
    first, second = asyncio.ensure_future(deliver(receiver)), asyncio.ensure_future(deliver(receiver))
    while not receiver._under_way:
        await asyncio.sleep(0.01)
    first.cancel()  # its sender hangs up
    broker.gate.set()
    assert (await second).status == 200
    await receiver.finish(5.0)
    assert len(broker.messages) == 2


async def test_a_failure_is_the_senders_to_repeat(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()
    broker.failures = [InvalidMessage("too large"), BrokerUnavailable("broker: cannot be reached")]
    receiver = Receiver(SERVICES, broker.send, clock=lambda: NOW)
    assert await deliver(receiver) == Answer(503, "not published, try again")
    assert (await deliver(receiver)).status == 422
    assert (await deliver(receiver)).status == 200
    assert len(broker.messages) == 2
    assert "cannot be reached" in caplog.text
    assert SECRET not in caplog.text


async def test_few_deliveries_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.webhooks.receiver.REMEMBERED", 3)
    receiver = Receiver(SERVICES, Broker().send, clock=lambda: NOW)
    bodies = [json.dumps(hub_push(size=number)).encode() for number in range(9)]
    for body in bodies:
        await deliver(receiver, body=body)
    assert len(receiver._done) == 3
    assert (await deliver(receiver, body=bodies[8])).text == "already published"


def test_a_clone_names_the_subroutines(tmp_path: Path) -> None:
    work = Work(tmp_path / "clone")
    before = work.commit("Old", {"shop.py": "def f(): return 1\n"})
    work.commit("Between", {"shop.py": "def f(): return 2\n"})
    after = work.commit("New", {"shop.py": "def f(): return 2\ndef g(): pass\n"})
    work.git("tag", "v1")
    services = ServiceMap((Source("acme/shop", "github", RULES, SECRET, work.path),))  # type: ignore[arg-type]
    _, changes = receive(hub_push(before=before, after=after), services=services)
    assert [(c.title, c.subroutines) for c in changes] == [("Between", ("shop.f",)), ("New", ("shop.g",))]
    assert "+def g(): pass" in changes[1].content or not changes[1].content
    _, (release,) = receive(hub_release(), event="release", services=services)
    assert (release.id, release.subroutines) == (after, ("shop.g",))
    _, deployed = receive(hub_deployment(sha=after), event="deployment_status", services=services)
    assert [(c.id, c.service, c.title) for c in deployed] == [(after, "shop", "New"), (after, "till", "New")]


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(hub_push(), id="not fetched yet"),
        pytest.param(hub_release(tag_name="v1^{/x}"), id="operators in a tag"),
        pytest.param(hub_release(tag_name="v../../heads/main"), id="dots in a tag"),
        pytest.param(hub_release(tag_name="v1\n--all"), id="newline in a tag"),
    ],
)
def test_what_the_clone_does_not_have_is_said(
    payload: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(tmp_path / "clone")
    work.commit("Old", {"shop.py": "def f(): return 1\n"})
    services = ServiceMap((Source("acme/shop", "github", RULES, SECRET, work.path),))  # type: ignore[arg-type]
    answer, changes = receive(payload, event="push" if "ref" in payload else "release", services=services)
    assert answer.status == 200
    assert changes
    assert all(change.subroutines == () for change in changes)
    assert "the clone does not have" in caplog.text
    assert "\n" not in caplog.records[-1].getMessage()


def test_a_broken_clone_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    services = ServiceMap((Source("acme/shop", "github", RULES, SECRET, tmp_path),))  # type: ignore[arg-type]
    _, changes = receive(hub_push(), services=services)
    assert len(changes) == 2
    assert "not a git repository" in caplog.text


def test_a_long_push_is_cut(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(deployments, "MAX_COMMITS", 1)
    _, changes = receive(hub_push())
    assert [change.id for change in changes] == [C]
    assert "1 older commits" in caplog.text


def test_a_commit_of_any_size_fits_into_a_message() -> None:
    files = [f"{'d' * 200}/{number}" for number in range(3000)]
    broker = Broker()
    receive(hub_push(commits=[commit(B, "x" * 200_000, added=files)]), broker=broker)
    (message,) = broker.messages
    assert len(message.value) < 1024**2
    assert len(decode_change(message.value).files) > 1000
