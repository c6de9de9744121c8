from __future__ import annotations

from typing import Any

import pytest

from loadgen.demo.comparison import DemoDeployment, judge
from loadgen.target.history import CommitKind
from pipeline.messages.events import regression_event
from pipeline.model import Change, Decision, Dropped, Regression, Suspect
from tests.support.builders import build_candidate

RANK = "shop.search.Index.rank"
START = 1_700_000_000.0


def deployment(sha: str, kind: CommitKind, at: float) -> DemoDeployment:
    return DemoDeployment(sha=sha, title=f"Commit {sha}", kind=kind, time=START + at)


DEPLOYED = [
    deployment("first", "initial", 0),
    deployment("harmless", "harmless", 30),
    deployment("slow", "slow", 45),
    deployment("refactor", "refactor", 60),
]


def event(metric: str = RANK, suspects: tuple[str, ...] = ("slow",), at: float = 46) -> dict[str, Any]:
    regression = Regression(
        id=f"{metric}@{at}",
        service="shop",
        workload="live",
        candidate=build_candidate(metric, before=0.04, after=0.12, change_time=START + at),
        detected_time=START + at + 10,
        suspects=tuple(
            Suspect(Change(id=sha, service="shop", time=START, title=sha), 1 / position, {})
            for position, sha in enumerate(suspects, start=1)
        ),
    )
    return regression_event(regression)


def test_reported_once_with_the_right_cause_passes() -> None:
    comparison = judge(DEPLOYED, [event(suspects=("slow", "harmless"))], RANK)

    assert comparison.passed
    assert [len(findings) for findings in comparison.findings] == [0, 0, 1, 0]
    assert comparison.findings[2][0].suspect == "slow"


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        pytest.param([], "was not reported", id="missed"),
        pytest.param([event(), event()], "reported 2 times", id="the same event twice"),
        pytest.param([event(), event(at=48)], "reported 2 times", id="two events of it"),
        pytest.param([event("shop.search.Index.search")], "instead of shop.search", id="wrong subroutine"),
        pytest.param([event(suspects=("harmless", "slow"))], "harmless was ranked first", id="wrong suspect"),
        pytest.param([event(suspects=())], "no change was ranked first", id="no suspect"),
        pytest.param(
            [event(), event("shop.reviews.count_words", ("refactor",), 61)],
            "which is refactor",
            id="refactor",
        ),
        pytest.param(
            [event(), event("shop.sales.report", (), 32)], "which is harmless", id="extra without a suspect"
        ),
        pytest.param(
            [event(), event("shop.sales.report", (), -9)], "which is initial", id="extra before anything"
        ),
        pytest.param([event("shop.sales.report", ("refactor",), 61)], "was not reported", id="only another"),
    ],
)
def test_anything_else_fails_and_says_why(events: list[dict[str, Any]], problem: str) -> None:
    comparison = judge(DEPLOYED, events, RANK)

    assert not comparison.passed
    assert any(problem in text for text in comparison.problems), comparison.problems


def test_every_event_stands_beside_a_deployment() -> None:
    events = [
        event(),
        event("shop.sales.report", (), 32),
        event("shop.reviews.count_words", ("refactor",), 61),
    ]

    comparison = judge(DEPLOYED, events, RANK)

    assert sum(len(findings) for findings in comparison.findings) == len(events)


def test_other_types_of_events_are_no_reports() -> None:
    resolved = {**event(), "type": "smidgen.regression.resolved"}

    assert judge(DEPLOYED, [event(), resolved], RANK).passed


def test_dead_letters_fail_it() -> None:
    comparison = judge(DEPLOYED, [event()], RANK, dead_letters=["profiles: not JSON"])

    assert comparison.problems == ("1 dead letter, the first by profiles: not JSON",)


@pytest.mark.parametrize(
    ("dropped", "why"),
    [
        ([], f"{RANK} had no change point in any scan"),
        (
            [
                (RANK, "threshold", 0.02, 0.03),
                (RANK, "significance", 0.023, 0.01),
                ("other", "silence", 0, 0),
            ],
            f"2 candidates of {RANK} dropped, 1 by threshold, 1 by significance; "
            "the last by significance: 0.023 against 0.01",
        ),
    ],
    ids=["no candidate", "dropped"],
)
def test_a_slow_commit_that_is_not_reported_has_its_reason(
    dropped: list[tuple[str, str, float, float]], why: str
) -> None:
    lines = [
        Dropped(build_candidate(metric), Decision(step, False, statistic, bound))
        for metric, step, statistic, bound in dropped
    ]
    problems = judge(DEPLOYED, [], RANK, dropped=lines).problems
    assert problems == (f"the slow commit {DEPLOYED[2].title!r} was not reported: {why}",)
