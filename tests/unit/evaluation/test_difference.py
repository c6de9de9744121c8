"""Which events of two runs are the same regression."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadgen.evaluation.difference import compare_events
from loadgen.evaluation.matching import Tolerances
from loadgen.evaluation.model import LedgerLine, ScoredEvent
from tests.unit.evaluation.test_scoring import HOUR, START, event

TOLERANCES = Tolerances(otherwise=4 * HOUR)

PAIRS = {
    "same id": (event("x", "shop.a"), event("x", "shop.zzz"), True),
    "same series, other scan": (event("x"), event("y", change_time=START + HOUR), True),
    "same group, other representative": (
        event("x", "shop.a", group=("shop.b",)),
        event("y", "shop.b", group=("shop.a",)),
        True,
    ),
    "too far apart": (event("x"), event("y", change_time=START + 5 * HOUR), False),
    "other series": (event("x"), event("y", "shop.b"), False),
    "other service": (event("x"), event("y", service="cart"), False),
    "other direction": (event("x"), event("y", delta=-0.001), False),
    "metric of the service": (event("x", "cpu"), event("y", "cpu", metric_kind="service"), False),
}


@pytest.mark.parametrize(("a", "b", "same"), [pytest.param(*pair, id=name) for name, pair in PAIRS.items()])
def test_two_events_are_one_regression(a: ScoredEvent, b: ScoredEvent, same: bool) -> None:
    found = compare_events([a], [b], tolerances=TOLERANCES)
    assert found.same is same
    assert len(found.both) == int(same)
    assert [lone.event for lone in found.only_a] == ([] if same else [a])
    assert [lone.event for lone in found.only_b] == ([] if same else [b])


def test_events_are_paired_one_to_one_and_the_closest_first() -> None:
    a = [event("a1"), event("a2", change_time=START + 2 * HOUR)]
    b = [event("b1", change_time=START + 2.2 * HOUR)]
    found = compare_events(a, b, tolerances=TOLERANCES)
    assert [(one.id, other.id) for one, other in found.both] == [("a2", "b1")]
    assert [lone.event.id for lone in found.only_a] == ["a1"]


def line(step: str, *, change_time: float = START, metric: str = "shop.a") -> LedgerLine:
    return LedgerLine(
        "shop", "w", START + HOUR, "subroutine", metric, change_time, 0.001, 0.01, step, 1.0, 2.0, ""
    )


LEDGERS = {
    "furthest step": ([line("threshold"), line("cost_shift"), line("went_away")], "cost_shift"),
    "in the group of another": (
        [replace(line("cost_shift", metric="shop.b"), group=("shop.a",))],
        "cost_shift",
    ),
    "another time": ([line("threshold", change_time=START + 5 * HOUR)], None),
    "another series": ([line("threshold", metric="shop.b")], None),
    "nothing": ([], None),
}


@pytest.mark.parametrize(("ledger", "step"), [pytest.param(*case, id=name) for name, case in LEDGERS.items()])
def test_the_other_ledger_shows_where_an_event_was_lost(ledger: list[LedgerLine], step: str | None) -> None:
    (lone,) = compare_events([event()], [], tolerances=TOLERANCES, ledger_b=ledger).only_a
    assert (lone.lost.step if lone.lost else None) == step
