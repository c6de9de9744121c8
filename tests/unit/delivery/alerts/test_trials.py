"""Verdicts on trials as alerts: who asks for them gets each once, with what follows in the same thread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.delivery.alerts.alert import Alert, alert_of, decode_alert, encode_alert
from pipeline.delivery.alerts.delivery import DeliveryPlan, deliveries
from pipeline.delivery.alerts.dry_run import DryRun
from pipeline.delivery.alerts.markup import as_plain
from pipeline.delivery.alerts.message import digest_of, note_of
from pipeline.delivery.alerts.outcome import MOST_METRICS
from pipeline.delivery.alerts.rules import AlertRule, matches
from pipeline.delivery.alerts.rules_file import load_rules
from pipeline.files.validation import validate
from pipeline.kafka import Entry
from pipeline.messages.records import check
from pipeline.messages.schema import trials as shapes
from pipeline.model.errors import ConfigError
from tests.support.alert_events import NOW, alert, detected, encoded, outcome, verdict

DASHBOARD = "https://smidgen.example.org/"
FAILS = ["trial-fail"]


def rule(**given: Any) -> AlertRule:
    return validate(AlertRule, {"to": ["chat"], **given}, "rules")


def of(decision: str = "fail", **data: Any) -> Alert:
    return alert_of(verdict("pr-7", decision, **data))


def test_the_events_are_what_judge_publishes() -> None:
    check(shapes.TrialVerdict, verdict())


@pytest.mark.parametrize(
    ("given", "about", "wanted"),
    [
        ({}, of(), False),
        ({}, alert(), True),
        ({"events": FAILS}, of(), True),
        ({"events": FAILS}, alert(), False),
        ({"events": FAILS}, of("not enough"), False),
        ({"events": FAILS}, of("pass"), False),
        ({"events": ["trial-not-enough"]}, of("not enough"), True),
        ({"events": ["regression", "trial-fail"]}, of(), True),
        ({"events": FAILS, "services": ["sh*"]}, of(), True),
        ({"events": FAILS, "services": ["cart"]}, of(), False),
        ({"events": ["regression", "trial-fail"], "workloads": ["live"]}, of(), False),
        ({"events": FAILS, "subroutines": ["cpu"]}, of(), True),
        ({"events": FAILS, "subroutines": ["latency"]}, of(), False),  # that metric did not fail
        ({"events": FAILS, "min_relative": "5%"}, of(), True),
        ({"events": FAILS, "min_relative": "6%"}, of(), False),
        ({"events": FAILS, "min_confidence": "99.9%"}, of(), True),
        ({"events": FAILS, "min_confidence": "99.99%"}, of(), False),
    ],
)
def test_a_rule_asks_for_verdicts_by_name(given: dict[str, Any], about: Alert, wanted: bool) -> None:
    assert matches(rule(**given), about) is wanted


def test_one_of_the_metrics_has_to_be_as_asked() -> None:
    metrics = [outcome("cpu", "fail", 0.05), outcome("calls", "fail", 0.5, p_value=0.03)]
    both = of(metrics=metrics)
    assert both.metric == "calls"
    assert matches(rule(events=FAILS, subroutines=["cpu"]), both)
    assert not matches(rule(events=FAILS, min_relative="10%", min_confidence="99%"), both)


@pytest.mark.parametrize("name", ["workloads", "min_waste", "unanswered"])
def test_a_rule_about_trials_alone_cannot_ask_for_what_only_regressions_have(name: str) -> None:
    given: dict[str, Any] = {
        "workloads": ["live"],
        "min_waste": 3,
        "unanswered": {"after": "1h", "to": ["chat"]},
    }
    with pytest.raises(ConfigError, match=f"{name}: of regressions alone"):
        rule(events=FAILS, **{name: given[name]})


@pytest.mark.parametrize(
    ("decision", "revision", "kind"),
    [("fail", 1, "detected"), ("not enough", 2, "updated"), ("fail", 3, "updated"), ("pass", 2, "resolved")],
)
def test_later_verdicts_follow_the_first(decision: str, revision: int, kind: str) -> None:
    first, later = of(), of(decision, revision=revision)
    assert later.kind == kind
    assert later.regression == first.regression
    assert of(service="cart").regression != first.regression
    assert decode_alert(encode_alert(later)) == later


def test_whoever_heard_of_a_failure_hears_of_what_follows() -> None:
    class Manners:
        quiet, digest, limit, follow = (), None, None, True

    plan = DeliveryPlan((rule(events=FAILS),), {"chat": Manners()})
    (heard,) = deliveries(plan, of(), 0, [], NOW)
    assert heard.part == ("trial-verdicts", 0)
    assert deliveries(plan, of(), 0, [heard], NOW) == ()
    for later in (of("not enough", revision=2), of("pass", revision=2)):
        assert [each.target for each in deliveries(plan, later, 0, [heard], NOW)] == ["chat"]
        assert deliveries(plan, later, 0, [], NOW) == ()


def test_nobody_is_reminded_of_what_nobody_can_answer() -> None:
    class Manners:
        quiet, digest, limit, follow = (), None, None, True

    asks = rule(events=["regression", "trial-fail"], unanswered={"after": "1h", "to": ["chat"]})
    plan = DeliveryPlan((asks,), {"chat": Manners()})
    assert [each.manner for each in deliveries(plan, of(), 0, [], NOW)] == ["single"]
    assert len(deliveries(plan, alert(), 0, [], NOW)) == 2


def test_the_topic_is_read_where_a_rule_asks_for_it() -> None:
    assert DeliveryPlan((rule(),), {}).sources == ("regressions",)
    assert DeliveryPlan((rule(), rule(events=FAILS)), {}).sources == ("regressions", "trial-verdicts")


def test_a_message_has_the_work_and_leads_to_its_page() -> None:
    note = note_of(of(), DASHBOARD)
    assert note.title == "shop: experiment pr-7 fails: cpu +5.00%"
    assert as_plain(note.lines).splitlines() == [
        "Failed: experiment pr-7 of shop fails: cpu +5.00%",
        "cpu +5.00% (+4.00% to +6.00%), p 0.0005, threshold +2.000%, 8 trials by paired-t-test",
        "Side B 9bc1d00 against A 3f2a; machines: A type=m5 (8)",
        "Open its page: https://smidgen.example.org/trials/shop/pr-7",
    ]
    assert note_of(alert_of(verdict("a/b c")), DASHBOARD).link.endswith("/trials/shop/a%2Fb%20c")
    assert note_of(of(), "https://x.invalid/{id}").link == ""
    assert not note.answerable


@pytest.mark.parametrize(
    ("about", "said"),
    [
        (of("not enough"), "is not decided by 8 trials: cpu, and 1 more"),
        (of("not enough", complete=False, trials=3), "did not end: 3 trials of 8, and none for a day"),
        (of("not enough", complete=False, trials=9), "did not end: 9 trials, and none for a day"),
        (of("not enough", metrics=[], trials=1), "has nothing to compare in 1 trial"),
        (of("pass", revision=2), "is within its thresholds (revision 2)"),
        (
            of("fail", metrics=[outcome("cpu", "fail", 0.05), outcome("x", "fail", 0.02)]),
            "cpu +5.00%, and 1 more",
        ),
    ],
)
def test_what_is_said_of_an_experiment(about: Alert, said: str) -> None:
    assert said in as_plain(note_of(about, "").lines)


def test_an_undecided_experiment_suspects_nobody() -> None:
    suspect = of().suspect
    assert suspect
    assert (suspect.id, suspect.score) == ("9bc1d00", 1.0)
    assert of("not enough").suspect is None
    assert of(releases_b=["a", "b"]).suspect is None


def test_many_metrics_fit_a_message() -> None:
    many = of(metrics=[outcome(f"m{n}", "fail", n / 100) for n in range(200)])
    assert many.trial
    assert (len(many.trial.metrics), many.trial.metrics_size) == (MOST_METRICS, 200)
    text = as_plain(note_of(many, "").lines)
    assert "and 195 more" in text
    assert "m199 +199.00%" in text


def test_a_digest_counts_them_apart() -> None:
    note = digest_of([alert(), of()], DASHBOARD, "d")
    assert note.title == "Smidgen: 1 regression in 1 service, 1 verdict on trials"
    assert "experiment pr-7 fails: cpu +5.00%" in as_plain(note.lines)


def test_names_steer_nothing() -> None:
    hostile = alert_of(verdict("@everyone\nSubject: x", releases_b=["<!channel>"]))
    note = note_of(hostile, "")
    assert "\n" not in note.title
    assert "<!channel>" not in as_plain(note.lines)


def test_a_dry_run_prints_them(tmp_path: Path) -> None:
    target = {"kind": "webhook", "url": "http://127.0.0.1:9/"}
    rules = {"targets": {"chat": target}, "rules": [{"to": ["chat"], "events": FAILS}]}
    (tmp_path / "alerts.yaml").write_text(json.dumps(rules))
    dry = DryRun(load_rules(tmp_path / "alerts.yaml", {}))
    printed = [
        next(iter(dry.lines(Entry(0, 0, NOW, b"", encoded(event), ()), NOW)))
        for event in (verdict(), verdict(), verdict("pr-8", "not enough"), detected())
    ]
    assert printed[0] == "chat (single, now): shop: experiment pr-7 fails: cpu +5.00%"
    assert [line.endswith("no target") for line in printed] == [False, True, True, True]
