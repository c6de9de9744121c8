"""Webhooks of flag services: what they say, who signed them, what is answered and published."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from multidict import CIMultiDict

from agents.source.gates.flips import flip_change
from agents.webhooks.answers import Answer
from agents.webhooks.flag_events import READERS, read_gitlab_flag
from agents.webhooks.flag_receiver import FlagReceiver
from agents.webhooks.flag_services import FlagRule, FlagServiceKind, FlagSource
from agents.webhooks.mapping import ServiceMap, Source, load_service_map
from agents.webhooks.receiver import Receiver
from agents.webhooks.server import make_app
from pipeline.messages.inputs import decode_change, encode_change
from pipeline.model.errors import BrokerUnavailable, ConfigError, InvalidMessage
from tests.unit.agents.webhooks.test_receiver import Broker

NOW = 1_700_000_100.0
SECRET = "correct horse"
RULES = (FlagRule("shop", environment="production"), FlagRule("till", environment="*", gates="till-*"))
KINDS: tuple[FlagServiceKind, ...] = ("launchdarkly", "unleash", "flagsmith", "openfeature")
SOURCES = tuple(FlagSource(f"our {kind}", kind, RULES, SECRET) for kind in KINDS[:3])
OPEN = FlagSource("our openfeature", "openfeature", (FlagRule("shop"),), SECRET)


def launchdarkly(
    *actions: str, gate: str = "new-cart", environment: str = "production", **more: Any
) -> dict[str, Any]:
    resource = f"proj/default:env/{environment}:flag/{gate};checkout"
    return {
        "_id": "57c0a8e29969090743529965",
        "date": 1_700_000_000_000,
        "kind": "flag",
        "name": "New cart",
        "titleVerb": "turned on the flag",
        "comment": "For everybody",
        "accesses": [{"action": action, "resource": resource} for action in actions or ("updateOn",)],
        "member": {"firstName": "Ada", "lastName": "Lovelace", "email": "ada@example.org"},
        **more,
    }


def unleash(kind: str = "feature-environment-enabled", **more: Any) -> dict[str, Any]:
    return {
        "id": 919,
        "type": kind,
        "createdBy": "ada",
        "createdAt": "2023-11-14T22:13:20.000Z",
        "data": {},
        "featureName": "new-cart",
        "project": "default",
        "environment": "production",
        **more,
    }


def flagsmith(enabled: bool = True, value: Any = None, **more: Any) -> dict[str, Any]:
    def state(on: bool, content: Any = None) -> dict[str, Any]:
        feature = {"id": 1, "name": "new-cart", "project": {"id": 2, "name": "Shop"}}
        environment = {"id": 3, "name": "production"}
        return {"enabled": on, "feature": feature, "environment": environment, "feature_state_value": content}

    return {
        "event_type": "FLAG_UPDATED",
        "data": {
            "changed_by": "ada@example.org",
            "timestamp": "2023-11-14T22:13:20.123456Z",
            "new_state": state(enabled, value),
            "previous_state": state(False),
        },
        **more,
    }


def openfeature(*gates: str) -> dict[str, Any]:
    return {"type": "PROVIDER_CONFIGURATION_CHANGED", "flagsChanged": list(gates), "providerName": "flagd"}


DEEP = '{"flags": {"a": {"state": "ENABLED", "targeting": ' + "[" * 300 + "]" * 300 + "}}}"

GITLAB = {
    "object_kind": "feature_flag",
    "project": {"path_with_namespace": "acme/web/shop"},
    "user": {"name": "Ada"},
    "object_attributes": {"id": 6, "name": "new-cart", "description": "The cart", "active": True},
}


ON, CONFIGURED = ("new-cart", "on", "production"), ("new-cart", "", "")
FLAGD = {"type": "configuration_change", "data": {"flags": {"new-cart": {"type": "update"}}}}
CLOUD_EVENT = {"specversion": "1.0", "type": "x", "data": openfeature("new-cart")}
SAID: Mapping[str, tuple[str, dict[str, Any], tuple[str, str, str] | None]] = {
    "on": ("launchdarkly", launchdarkly(), ON),
    "rules": ("launchdarkly", launchdarkly("updateRules"), ("new-cart", "updateRules", "production")),
    "a name": ("launchdarkly", launchdarkly("updateName"), None),
    "a new flag": ("launchdarkly", launchdarkly("createFlag"), None),
    "no flag": ("launchdarkly", launchdarkly(kind="project"), None),
    "Unleash, on": ("unleash", unleash(), ON),
    "a strategy": ("unleash", unleash("feature-strategy-update"), ("new-cart", "strategy update", ON[2])),
    "a tag": ("unleash", unleash("feature-tagged"), None),
    "Flagsmith, on": ("flagsmith", flagsmith(), ON),
    "a value": ("flagsmith", flagsmith(value=5), ("new-cart", "on (5)", "production")),
    "off": ("flagsmith", flagsmith(False), ("new-cart", "off", "production")),
    "another event": ("flagsmith", flagsmith(event_type="AUDIT"), None),
    "OpenFeature": ("openfeature", openfeature("new-cart"), CONFIGURED),
    "flagd's event": ("openfeature", FLAGD, CONFIGURED),
    "in a CloudEvent": ("openfeature", CLOUD_EVENT, CONFIGURED),
    "ready": ("openfeature", {"type": "PROVIDER_READY"}, None),
}


@pytest.mark.parametrize(("kind", "payload", "said"), SAID.values(), ids=SAID)
def test_what_events_say(kind: str, payload: dict[str, Any], said: tuple[str, str, str] | None) -> None:
    flips = READERS[kind](payload, NOW)
    assert [(flip.gate, flip.after, flip.environment) for flip in flips] == ([said] if said else [])
    for flip in flips:
        assert flip.time == pytest.approx(NOW if kind == "openfeature" else 1_700_000_000.0, abs=0.2)


@pytest.mark.parametrize(
    ("kind", "payload", "reason"),
    [
        ("launchdarkly", launchdarkly(date="soon"), "date: should be milliseconds"),
        ("launchdarkly", launchdarkly(date=5), "date: 0.005 is not a time"),
        ("launchdarkly", launchdarkly(accesses=[1]), "accesses: should be objects"),
        ("unleash", {}, "type: missing"),
        ("unleash", unleash(createdAt="soon"), "createdAt|not an ISO 8601 time"),
        ("unleash", unleash(createdAt={}), "createdAt: should be a number, not an object"),
        ("unleash", unleash(createdAt=[1]), "createdAt: should be a number, not a list"),
        ("unleash", unleash(createdAt=True), "createdAt: should be a number, not a boolean"),
        ("unleash", unleash(id={}), "id: should be a string, not an object"),
        ("unleash", unleash(id=True), "id: should be a string, not a boolean"),
        ("flagsmith", {"event_type": "FLAG_UPDATED"}, "data: should be an object"),
        ("flagsmith", flagsmith(data={}), "feature: should be an object"),
        ("openfeature", openfeature(1), "should be a string"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_named(kind: str, payload: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidMessage, match=reason):
        READERS[kind](payload, NOW)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        pytest.param("launchdarkly", launchdarkly(date=1000 * (NOW + 7200)), id="LaunchDarkly"),
        pytest.param("unleash", unleash(createdAt=NOW + 7200), id="Unleash"),
        pytest.param("unleash", unleash(createdAt=None), id="Unleash, unknown"),
        pytest.param("openfeature", {**openfeature("new-cart"), "time": NOW + 7200}, id="OpenFeature"),
    ],
)
def test_no_flip_is_ahead_of_now(kind: str, payload: dict[str, Any]) -> None:
    (flip,) = READERS[kind](payload, NOW)
    assert flip.time == NOW
    decode_change(encode_change(flip_change(flip, "shop")), now=NOW)


def test_events_without_an_id_are_known_by_their_time_and_state() -> None:
    def id_of(**more: Any) -> str:
        (flip,) = READERS["unleash"](unleash(**more), NOW)
        return flip_change(flip, "shop").id

    later = {"createdAt": "2023-11-14T22:13:50.000Z"}
    assert id_of(id=None) != id_of(id=None, **later)
    assert id_of(id=None) == id_of(id="")
    assert id_of(id=7) == id_of(id=7, **later) == id_of(id="7")


def test_a_feature_flag_event_of_gitlab() -> None:
    (flip,) = read_gitlab_flag(GITLAB, NOW)
    assert (flip.gate, flip.after, flip.author, flip.time) == ("new-cart", "on", "Ada", NOW)


def headers(kind: FlagServiceKind, body: bytes, secret: str = SECRET) -> CIMultiDict[str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return CIMultiDict(
        {
            "launchdarkly": {"X-LD-Signature": digest},
            "flagsmith": {"X-Flagsmith-Signature": digest},
            "unleash": {"Authorization": secret},
            "openfeature": {"Authorization": f"Bearer {secret}"},
        }[kind]
    )


def deliver(receiver: FlagReceiver, kind: FlagServiceKind, payload: object, secret: str = SECRET) -> Answer:
    body = json.dumps(payload).encode()
    return asyncio.run(receiver.receive(kind, headers(kind, body, secret), body))


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def receiver(broker: Broker) -> FlagReceiver:
    return FlagReceiver((*SOURCES, OPEN), broker.send, clock=lambda: NOW)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("launchdarkly", launchdarkly()), ("unleash", unleash()), ("flagsmith", flagsmith())],
)
def test_a_flip_is_published_once(
    kind: FlagServiceKind, payload: dict[str, Any], receiver: FlagReceiver, broker: Broker
) -> None:
    answer = deliver(receiver, kind, payload)
    assert answer == Answer(200, f"published 1 changes for the flip of 'new-cart' of our {kind}")
    (change,) = broker.changes
    assert (change.service, change.gates) == ("shop", ("new-cart",))
    assert change.title == "Turn on new-cart in production"
    assert deliver(receiver, kind, payload) == Answer(200, "already published")
    assert deliver(receiver, kind, payload, "wrong secret").status == 401
    assert len(broker.changes) == 1


@pytest.mark.parametrize(
    ("kind", "payload", "status"),
    [
        pytest.param("launchdarkly", launchdarkly(), 403, id="LaunchDarkly signs the body"),
        pytest.param("flagsmith", flagsmith(), 403, id="Flagsmith too"),
        pytest.param("unleash", unleash(), 200, id="Unleash sends the secret itself"),
    ],
)
def test_a_recorded_flip_is_refused_after_three_days(
    kind: FlagServiceKind, payload: dict[str, Any], status: int, broker: Broker
) -> None:
    for days, expected in ((2.9, 200), (3.1, status)):
        now = NOW + days * 86_400
        fresh = FlagReceiver(SOURCES, broker.send, clock=partial(float, now))  # it remembers nothing
        assert deliver(fresh, kind, payload).status == expected
    assert len(broker.changes) == (2 if status == 200 else 1)


def test_rules_choose_the_service(receiver: FlagReceiver, broker: Broker) -> None:
    answer = deliver(receiver, "launchdarkly", launchdarkly(environment="test"))
    assert answer.text == "nothing to publish for the flip of 'new-cart' of our launchdarkly"
    deliver(receiver, "launchdarkly", launchdarkly(environment="test", gate="till-fast"))
    assert [change.service for change in broker.changes] == ["till"]
    deliver(receiver, "launchdarkly", launchdarkly(gate="till-fast"))
    assert [change.service for change in broker.changes] == ["till", "shop", "till"]


def test_what_was_not_published_may_come_again(receiver: FlagReceiver, broker: Broker) -> None:
    broker.failures = [BrokerUnavailable("away")]
    assert deliver(receiver, "unleash", unleash()).status == 503
    assert deliver(receiver, "unleash", unleash()).status == 200
    assert len(broker.changes) == 1


def test_an_event_without_a_flip_is_taken(receiver: FlagReceiver, broker: Broker) -> None:
    assert deliver(receiver, "unleash", unleash("feature-tagged")) == Answer(200, "nothing was flipped")
    assert deliver(receiver, "unleash", ["x"]).status == 400
    assert deliver(receiver, "unleash", {"type": 1}) == Answer(
        400, "type: should be a string, not an integer"
    )
    assert broker.changes == []


def test_sets_of_flags_are_compared_with_the_last(receiver: FlagReceiver, broker: Broker) -> None:
    def sync(variant: str, *, text: bool = False, inside: bool = False) -> dict[str, Any]:
        flags = {"flags": {"new-cart": {"state": "ENABLED", "defaultVariant": variant}}}
        if inside:
            return {"flagConfiguration": flags}
        return {"flagConfiguration": json.dumps(flags)} if text else flags

    assert deliver(receiver, "openfeature", sync("off")).text == "nothing was flipped"
    broker.failures = [BrokerUnavailable("away")]
    assert deliver(receiver, "openfeature", sync("on")).status == 503
    assert deliver(receiver, "openfeature", sync("on")).status == 200
    assert deliver(receiver, "openfeature", sync("off", text=True)).status == 200
    assert [change.title for change in broker.changes] == ["Turn on new-cart", "Turn off new-cart"]
    assert deliver(receiver, "openfeature", sync("on", inside=True)).status == 200
    assert [change.title for change in broker.changes[2:]] == ["Turn on new-cart"]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"flagConfiguration": "{"}, "flagConfiguration: not JSON"),
        ({"flagConfiguration": 5}, "flagConfiguration: should be an object"),
        ({"flag_configuration": []}, "flagConfiguration: should be an object"),
        ({"flagConfiguration": {"a": 1}}, "flags: should be an object of flags"),
        ({"flagConfiguration": DEEP}, "flags.a: nested deeper than 50"),
    ],
)
def test_a_wrong_set_of_flags_is_refused(
    payload: dict[str, Any], reason: str, receiver: FlagReceiver, broker: Broker
) -> None:
    answer = deliver(receiver, "openfeature", payload)
    assert (answer.status, broker.changes) == (400, [])
    assert reason in answer.text


def test_equal_events_of_openfeature_are_two_flips(receiver: FlagReceiver, broker: Broker) -> None:
    for _ in range(2):
        assert deliver(receiver, "openfeature", openfeature("a", "b")).status == 200
    assert [change.gates for change in broker.changes] == [("a",), ("b",), ("a",), ("b",)]


def test_a_feature_flag_event_of_gitlab_is_published_by_the_rules_of_its_project(broker: Broker) -> None:
    rules = (("gate", "new-*", "shop"), ("branch", "main", "shop"))
    source = Source("acme/web/shop", "gitlab", rules, "lab token 12345")  # type: ignore[arg-type]
    receiver = Receiver(ServiceMap((source,)), broker.send, clock=lambda: NOW)

    def flip(name: str) -> Answer:
        attributes = {**GITLAB["object_attributes"], "name": name}  # type: ignore[dict-item]
        body = json.dumps({**GITLAB, "object_attributes": attributes}).encode()
        given = {"X-Gitlab-Event": "Feature Flag Hook", "X-Gitlab-Token": "lab token 12345"}
        return asyncio.run(receiver.receive("gitlab", CIMultiDict(given), body))

    assert flip("new-cart").text == "published 1 changes for the flip of 'new-cart' of acme/web/shop"
    assert flip("new-cart") == Answer(200, "already published")
    assert flip("old-cart").text == "nothing to publish for the flip of 'old-cart' of acme/web/shop"
    assert [(change.service, change.gates) for change in broker.changes] == [("shop", ("new-cart",))]


def test_the_server_takes_them_where_they_are_sent(receiver: FlagReceiver, broker: Broker) -> None:
    async def posts() -> list[int]:
        forges = Receiver(ServiceMap(()), broker.send, clock=lambda: NOW)
        async with TestClient(TestServer(make_app(forges, receiver))) as client:
            body = json.dumps(unleash()).encode()
            signed = headers("unleash", body)
            answers = [
                await client.post("/unleash", data=body, headers=signed),
                await client.post("/unleash", data=body),
                await client.post("/split", data=body, headers=signed),
            ]
            return [answer.status for answer in answers]

    assert asyncio.run(posts()) == [200, 401, 404]
    assert len(broker.changes) == 1


MAP = """
flag_services:
  ours:
    kind: launchdarkly
    secret_env: LD_SECRET
    flips:
      - {service: shop, project: default, environment: production, gates: "shop-*"}
