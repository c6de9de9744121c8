"""Rules as tables: which processes they take, and for whom."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agents.host.proc import ProcessFacts
from agents.host.rules import Condition, Decision, Identity, Rule, decide, fill

SHOP = ProcessFacts(
    pid=7,
    command="python -m shop --port 80",
    executable="/srv/shop/venv/bin/python3.12",
    user="www",
    user_id=33,
    cgroup="0::/kubepods/pod1f2e3d4c-5b6a-7988-8796-a5b4c3d2e1f0/" + "ab" * 32 + "\n",
    environment={"VERSION": "v7", "ZONE": "a", "EMPTY": ""},
)


def _condition(given: dict[str, Any]) -> Condition:
    compiled = {key: re.compile(value) for key, value in given.items() if key not in ("user", "environment")}
    environment = {
        key: None if value is None else re.compile(value)
        for key, value in given.get("environment", {}).items()
    }
    return Condition(**compiled, user=given.get("user"), environment=environment)


@pytest.mark.parametrize(
    ("condition", "matches"),
    [
        pytest.param({}, True, id="anything"),
        pytest.param({"command": r"-m shop\b"}, True, id="command"),
        pytest.param({"command": r"^shop"}, False, id="another command"),
        pytest.param({"executable": r"/venv/bin/python"}, True, id="executable"),
        pytest.param({"executable": r"java$"}, False, id="another executable"),
        pytest.param({"user": "www"}, True, id="user"),
        pytest.param({"user": "33"}, True, id="user by number"),
        pytest.param({"user": "ww"}, False, id="users are no patterns"),
        pytest.param({"cgroup": "kubepods"}, True, id="cgroup"),
        pytest.param({"container": "^abab"}, True, id="container"),
        pytest.param({"container": "^cd"}, False, id="another container"),
        pytest.param({"environment": {"VERSION": None}}, True, id="variable is set"),
        pytest.param({"environment": {"EMPTY": None}}, True, id="variable is set, though empty"),
        pytest.param({"environment": {"OTHER": None}}, False, id="variable is not set"),
        pytest.param({"environment": {"VERSION": "^v"}}, True, id="variable by pattern"),
        pytest.param({"environment": {"VERSION": "^w"}}, False, id="variable of another value"),
        pytest.param({"command": "shop", "user": "root"}, False, id="all must match"),
    ],
)
def test_conditions(condition: dict[str, Any], matches: bool) -> None:
    decision = decide(SHOP, [Rule(_condition(condition), service="x")])
    assert (decision.target is not None) == matches
    assert matches or decision.reason == "no_rule"


RULES = [
    Rule(_condition({"command": "mail"}), service="mail"),
    Rule(_condition({"command": "shop"}), service="shop"),
    Rule(service="rest"),
]


@pytest.mark.parametrize(
    ("rules", "decision"),
    [
        pytest.param([Rule()], Decision(None, "no_service", 1), id="no service"),
        pytest.param([Rule(service="a b")], Decision(None, "invalid_service", 1, "a b"), id="no name"),
        pytest.param([Rule(ignore=True), *RULES], Decision(None, "ignored", 1), id="ignored"),
    ],
)
def test_the_first_rule_that_matches_counts(rules: list[Rule], decision: Decision) -> None:
    assert decide(SHOP, rules) == decision
    shop = decide(SHOP, RULES)
    assert (shop.rule, shop.service) == (2, "shop")


@pytest.mark.parametrize(
    ("rule", "identity"),
    [
        pytest.param({"service": "shop"}, Identity("shop"), id="literal"),
        pytest.param({"service": "${env:ZONE}-shop"}, Identity("a-shop"), id="environment"),
        pytest.param(
            {"service": "${app}", "release": "${env:VERSION}", "command": r"-m (?P<app>\w+)"},
            Identity("shop", "v7"),
            id="group of a pattern",
        ),
        pytest.param(
            {"service": "s", "pod": "${pod}", "labels": {"zone": "${env:ZONE}", "none": "${env:NONE}"}},
            Identity("s", "", (("pod", "1f2e3d4c-5b6a-7988-8796-a5b4c3d2e1f0"), ("zone", "a"))),
            id="labels, the empty ones left out",
        ),
    ],
)
def test_identities(rule: dict[str, Any], identity: Identity) -> None:
    given = dict(rule)
    condition = _condition({"command": given.pop("command", "")})
    target = decide(SHOP, [Rule(condition, **given)]).target
    assert target
    assert target.identity == identity


def test_opentelemetry_is_understood_without_a_word() -> None:
    said = {
        "OTEL_SERVICE_NAME": "cart",
        "OTEL_RESOURCE_ATTRIBUTES": "service.version=9,cloud.region=eu,k8s.pod.name=cart-1",
    }
    facts = ProcessFacts(1, "java", environment=said)
    target = decide(facts, [Rule()]).target
    assert target
    assert target.identity == Identity("cart", "9", (("region", "eu"),))
    shown = decide(facts, [Rule(pod="${pod}")]).target
    assert shown
    assert dict(shown.identity.labels)["pod"] == "cart-1"


def test_texts_of_a_process_are_bounded_and_printable() -> None:
    facts = ProcessFacts(1, "x", environment={"V": "a\nb\x1b[1m" + "c" * 1000})
    target = decide(facts, [Rule(service="s", release="${env:V}")]).target
    assert target
    assert target.identity.release.startswith("a?b?[1mccc")
    assert len(target.identity.release) == 200
    assert fill("${env:A}-${b}-$c-${", {}, {}) == "--$c-${", "what a process does not say is empty"
