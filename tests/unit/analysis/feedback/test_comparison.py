"""Two settings side by side: what the ledger says that each reports, drops or leaves open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.feedback.comparison import (
    EventAnswer,
    LedgerCandidate,
    RegressionLine,
    SettingOutcome,
    TriedBounds,
    compare_settings,
    fewer,
    more,
    tally,
)
from pipeline.model import SeriesKey, Verdict, VerdictKind
from tests.support.builders import build_candidate

PRESENT = TriedBounds("absolute", 0.01, 0.01)
SAME_S = 100.0


def seen(
    number: str, size: float, *, step: str = "", time: float = 0.0, p_value: float = 1e-9, metric: str = "f"
) -> LedgerCandidate:
    built = build_candidate(metric, before=0.1, after=0.1 + size, change_time=time)
    candidate = replace(built, p_value=p_value)
    return LedgerCandidate(number, "shop", "live", candidate, time + 60, 1000, step)


def compared(
    *found: LedgerCandidate, second: TriedBounds, answers: tuple[EventAnswer, ...] = ()
) -> list[RegressionLine]:
    return list(compare_settings(found, PRESENT, second, same_s=SAME_S, answers=answers))


def said(event: str, verdict: VerdictKind, *, metric: str = "f", time: float = 0.0) -> EventAnswer:
    state = Verdict(event, "shop", verdict, time, "ada")
    return EventAnswer(event, "shop", SeriesKey("subroutine", metric), time, state)


@pytest.mark.parametrize(
    ("candidate", "second", "outcome"),
    [
        pytest.param(
            seen("a", 0.03), replace(PRESENT, threshold=0.02), SettingOutcome("reported"), id="larger"
        ),
        pytest.param(
            seen("a", 0.015),
            replace(PRESENT, threshold=0.02),
            SettingOutcome("silent", "threshold"),
            id="smaller",
        ),
        pytest.param(
            seen("a", 0.03, p_value=1e-6),
            replace(PRESENT, by_chance=1e-4),
            SettingOutcome("silent", "significance"),
            id="not as sure",
        ),
        pytest.param(
            seen("a", 0.005, step="threshold"),
            replace(PRESENT, threshold=0.004),
            SettingOutcome("open"),
            id="lower",
        ),
        pytest.param(
            seen("a", 0.005, step="threshold", p_value=1e-4),
            replace(PRESENT, threshold=0.004),
            SettingOutcome("silent", "significance"),
            id="lower, and no surer",
        ),
        pytest.param(
            seen("a", 0.03, step="significance", p_value=1e-4),
            replace(PRESENT, by_chance=0.2),
            SettingOutcome("open"),
            id="less sure",
        ),
        pytest.param(
            seen("a", 0.03, step="cost_shift"),
            replace(PRESENT, threshold=0.001),
            SettingOutcome("silent", "cost_shift"),
            id="a later step keeps it",
        ),
        pytest.param(
            seen("a", 0.03),
            TriedBounds("relative", 0.5),
            SettingOutcome("silent", "threshold"),
            id="another measure",
        ),
    ],
)
def test_a_setting_drops_what_the_ledger_says_it_does(
    candidate: LedgerCandidate, second: TriedBounds, outcome: SettingOutcome
) -> None:
    (line,) = compared(candidate, second=second)
    assert line.second == outcome


def test_scans_that_saw_one_regression_are_one_line() -> None:
    first, again = seen("a", 0.015), seen("b", 0.03, step="same_regression", time=90.0)
    later = seen("c", 0.03, time=300.0)
    lines = compared(first, again, later, second=replace(PRESENT, threshold=0.02))
    assert [(line.shown.id, line.first.fate, line.second.fate) for line in lines] == [
        ("c", "reported", "reported"),
        ("a", "reported", "open"),
    ]
    small = replace(again, candidate=first.candidate)
    (line,) = compared(first, small, second=replace(PRESENT, threshold=0.02))
    assert line.second == SettingOutcome("silent", "threshold")


def test_what_people_said_is_counted_of_what_differs() -> None:
    found = [
        seen("a", 0.015, metric="a"),
        seen("b", 0.016, metric="b"),
        seen("c", 0.017, metric="c"),
        seen("d", 0.03, metric="d"),
        seen("x", 0.005, step="threshold", metric="x"),
    ]
    answers = (
        said("a", "true", metric="a"),
        said("b", "false", metric="b"),
        said("other workload's", "fixed", metric="x", time=50.0),
        said("long after", "false", metric="c", time=500.0),
    )
    higher = compared(*found, second=replace(PRESENT, threshold=0.02), answers=answers)
    assert {line.shown.id for line in fewer(higher)} == {"a", "b", "c"}
    assert (tally(fewer(higher)).right, tally(fewer(higher)).wrong) == (1, 1)
    lower = compared(*found, second=replace(PRESENT, threshold=0.004), answers=answers)
    assert [(line.shown.id, line.right, line.differs) for line in more(lower)] == [("x", True, True)]
    assert fewer(lower) == []