"""


def test_the_service_map_has_flag_services(tmp_path: Path) -> None:
    path = tmp_path / "services.yaml"
    path.write_text(MAP)
    services = load_service_map(path, {"LD_SECRET": SECRET})
    (ours,) = services.flag_sources
    assert (ours.kind, ours.secret, services.sources) == ("launchdarkly", SECRET, ())
    assert ours.rules == (FlagRule("shop", "default", "production", "shop-*"),)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("launchdarkly", "split", "flag_services.ours.kind"),
        ("LD_SECRET", "NONE", "environment NONE: empty"),
        ("    secret_env: LD_SECRET\n", "", "give either secret_env or secret_file"),
        ("flag_services:", "flags:", "flags: unknown key"),
        ("gates:", "gate:", "unknown key"),
    ],
)
def test_a_wrong_service_map_names_the_key(tmp_path: Path, before: str, after: str, reason: str) -> None:
    path = tmp_path / "services.yaml"
    path.write_text(MAP.replace(before, after))
    with pytest.raises(ConfigError, match=reason):
        load_service_map(path, {"LD_SECRET": SECRET})


def test_an_empty_service_map_says_what_may_be_in_it(tmp_path: Path) -> None:
    (tmp_path / "services.yaml").write_text("{}")
    with pytest.raises(ConfigError, match="give repositories, flag_services or trackers"):
        load_service_map(tmp_path / "services.yaml", {})
