"""States of events: the latest verdict of anybody, with a confirmed cause beside it."""

from __future__ import annotations

from itertools import permutations

from pipeline.feedback import confirmed_causes, latest_verdicts
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
