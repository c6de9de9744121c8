"""Expectations and mutes in the last stage: over every store, replayed, restarted, to their end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.messages.inputs import change_to_row, silence_of_row, silence_to_row
from pipeline.messages.ledger import entry_from_row
from pipeline.messages.records import columns_of
from pipeline.model import Candidate, Change, ExpectedCost, Joined, Scan, Silence
from pipeline.storage.interface import RowQuery, Store
from tests.contract.rows import stacks
from tests.contract.stages.stores import every_store
from tests.contract.stages.test_following import EVERY, LATENCY, START, Scans, shares, types
from tests.support.builders import build_candidate

SLOW = build_candidate("cart.tax", before=0.10, after=0.20, change_time=START + 50, statistic=900.0)
MUTED = Silence("m1", "", "muted", START, START, START + 100, owner="ada", subroutine="cart.*")
EXPECTED = Silence("e1", "", "expected", START, START, subroutine="cart.tax", cost=0.12)


@pytest.fixture
def scans(store: Store, service_name: str) -> Scans:
    """A service whose ``cart.tax`` rises at 50 s to stay."""
    made = Scans(store, service_name)
    made.fill("cart.tax", shares((50, 0.1), (150, 0.2)))
    made.fill_totals(200)
    return made


def say(scans: Scans, silence: Silence, **changes: Any) -> Silence:
    said = replace(silence, service=scans.service, **changes)
    scans.store.insert("silences", columns_of([silence_to_row(said)]))
    return said


def ends(scans: Scans) -> dict[str, str]:
    """Which step dropped each candidate; empty of a reported one."""
    rows = scans.store.rows(RowQuery("ledger", scans.service, *EVERY))
    return {row["metric"]: row["step"] for row in rows}


def later(scans: Scans, first: int, last: int) -> list[Scan]:
    return [scans.at(second) for second in range(first, last, 5)]


@every_store
def test_rows_come_back_as_they_were_said(scans: Scans) -> None:
    for silence in (MUTED, EXPECTED, replace(MUTED, id="m2", removed=START + 5, reason="Ünruhe")):
        said = say(scans, silence)
        (row,) = scans.store.rows(RowQuery("silences", scans.service, *EVERY, equal={"id": said.id}))
        assert silence_of_row(row) == said
    say(scans, MUTED, owner="bob")
    assert [
        row["owner"]
        for row in scans.store.rows(RowQuery("silences", scans.service, *EVERY, equal={"id": "m1"}))
    ] == ["bob"]


@every_store
def test_a_muted_regression_is_reported_once_when_the_mute_ends_and_it_is_still_there(scans: Scans) -> None:
    say(scans, MUTED)
    assert scans.run(scans.at(60, SLOW), *later(scans, 65, 100)) == []
    assert ends(scans) == {"cart.tax": "muted"}
    (event,) = scans.run(*later(scans, 100, 160))
    assert event["type"] == "smidgen.regression.detected"
    assert event["time"][:19] == "2023-11-14T22:15:00", "the first scan that ends with the mute, at 100 s"
    data = event["data"]
    assert (data["metric"], data["before"], data["after"]) == ("cart.tax", 0.1, 0.2)
    assert data["detected_time"] == event["time"]
    (silence,) = data["silences"]
    assert (silence["id"], silence["owner"], silence["kind"]) == ("m1", "ada", "muted")
    assert data["passed"][-1]["code"] == "ended"
    assert ends(scans) == {"cart.tax": ""}
    (row,) = scans.store.rows(RowQuery("ledger", scans.service, *EVERY))
    entry = entry_from_row(row)
    assert (entry.id, entry.dropped, entry.candidate.passed[-1].code) == (event["id"], None, "ended")


def test_a_replay_reports_the_same_at_the_same_time(scans: Scans) -> None:
    say(scans, MUTED)
    every = [scans.at(60, SLOW), *later(scans, 65, 160)]
    first = scans.run(*every)
    scans.restart()
    again = [event for scan in every for event in scans.run(scan)]
    assert again == first
    assert types(first) == ["detected"]


def test_what_was_reported_late_is_followed_as_any_other(store: Store, service_name: str) -> None:
    made = Scans(store, service_name)
    made.fill("cart.tax", shares((50, 0.1), (70, 0.2), (80, 0.1)))
    made.fill_totals(200)
    say(made, MUTED)
    events = made.run(made.at(60, SLOW), *later(made, 65, 200))
    assert types(events) == ["detected", "resolved"]
    assert events[1]["data"]["regression"] == events[0]["id"]


def test_nothing_is_published_of_what_came_and_went_muted(store: Store, service_name: str) -> None:
    made = Scans(store, service_name)
    made.fill("cart.tax", shares((50, 0.1), (20, 0.2), (130, 0.1)))
    made.fill_totals(200)
    say(made, MUTED)
    assert made.run(made.at(60, SLOW), *later(made, 65, 195)) == []
    states = [row["state"] for row in store.rows(RowQuery("silenced", made.service, *EVERY))]
    assert sorted(states) == ["gone", "muted"]


def test_what_is_gone_just_as_the_mute_ends_waits(store: Store, service_name: str) -> None:
    made = Scans(store, service_name)
    made.fill("cart.tax", shares((50, 0.1), (25, 0.2), (125, 0.1)))
    made.fill_totals(200)
    say(made, MUTED, end=START + 95)
    assert made.run(made.at(60, SLOW), *later(made, 65, 195)) == []


def test_a_mute_that_is_taken_back_ends_at_once(scans: Scans) -> None:
    say(scans, MUTED)
    assert scans.run(scans.at(60, SLOW)) == []
    say(scans, MUTED, removed=START + 70)
    assert scans.run(scans.at(65)) == []
    (event,) = scans.run(scans.at(70))
    assert event["data"]["passed"][-1]["code"] == "ended"


@pytest.mark.parametrize(
    "change",
    [{"subroutine": "shop.*"}, {"end": START + 55}, {"time": START + 61, "start": START}],
    ids=["another name", "ended before", "made later"],
)
def test_a_mute_of_something_else_changes_nothing(scans: Scans, change: dict[str, Any]) -> None:
    say(scans, MUTED, **change)
    (event,) = scans.run(scans.at(60, SLOW))
    assert "silences" not in event["data"]
    assert scans.store.rows(RowQuery("silenced", scans.service, *EVERY)) == []


def test_what_rises_beside_a_muted_subroutine_is_reported(scans: Scans) -> None:
    say(scans, MUTED, subroutine="cart.tax")
    member = build_candidate("cart.find", before=0.10, after=0.20, change_time=START + 50, statistic=900.0)
    scans.store.insert(
        "stacks",
        stacks(
            scans.service,
            [
                ((("main", name), START + second, 200 if second >= 50 else 100))
                for second in range(20, 60)
                for name in ("cart.tax", "cart.find")
            ]
            + [(("main",), START + second, 600 if second >= 50 else 800) for second in range(20, 60)],
            width=1.0,
        ),
    )
    (event,) = scans.run(scans.at(60, replace(SLOW, group=(member,))))
    assert event["data"]["passed"][-1]["subjects"] == ["m1", "ada", "cart.find"]


def test_what_joins_a_muted_regression_beside_the_mute_has_it_reported(scans: Scans) -> None:
    say(scans, MUTED, subroutine="cart.tax")
    scans.run(scans.at(60, SLOW))
    (row,) = scans.store.rows(RowQuery("silenced", scans.service, *EVERY))
    other = build_candidate("cart.find", before=0.10, after=0.30, change_time=START + 55, statistic=900.0)
    (event,) = scans.run(replace(scans.at(65), joined=(Joined(row["id"], other),)))
    assert event["id"] == row["id"]
    assert [member["metric"] for member in event["data"]["group"]] == ["cart.find"]
    assert event["data"]["passed"][-1]["code"] == "others"


def test_an_announced_cost_silences_just_that_much(scans: Scans) -> None:
    say(scans, EXPECTED)
    assert scans.run(scans.at(60, SLOW), *later(scans, 65, 160)) == []
    assert ends(scans) == {"cart.tax": "expected"}


def test_beyond_an_announced_cost_a_regression_is_reported_and_names_it(scans: Scans) -> None:
    say(scans, EXPECTED, cost=0.05)
    (event,) = scans.run(scans.at(60, SLOW))
    (silence,) = event["data"]["silences"]
    assert (silence["cost"], silence["total"]) == (0.05, pytest.approx(0.1))
    assert event["data"]["passed"][-1]["code"] == "beyond"
    assert types(scans.run(*later(scans, 65, 160))) == []


def test_what_grows_beyond_an_announced_cost_is_reported_then(scans: Scans) -> None:
    say(scans, EXPECTED)
    assert scans.run(scans.at(60, SLOW)) == []
    (row,) = scans.store.rows(RowQuery("silenced", scans.service, *EVERY))
    higher = build_candidate("cart.tax", before=0.20, after=0.35, change_time=START + 70)
    (event,) = scans.run(scans.at(80, grown=[higher]))
    assert (event["id"], event["data"]["after"]) == (row["id"], 0.35)
    assert event["data"]["delta"] == pytest.approx(0.25)
    assert event["data"]["passed"][-1]["code"] == "beyond"


def test_regressions_of_several_scans_use_up_one_cost(scans: Scans) -> None:
    say(scans, EXPECTED, subroutine="cart.*", cost=0.15)
    assert scans.run(scans.at(60, SLOW)) == []
    second = build_candidate("cart.find", before=0.10, after=0.18, change_time=START + 60, statistic=900.0)
    (event,) = scans.run(scans.at(70, second))
    assert event["subject"] == "cart.find"
    assert event["data"]["silences"][0]["total"] == pytest.approx(0.18)
    third = build_candidate("cart.sum", before=0.01, after=0.02, change_time=START + 65, statistic=900.0)
    assert types(scans.run(scans.at(75, third))) == ["detected"], "what was reported counts, too"


def test_an_expectation_that_is_taken_back_has_its_regressions_reported(scans: Scans) -> None:
    say(scans, EXPECTED)
    scans.run(scans.at(60, SLOW))
    say(scans, EXPECTED, removed=START + 64)
    (event,) = scans.run(scans.at(65))
    assert event["data"]["passed"][-1]["code"] == "removed"


@pytest.mark.parametrize(("cost", "silent"), [(0.15, True), (0.05, False)])
@every_store
def test_a_change_announces_what_it_may_cost(scans: Scans, cost: float, silent: bool) -> None:
    announced = Change(
        "c1", scans.service, START + 49, "Tax of gifts", "Ada", expected=(ExpectedCost(cost, "cart.*"),)
    )
    scans.store.insert("changes", columns_of([change_to_row(announced)]))
    events = scans.run(scans.at(60, SLOW))
    assert types(events) == ([] if silent else ["detected"])
    for event in events:
        (silence,) = event["data"]["silences"]
        assert (silence["id"], silence["change"], silence["owner"]) == ("c1", "c1", "Ada")


def test_the_workload_of_other_series_is_silenced_by_their_names(store: Store, service_name: str) -> None:
    made = Scans(store, service_name, LATENCY)
    say(made, MUTED, subroutine="latency*")
    found = Candidate("service", "latency_p99", "short_term", START + 50, 1.0, 2.0, 1e-9, 40.0)
    assert made.run(made.at(60, found)) == []
