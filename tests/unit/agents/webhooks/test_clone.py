"""Which commits a tag or a deployment brings, by a local clone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.webhooks import deployments, environments
from agents.webhooks.answers import Answer
from agents.webhooks.environments import Environments
from agents.webhooks.forge_event import ForgeEvent
from agents.webhooks.mapping import ServiceMap, Source
from agents.webhooks.receiver import Receiver
from pipeline.model.errors import BrokerUnavailable
from tests.support.repositories import Work
from tests.unit.agents.webhooks.test_payloads import (
    commit,
    hub_deployment,
    hub_release,
    hub_tag,
    lab_release,
    lab_tag,
)
from tests.unit.agents.webhooks.test_receiver import NOW, SECRET, Broker, hub_headers, receive

APP = """\
from flask import Flask
app = Flask(__name__)


@app.get("/cart")
def show_cart():
    return 1


@app.post("/buy")
def buy():
    return 2
"""
RULES = (
    ("tag", "v*", "shop"),
    ("tag", "*.0", "till"),
    ("environment", "*", "shop"),
)


def source_of(work: Work) -> Source:
    return Source("acme/shop", "github", RULES, SECRET, work.path)  # type: ignore[arg-type]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """A repository with two commits before the tag v1.0, and four after it."""
    work = Work(tmp_path / "clone")
    for title in ("Before", "One"):
        work.commit(title, {"shop.py": f"def {title.lower()}(): pass\n"})
    work.git("tag", "v1.0")
    for title in ("Two", "Three", "Four", "Five"):
        work.commit(title, {"shop.py": f"def {title.lower()}(): pass\n"})
    return work


def sha(work: Work, revision: str = "HEAD") -> str:
    return work.git("rev-parse", f"{revision}^{{commit}}")


def titles_of(work: Work, event: str, payload: dict[str, Any], service: str = "shop") -> list[str]:
    """Return what is published for a service, oldest first."""
    answer, changes = receive(payload, event=event, services=ServiceMap((source_of(work),)))
    assert answer.status == 200
    assert {change.time for change in changes} == {1_700_000_000.0}, "all were deployed at once"
    return [change.title for change in changes if change.service == service]


def push_of(work: Work, tag: str, revision: str = "HEAD") -> dict[str, Any]:
    return hub_tag(ref=f"refs/tags/{tag}", head_commit=commit(sha(work, revision)))


SINCE = ["Two", "Three", "Four", "Five"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        pytest.param([["tag", "v1.1"]], SINCE, id="plain tag"),
        pytest.param([["tag", "-a", "-m", "Next", "v1.1"]], SINCE, id="annotated tag"),
        pytest.param([], SINCE, id="tag that is not fetched yet"),
        pytest.param([["tag", "-d", "v1.0"], ["tag", "v1.1"]], ["Five"], id="first tag"),
        pytest.param([["tag", "nightly", "HEAD~1"], ["tag", "v1.1"]], SINCE, id="tag that deploys nothing"),
        pytest.param([["tag", "v1.1"], ["tag", "v1.1-final"]], SINCE, id="two tags of one commit"),
        pytest.param(
            [["tag", "v0.9", "HEAD~5"], ["tag", "v1.1"]], SINCE, id="tag of an old commit, made later"
        ),
        pytest.param(
            [["tag", "v1.1"], ["commit", "--allow-empty", "-m", "Six"], ["tag", "v1.2"]], SINCE,
            id="a later tag is there already",
        ),
        pytest.param(
            [
                ["checkout", "-q", "-b", "release", "HEAD~3"],
                ["commit", "--allow-empty", "-m", "Release 1.0.1"],
                ["tag", "v1.0.1"],
                ["checkout", "-q", "main"],
                ["tag", "v1.1"],
            ],
            SINCE[1:],
            id="the tag before is on a branch of its own",
        ),
        pytest.param(
            [["tag", f"v1.0.{number}", f"HEAD~{4 - number}"] for number in (1, 2, 3)],
            ["Five"],
            id="many tags",
        ),
    ],
)  # fmt: skip
def test_a_tag_brings_all_since_the_tag_before(
    work: Work, commands: Sequence[Sequence[str]], expected: list[str]
) -> None:
    tip = sha(work)
    for command in commands:
        work.git(*command)
    assert titles_of(work, "push", push_of(work, "v1.1", tip)) == expected
    if work.git("tag", "--list", "v1.1"):
        assert titles_of(work, "release", hub_release(tag_name="v1.1")) == expected


@pytest.mark.parametrize(
    ("routes", "expected"),
    [(True, {"GET /cart": 1.0, "POST /buy": 0.0}), (False, {})],
    ids=["asked for", "not asked for"],
)
def test_changes_say_how_near_they_come_to_routes(
    tmp_path: Path, routes: bool, expected: dict[str, float]
) -> None:
    work = Work(tmp_path / "clone")
    work.commit("First", {"app.py": APP})
    work.git("tag", "v1.0")
    work.commit("Slow", {"app.py": APP.replace("return 1", "return sum(range(1000))")})
    services = ServiceMap((replace(source_of(work), routes=routes),))
    _, (change,) = receive(push_of(work, "v1.1"), event="push", services=services)
    assert {each.route: each.nearness for each in change.routes} == expected


def test_a_release_without_routes_is_published_all_the_same(
    work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    services = ServiceMap((replace(source_of(work), routes=True),))
    answer, changes = receive(push_of(work, "v1.1"), event="push", services=services)
    assert (answer.status, [change.title for change in changes]) == (200, SINCE)
    assert "routes: " in caplog.text


def test_each_service_has_its_own_tags(work: Work) -> None:
    work.git("tag", "v1.5", "HEAD~1")
    work.git("tag", "v2.0")
    assert titles_of(work, "push", push_of(work, "v2.0")) == ["Five"]
    assert titles_of(work, "push", push_of(work, "v2.0"), "till") == SINCE


def test_gitlab_shows_the_same(work: Work) -> None:
    lab = Source("acme/web/shop", "gitlab", RULES[:1], "lab token 12345", work.path)  # type: ignore[arg-type]
    tag = lab_tag(ref="refs/tags/v1.1", checkout_sha=sha(work))
    release = lab_release(tag="v1.1", commit=commit(sha(work)))
    for event, payload in (("Tag Push Hook", tag), ("Release Hook", release)):
        _, changes = receive(payload, forge="gitlab", event=event, services=ServiceMap((lab,)))
        assert [change.title for change in changes] == SINCE


def test_what_one_webhook_publishes_is_bounded(
    work: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deployments, "MAX_COMMITS", 4)
    assert titles_of(work, "push", push_of(work, "v1.1")) == SINCE
    assert "left out" not in caplog.text
    monkeypatch.setattr(deployments, "MAX_COMMITS", 3)
    assert titles_of(work, "push", push_of(work, "v1.1")) == SINCE[1:]
    assert "left out: commits before the newest 3" in caplog.text


class Process:
    """A receiver that stays, and what it publishes for each delivery."""

    def __init__(self, work: Work) -> None:
        self.broker = Broker()
        self._receiver = Receiver(ServiceMap((source_of(work),)), self.broker.send, clock=lambda: NOW)
        self._deliveries = 0

    async def deploy(self, commit: str, environment: str, at: str) -> list[str]:
        """Return the titles of what is published for a deployment."""
        payload = hub_deployment(sha=commit)
        self._deliveries += 1
        status = {"id": self._deliveries, "environment": environment, "created_at": at}
        payload["deployment_status"] |= status  # each has an id of its own, as GitHub's have
        body = json.dumps(payload).encode()
        headers = hub_headers(body, "deployment_status", delivery=str(self._deliveries))
        before = len(self.broker.messages)
        answer: Answer = await self._receiver.receive("github", headers, body)
        assert answer.status == (200 if len(self.broker.messages) > before else 503)
        return [change.title for change in self.broker.changes[before:]]


DEPLOYMENTS: Mapping[str, list[tuple[str, str, list[str]]]] = {
    "one after another": [
        ("HEAD~4", "22:13:20 production", ["One"]),  # nothing is known of before
        ("HEAD", "22:13:20 production", SINCE),
        ("HEAD", "22:13:20 production", ["Five"]),  # the rest of it was published
        ("HEAD~2", "22:13:20 production", ["Three"]),  # taken back
        ("HEAD", "22:13:20 production", ["Four", "Five"]),  # and deployed again
    ],
    "environments of their own": [
        ("HEAD~4", "22:13:20 production", ["One"]),
        ("HEAD~1", "22:13:20 staging", ["Four"]),
        ("HEAD", "22:13:20 staging", ["Five"]),
        ("HEAD", "22:13:20 production", SINCE),
    ],
    "what was not published is not deployed": [
        ("HEAD~4", "22:13:20 production", ["One"]),
        ("HEAD", "22:13:20 production", []),
        ("HEAD", "22:13:20 production", SINCE),
    ],
    "an older deployment that comes late": [
        ("HEAD~1", "22:13:20 production", ["Four"]),
        ("HEAD~4", "22:00:00 production", ["One"]),
        ("HEAD", "22:14:00 production", ["Five"]),
    ],
    "a commit that the clone has lost": [
        ("", "22:13:20 production", ["Deployment of main to production"]),
        ("HEAD", "22:13:20 production", ["Five"]),
    ],
}


@pytest.mark.parametrize("deployments", DEPLOYMENTS.values(), ids=DEPLOYMENTS)
async def test_a_deployment_brings_all_since_the_one_before(
    work: Work, deployments: list[tuple[str, str, list[str]]]
) -> None:
    process = Process(work)
    for revision, where, titles in deployments:
        at, environment = where.split()
        process.broker.failures = [] if titles else [BrokerUnavailable("gone")]
        commit = sha(work, revision) if revision else "d" * 40
        assert await process.deploy(commit, environment, f"2023-11-14T{at}Z") == titles


def test_few_environments_are_remembered(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "REMEMBERED", 2)
    source, known = source_of(work), Environments()
    notices = [ForgeEvent("acme/shop", "environment", f"review/{n}", (), after=str(n) * 40) for n in range(3)]
    for forge_event in (*notices[:2], notices[0], notices[2]):
        known.note(forge_event, source, now=NOW)
    before = [known.complete(forge_event, source).before[:1] for forge_event in notices]
    assert before == ["0", "", "2"], "the one that was deployed longest ago is forgotten"
