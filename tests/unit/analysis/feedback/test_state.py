"""States of events: the latest verdict of anybody, with a confirmed cause beside it."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from pipeline.analysis.feedback import Reported, confirmed_causes, fix_state, latest_verdicts, original_of
from pipeline.model import Verdict

SAID = (
    Verdict("e1", "shop", "true", 10, "ada"),
    Verdict("e1", "shop", "fixed", 20, "ben"),
    Verdict("e1", "shop", "cause", 30, "ada", subject="c1"),
    Verdict("e2", "shop", "acknowledged", 20, "ada"),
    Verdict("e2", "shop", "false", 20, "ben"),
)


def test_the_latest_counts_in_whatever_order_verdicts_come() -> None:
    for said in permutations(SAID):
        assert {event: one.verdict for event, one in latest_verdicts(said).items()} == {
            "e1": "fixed",
            "e2": "false",
        }
        assert {event: one.subject for event, one in confirmed_causes(said).items()} == {"e1": "c1"}


def test_nothing_said_is_no_state() -> None:
    assert latest_verdicts([]) == confirmed_causes([]) == {}


@pytest.mark.parametrize(
    ("pairs", "event", "original"),
    [
        pytest.param({}, "a", "a", id="of none"),
        pytest.param({"b": "a"}, "b", "a", id="of one"),
        pytest.param({"c": "b", "b": "a"}, "c", "a", id="of one that is of one"),
        pytest.param({"a": "b", "b": "a"}, "b", "a", id="of each other"),
        pytest.param({"d": "c", "c": "b", "b": "c"}, "d", "b", id="of two that are of each other"),
    ],
)
def test_one_event_stands_for_its_duplicates(pairs: dict[str, str], event: str, original: str) -> None:
    states = {one: Verdict(one, "shop", "duplicate", 1, subject=other) for one, other in pairs.items()}
    assert original_of(event, states) == original


FIXED = Verdict("e1", "shop", "fixed", 100.0)
REPORTED = Reported("e1", "shop", "live", "subroutine", "f", 10.0, 20.0, 0.1, 0.2)


@pytest.mark.parametrize(
    ("resolved", "last_scan", "state"),
    [
        (None, 159.0, "waiting"),
        (None, 160.0, "contradicted"),
        (150.0, 155.0, "confirmed"),
        (500.0, 600.0, "confirmed"),
        (90.0, 95.0, "confirmed"),
    ],
)
def test_a_repair_is_seen_or_contradicted(resolved: float | None, last_scan: float, state: str) -> None:
    assert fix_state(FIXED, replace(REPORTED, resolved_time=resolved), last_scan, 60.0) == state
