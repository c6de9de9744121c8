"""Rules as truth tables: what each key asks of an alert."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from pipeline.delivery.alerts.alert import alert_of, decode_alert, encode_alert
from pipeline.delivery.alerts.owners import OwnerLine, Owners, owners_of_path, parse_codeowners
from pipeline.delivery.alerts.rules import AlertRule, matches, matching, parse_share
from pipeline.files.validation import validate
from pipeline.model.errors import ConfigError, InvalidMessage
from tests.support.alert_events import SUSPECT, alert, detected, resolved, updated


def rule(**given: Any) -> AlertRule:
    return validate(AlertRule, {"to": ["chat"], **given}, "rules")


# The alert: service shop, shop.pricing.total from 0.06 to 0.08, 20 of 1000 servers, p 1e-11, score 0.91.
@pytest.mark.parametrize(
    ("given", "data", "wanted"),
    [
        pytest.param({}, {}, True, id="nothing asked"),
        pytest.param({"services": ["sh*"]}, {}, True, id="service"),
        pytest.param({"services": ["cart", "sho?"]}, {}, True, id="one of two services"),
        pytest.param({"services": ["cart"]}, {}, False, id="another service"),
        pytest.param({"subroutines": ["shop.pricing.*"]}, {}, True, id="subroutine"),
        pytest.param({"subroutines": ["shop.cart.*"]}, {}, False, id="another subroutine"),
        pytest.param({"workloads": ["live"]}, {}, True, id="workload"),
        pytest.param({"workloads": ["ct-*"]}, {}, False, id="another workload"),
        pytest.param({"metric_kinds": ["subroutine"]}, {}, True, id="metric kind"),
        pytest.param({"metric_kinds": ["service"]}, {}, False, id="another metric kind"),
        pytest.param({"min_size": "2%"}, {"after": 0.09}, True, id="large enough"),
        pytest.param({"min_size": 0.05}, {}, False, id="too small"),
        pytest.param({"min_size": 0.5}, {"metric_kind": "service"}, True, id="a metric is no share"),
        pytest.param({"min_relative": "30%"}, {}, True, id="relative"),
        pytest.param({"min_relative": "40%"}, {}, False, id="too small relatively"),
        pytest.param({"min_relative": "40%"}, {"before": 0.0}, True, id="new is any share"),
        pytest.param(
            {"min_relative": "20%"}, {"metric_kind": "service", "after": 0.03}, True, id="a drop of half"
        ),
        pytest.param({"min_waste": 20}, {}, True, id="waste"),
        pytest.param({"min_waste": 20.5}, {}, False, id="too little waste"),
        pytest.param({"min_waste": 1}, {"waste_servers": None}, False, id="waste is not known"),
        pytest.param({"min_confidence": 0.999}, {}, True, id="sure"),
        pytest.param({"min_confidence": "99.9%"}, {"p_value": 0.01}, False, id="not sure enough"),
        pytest.param({"min_suspect_score": 0.9}, {}, True, id="suspected enough"),
        pytest.param({"min_suspect_score": 0.95}, {}, False, id="suspected too little"),
        pytest.param({"min_suspect_score": 0.1}, {"root_causes": []}, False, id="nobody is suspected"),
        pytest.param({"services": ["sh*"], "min_waste": 50}, {}, False, id="all of it"),
    ],
)
def test_a_rule_is_about_an_alert(given: dict[str, Any], data: dict[str, Any], wanted: bool) -> None:
    assert matches(rule(**given), alert(**data)) is wanted


@pytest.mark.parametrize(
    ("owners", "of_alert", "wanted"),
    [
        (["@acme/pricing"], ("@acme/pricing",), True),
        (["@acme/*"], ("@bob", "@acme/cart"), True),
        (["@acme/cart"], ("@acme/pricing",), False),
        (["*"], (), False),
    ],
)
def test_a_rule_asks_for_owners(owners: list[str], of_alert: tuple[str, ...], wanted: bool) -> None:
    assert matches(rule(owners=owners), replace(alert(), owners=of_alert)) is wanted


def test_rules_hold_up_to_the_first_that_says_stop() -> None:
    rules = [rule(name="a"), rule(name="b", stop=True), rule(name="c")]
    assert [each.name for each in matching(rules, alert())] == ["a", "b"]


@pytest.mark.parametrize(("text", "share"), [("0.1%", 0.001), (0.5, 0.5), ("0.5", 0.5), ("100 %", 1.0)])
def test_shares_are_read(text: object, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"min_size": "-1%"}, "min_size: should be a share"),
        ({"min_size": "much"}, "min_size: should be a share"),
        ({"min_confidence": 2}, "min_confidence: should be at most 1"),
        ({"to": []}, "to: should hold at least 1"),
        ({"service": "x"}, "unknown key; known keys are"),
        ({"unanswered": {"after": "4h"}}, "unanswered.to: "),
    ],
)
def test_a_wrong_rule_is_named_by_its_key(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match="rules") as caught:
        rule(**given)
    assert said in str(caught.value)


CODEOWNERS = """
# everything
*                       @acme/all
[Pricing][2] @acme/ignored-section-owner
/shop/pricing/          @acme/pricing @ada
/shop/pricing/tests/*   @acme/tests
*.sql                   @acme/data   # of all folders
docs/**/api             @acme/docs
/free/
"""


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("README.md", ("@acme/all",)),
        ("shop/pricing/rules.py", ("@acme/pricing", "@ada")),
        ("shop/pricing/deep/down.py", ("@acme/pricing", "@ada")),
        ("other/shop/pricing/rules.py", ("@acme/all",)),
        ("shop/pricing/tests/one.py", ("@acme/tests",)),
        ("shop/pricing/tests/deep/one.py", ("@acme/pricing", "@ada")),
        ("db/new/table.sql", ("@acme/data",)),
        ("docs/a/b/api/page.md", ("@acme/docs",)),
        ("free/file", ()),
    ],
)
def test_the_last_line_of_codeowners_wins(path: str, wanted: tuple[str, ...]) -> None:
    assert owners_of_path(path, parse_codeowners(CODEOWNERS)) == wanted


@pytest.mark.parametrize(
    "pattern",
    ["**/" * 600 + "x", "*a" * 40 + "b", "/".join(["**/a"] * 300), "**" * 900 + "b", "a[" * 9 + "]*"],
)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    lines = parse_codeowners(f"* @all\n{pattern} @eve\n")
    started = time.process_time()
    assert owners_of_path("/".join(["a" * 60] * 60), lines) == ("@all",)
    assert time.process_time() - started < 1.0


def test_owners_are_those_of_the_subroutine_then_of_files() -> None:
    lines = parse_codeowners(CODEOWNERS)
    patterns = (OwnerLine("shop.*", ("@shop",)), OwnerLine("shop.cart.*", ("@cart",)))
    assert Owners(patterns, (("shop", lines),)).of(alert()) == ("@shop",)
    assert Owners((), (("shop", lines),)).of(alert()) == ("@acme/pricing", "@ada")  # of the suspect's file
    without = alert(root_causes=[])
    assert Owners((), (("shop", lines),)).of(without) == ("@acme/pricing", "@ada")  # of the name as a path
    assert Owners((), (("cart", lines),)).of(alert()) == ()


def test_events_are_read_and_kept_whole() -> None:
    found = alert_of(detected())
    assert found.size == pytest.approx(0.02)
    assert found.confidence == pytest.approx(1 - 1e-11)
    assert found.suspect is not None
    assert found.suspect.author == "Ada"
    for event in (detected(root_causes=[]), detected(), updated("r1"), resolved("r1")):
        assert decode_alert(encode_alert(alert_of(event))) == alert_of(event)


def test_a_kept_alert_of_another_version_is_read_as_far_as_it_is_known() -> None:
    found = alert_of(detected())
    kept = json.loads(encode_alert(found))
    assert decode_alert(json.dumps({**kept, "later": 1, "suspect": {**kept["suspect"], "later": 1}})) == found
    del kept["owners"], kept["group_size"], kept["waste_servers"]
    assert decode_alert(json.dumps(kept)) == replace(found, waste_servers=None, group_size=0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"before": "much"}, "before: should be a number, not a string"),
        ({"metric": ""}, "metric: empty"),
        ({"kind": "begun"}, "kind: should be detected, updated or resolved, not 'begun'"),
        ({"group_size": -1}, "group_size: should be a whole number of at least 0"),
        ({"suspect": {"id": "8f2c11d0", "score": 1.0}}, "suspect.title: missing"),
        ({"owners": ["@ada", 7]}, r"owners\[1\]: should be a string"),
    ],
)
def test_a_kept_alert_that_is_wrong_is_named(wrong: dict[str, Any], said: str) -> None:
    kept = json.loads(encode_alert(alert_of(detected())))
    with pytest.raises(InvalidMessage, match=said):
        decode_alert(json.dumps({**kept, **wrong}))


@pytest.mark.parametrize(
    "wrong", [{"servers": "many"}, {"p_value": [1]}, {"metric_kind": "heat"}, {"metric": "m" * 9999}]
)
def test_an_event_of_which_nothing_can_be_said_is_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        alert_of(detected(**wrong))


@pytest.mark.parametrize(
    "number", ["r1\r\nBcc: x@y", 'x" OR project = "SECRET', "a --><b>", "../r1", "", "ü"]
)
def test_an_id_that_steers_headers_queries_or_markers_is_none(number: str) -> None:
    with pytest.raises(InvalidMessage, match="event"):
        alert_of(detected(number))
    with pytest.raises(InvalidMessage, match="regression"):
        alert_of({**resolved(number), "id": "r2"})


def test_a_resolution_names_what_ended_it_and_an_update_its_level() -> None:
    ended = alert_of(resolved("r1", resolved_by=[SUSPECT["change"]]))
    assert (ended.kind, ended.regression) == ("resolved", "r1")
    assert ended.suspect is not None
    assert ended.suspect.id == "8f2c11d0"
    assert alert_of(updated("r1")).level == 0.1


def test_an_event_of_a_former_version_lacks_what_came_later() -> None:
    event = detected()
    for name in ("servers", "waste_servers", "group_size"):
        del event["data"][name]
    assert alert_of(event).waste_servers is None
