"""Deliveries: to whom an alert goes, when, in which order, and what goes into one message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.delivery.alerts.delivery import (
    Delivery,
    DeliveryPlan,
    batches,
    changed,
    deliveries,
    due_now,
    settled,
    thread_of,
    unannounced,
)
from pipeline.delivery.alerts.rules import AlertRule
from pipeline.delivery.alerts.targets import Target
from pipeline.files.validation import validate
from tests.support.alert_events import NOW, alert, detected, resolved, updated

ALWAYS_QUIET = [{"from": "00:00", "to": "23:00"}]
QUIET_UNTIL = 1_790_031_600.0  # 23:00 UTC of that day


def plan(*rules: dict[str, Any], **targets: dict[str, Any]) -> DeliveryPlan:
    manners = {name: validate(Target, {"kind": "any", **given}, name) for name, given in targets.items()}
    return DeliveryPlan(tuple(validate(AlertRule, rule, "rule") for rule in rules), manners)


def went(found: tuple[Delivery, ...]) -> list[tuple[str, str, float]]:
    return [(each.target, each.manner, each.due - NOW) for each in found]


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        pytest.param([{"to": ["a"]}], [("a", "single", 0)], id="at once"),
        pytest.param([{"to": ["a", "a"]}, {"to": ["a"]}], [("a", "single", 0)], id="to each target once"),
        pytest.param([{"to": ["a"], "services": ["x"]}], [], id="no rule is about it"),
        pytest.param([{"to": ["q"]}], [("q", "single", QUIET_UNTIL - NOW)], id="quiet hours"),
        pytest.param([{"to": ["q"], "urgent": True}], [("q", "single", 0)], id="urgent"),
        pytest.param(
            [{"to": ["q"]}, {"to": ["q"], "urgent": True}], [("q", "single", 0)], id="one is urgent"
        ),
        pytest.param([{"to": ["d"]}], [("d", "digest", 2800.0)], id="a digest"),
        pytest.param([{"to": ["d"], "urgent": True}], [("d", "single", 0)], id="urgent, past a digest"),
        pytest.param(
            [{"to": ["a"], "unanswered": {"after": "4h", "to": ["q"]}}],
            [("a", "single", 0), ("q", "unanswered", 4 * 3600.0)],
            id="a reminder, whatever the hour",
        ),
    ],
)
def test_an_alert_goes_to_targets(rules: list[dict[str, Any]], wanted: list[tuple[str, str, float]]) -> None:
    targets: dict[str, dict[str, Any]] = {
        "a": {},
        "q": {"quiet": ALWAYS_QUIET},
        "d": {"digest": {"every": "1h"}},
    }
    found = deliveries(plan(*rules, **targets), alert(), 3, (), NOW)
    assert went(found) == wanted
    assert all(each.partition == 3 for each in found)


def test_what_is_known_is_not_made_again_whatever_the_rules_say_by_now() -> None:
    single, digest = plan({"to": ["a"]}, a={}), plan({"to": ["a"]}, a={"digest": {"every": "1h"}})
    known = deliveries(single, alert(), 0, (), NOW)
    assert deliveries(single, alert(), 0, known, NOW + 5) == ()
    assert deliveries(digest, alert(), 0, known, NOW + 5) == ()


@pytest.mark.parametrize("event", [updated("r1"), resolved("r1")])
def test_what_becomes_of_a_regression_goes_to_those_who_heard_of_it(event: dict[str, Any]) -> None:
    big = plan(
        {"to": ["a", "deaf"], "min_size": "1%", "unanswered": {"after": "1h", "to": ["pager"]}},
        {"to": ["other"], "services": ["x"]},
        **{"a": {}, "deaf": {"follow": False}, "pager": {}, "other": {}},
    )
    known = deliveries(big, alert(), 0, (), NOW)
    wanted = {"a"} if event["type"].endswith("resolved") else {"a", "deaf"}  # the rule is about it, too
    assert {each.target for each in deliveries(big, alert(event), 0, known, NOW + 60)} == wanted
    reminded = [changed(each, "sent", NOW) for each in known]
    found = deliveries(big, alert(event), 0, reminded, NOW + 60)
    assert {each.target for each in found} == {*wanted, "pager"}
    assert not [each for each in found if each.manner == "unanswered"]


def test_an_update_may_be_large_enough_at_last() -> None:
    rules = plan({"to": ["a"], "min_size": "3%"}, a={})
    assert deliveries(rules, alert(), 0, (), NOW) == ()
    assert went(deliveries(rules, alert(updated("r1")), 0, (), NOW)) == [("a", "single", 0)]


def test_what_was_sent_no_longer_waits_in_whatever_order_rows_come() -> None:
    (waiting,) = deliveries(plan({"to": ["a"]}, a={}), alert(), 0, (), NOW)
    sent = changed(waiting, "sent", NOW, thread="t")
    for rows in ([waiting, sent], [sent, waiting]):
        assert settled(rows) == {waiting.id: sent}


def test_an_update_waits_for_its_report() -> None:
    rules = plan({"to": ["q"]}, q={"quiet": ALWAYS_QUIET})
    (report,) = deliveries(rules, alert(), 0, (), NOW)
    (update,) = deliveries(plan({"to": ["q"]}, q={}), alert(updated("r1")), 0, [report], NOW)
    (other,) = deliveries(plan({"to": ["q"]}, q={}), alert(detected("r2")), 0, (), NOW)
    assert due_now([update, other, report], NOW + 60) == {"q": [other]}
    ready = due_now([update, report], QUIET_UNTIL)
    assert [each.alert.kind for each in ready["q"]] == ["detected", "updated"]


def test_a_reminder_to_come_holds_nothing_back() -> None:
    rules = plan({"to": ["a"], "unanswered": {"after": "4h", "to": ["a"]}}, a={})
    report, reminder = deliveries(rules, alert(), 0, (), NOW)
    assert due_now([report, reminder], NOW) == {"a": [report]}


def test_a_thread_is_that_of_the_target_and_the_regression() -> None:
    rules = plan({"to": ["a", "b"]}, a={}, b={})
    first, other = deliveries(rules, alert(), 0, (), NOW)
    known = [changed(first, "sent", NOW, thread="t1"), changed(other, "sent", NOW, thread="t2")]
    follow = deliveries(rules, alert(updated("r1")), 0, known, NOW)
    assert [thread_of(known, each) for each in follow] == ["t1", "t2"]
    assert thread_of(known, replace(first, alert=alert(detected("r9")))) == ""


def test_the_end_of_what_nobody_heard_of_is_not_announced() -> None:
    rules = plan({"to": ["a"]}, a={})
    (report,) = deliveries(rules, alert(), 0, (), NOW)
    (end,) = deliveries(rules, alert(resolved("r1")), 0, [report], NOW)
    assert unannounced([changed(report, "dropped", NOW), end], end)
    assert not unannounced([changed(report, "sent", NOW), end], end)
    assert not unannounced([report], report)


@pytest.mark.parametrize(
    ("free", "bundles", "wanted"),
    [
        (None, True, ["dd", "s", "s", "s"]),
        (4, True, ["dd", "s", "s", "s"]),
        (2, True, ["dd", "sss"]),
        (1, True, ["ddsss"]),
        (0, True, []),
        (2, False, ["dd", "s"]),
    ],
)
def test_what_goes_into_one_message(free: int | None, bundles: bool, wanted: list[str]) -> None:
    rules = plan({"to": ["a"]}, a={})
    made = [deliveries(rules, alert(detected(f"r{n}")), 0, (), NOW)[0] for n in range(5)]
    due = [replace(each, manner="digest") if n < 2 else each for n, each in enumerate(made)]
    found = batches(due, free, bundles=bundles)
    assert ["".join(each.manner[0] for each in batch) for batch in found] == wanted
