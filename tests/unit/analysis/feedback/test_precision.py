"""Precision by verdicts: what counts as right, intervals, and groups of events."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from pipeline.analysis.feedback import AnsweredEvent, Reported, is_right, precision_table, wilson
from pipeline.model import Decision, Verdict, VerdictKind


def judged(number: int, right: bool, *passed: Decision, service: str = "shop") -> AnsweredEvent:
    reported = Reported(f"e{number}", service, "live", "subroutine", "f", 0.0, 10.0, 0.1, 0.2)
    return AnsweredEvent(reported, right, passed)


def passed(step: str, statistic: float, bound: float = 1.0) -> Decision:
    return Decision(step, True, statistic, bound)


@pytest.mark.parametrize(
    ("state", "cause", "right"),
    [
        (None, False, None),
        ("acknowledged", False, None),
        ("acknowledged", True, True),
        (None, True, True),
        ("true", False, True),
        ("expected", False, True),
        ("fixed", False, True),
        ("false", False, False),
        ("false", True, False),
        ("cost-shift", False, False),
        ("duplicate", False, False),
    ],
)
def test_what_counts_as_right(state: VerdictKind | None, cause: bool, right: bool | None) -> None:
    said = Verdict("e", "shop", state, 1.0) if state else None
    named = Verdict("e", "shop", "cause", 1.0, subject="c") if cause else None
    assert is_right(said, named) is right


@pytest.mark.parametrize(("hits", "of"), [(0, 1), (1, 1), (0, 20), (7, 20), (20, 20), (999, 1000)])
def test_intervals_are_wilsons(hits: int, of: int) -> None:
    low, high = binomtest(hits, of).proportion_ci(method="wilson")
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-6)


def test_of_nothing_nothing_is_known() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert precision_table([]) == ()


def test_events_count_in_all_and_in_each_group() -> None:
    table = precision_table(
        [
            judged(1, True, passed("threshold", 4.0), service="shop"),
            judged(2, False, passed("threshold", 1.1), passed("went_away", 0.0), service="shop"),
            judged(3, True, passed("threshold", 0.2), service="cart"),
            judged(4, False, service="cart"),
        ]
    )
    assert {(one.by, one.name): (one.right.hits, one.right.of) for one in table} == {
        ("all", ""): (2, 4),
        ("service", "cart"): (1, 2),
        ("service", "shop"): (1, 2),
        ("workload", "live"): (2, 4),
        ("step", "threshold"): (2, 3),
        ("step, near its bound", "threshold"): (0, 1),
        ("step", "went_away"): (0, 1),
    }
