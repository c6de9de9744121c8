"""Verdicts in the last stage: an expected regression stays silent to its end, duplicates follow the first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.messages.inputs import silence_to_row
from pipeline.messages.records import columns_of
from pipeline.messages.verdicts import verdict_to_row
from pipeline.model import CostMeasure, Silence, Verdict, VerdictKind
from pipeline.storage.interface import RowQuery, Store
from tests.contract.rows import metrics
from tests.contract.stages.stores import every_store
from tests.contract.stages.test_following import EVERY, LATENCY, START, Scans, shares, types
from tests.support.builders import build_candidate

SLOW = build_candidate("cart.tax", before=0.10, after=0.20, change_time=START + 50, statistic=900.0)
AGAIN = replace(SLOW, change_time=START + 130)


@pytest.fixture
def scans(store: Store, service_name: str) -> Scans:
    """A service whose ``cart.tax`` rises at 50 s, returns at 80 s, and rises once more at 130 s to stay."""
    made = Scans(store, service_name)
    made.fill("cart.tax", shares((50, 0.1), (30, 0.2), (50, 0.1), (90, 0.2)))
    made.fill_totals(220)
    return made


def answer(scans: Scans, event: dict[str, Any], verdict: VerdictKind, second: float, **own: Any) -> None:
    said = Verdict(event["id"], scans.service, verdict, START + second, own.pop("author", "ada"), **own)
    scans.store.insert("verdicts", columns_of([verdict_to_row(said)]))


def until_resolved(scans: Scans) -> dict[str, Any]:
    """Report the first rise and see it resolved; return its event."""
    (event,) = scans.run(scans.at(60, SLOW))
    assert types(scans.run(*(scans.at(second) for second in range(65, 130, 5)))) == ["resolved"]
    return event


@every_store
def test_what_was_expected_stays_silent_when_it_comes_again(scans: Scans) -> None:
    event = until_resolved(scans)
    answer(scans, event, "expected", 100, comment="nightly batch")
    assert scans.run(scans.at(140, AGAIN)) == []
    steps = {
        row["metric"]: row["step"] for row in scans.store.rows(RowQuery("ledger", scans.service, *EVERY))
    }
    assert steps == {"cart.tax": "expected"}
    (row,) = scans.store.rows(RowQuery("silenced", scans.service, *EVERY))
    assert row["silence"] == f"verdict-{event['id']}"


@pytest.mark.parametrize(
    ("verdict", "own"),
    [
        pytest.param("false", {}, id="a false one mutes nothing"),
        pytest.param("true", {}, id="nor does a true one"),
        pytest.param("expected", {"end": START + 120}, id="ended before it comes again"),
    ],
)
def test_what_is_not_expected_is_reported_again(scans: Scans, verdict: VerdictKind, own: Any) -> None:
    answer(scans, until_resolved(scans), verdict, 100, **own)
    assert types(scans.run(scans.at(140, AGAIN))) == ["detected"]


def test_what_goes_beyond_the_expected_cost_is_reported(scans: Scans) -> None:
    answer(scans, until_resolved(scans), "expected", 100)
    (event,) = scans.run(scans.at(140, replace(AGAIN, after=0.40)))
    (silence,) = event["data"]["silences"]
    assert (silence["cost"], silence["owner"]) == (pytest.approx(0.10), "ada")


@pytest.mark.parametrize(
    ("after", "reported"),
    [
        pytest.param(120.0, [], id="as much"),
        pytest.param(160.0, ["detected"], id="three times as much"),
    ],
)
def test_an_expected_metric_stays_silent_up_to_its_own_change(
    store: Store, service_name: str, after: float, reported: list[str]
) -> None:
    level = shares((50, 100.0), (30, 120.0), (50, 100.0), (90, after))
    noise = np.random.default_rng(1).normal(0, 2, len(level))
    made = Scans(store, service_name, LATENCY)
    points = [("p50", START + s, value) for s, value in enumerate((level + noise).tolist())]
    store.insert("metrics", metrics(service_name, points))
    slow = replace(SLOW, metric_kind="service", metric="p50", before=100.0, after=120.0)
    (event,) = made.run(made.at(60, slow))
    assert types(made.run(*(made.at(second) for second in range(65, 130, 5)))) == ["resolved"]
    answer(made, event, "expected", 100)
    again = made.run(made.at(140, replace(slow, change_time=START + 130, after=after)))
    assert types(again) == reported
    if again:
        (silence,) = again[0]["data"]["silences"]
        assert (silence["cost"], silence["total"]) == (pytest.approx(20.0), pytest.approx(60.0))
    (row,) = store.rows(RowQuery("silenced", service_name, *EVERY))
    assert (row["silence"], row["size"]) == (f"verdict-{event['id']}", pytest.approx(after - 100.0))


@pytest.mark.parametrize(
    ("after", "measure", "cost", "reported"),
    [
        pytest.param(120.0, "relative", 0.2, [], id="by so much of its level"),
        pytest.param(160.0, "relative", 0.2, ["detected"], id="by more of its level"),
        pytest.param(120.0, "metric", 20.0, [], id="by so much in its unit"),
        pytest.param(160.0, "metric", 20.0, ["detected"], id="by more in its unit"),
        pytest.param(120.0, "cpu", 1.0, ["detected"], id="a share of the CPU is another thing"),
    ],
)
def test_an_announced_change_of_a_metric_stays_silent(
    store: Store, service_name: str, after: float, measure: CostMeasure, cost: float, reported: list[str]
) -> None:
    made = Scans(store, service_name, LATENCY)
    noise = np.random.default_rng(1).normal(0, 2, 130)
    level = shares((50, 100.0), (80, after)) + noise
    points = [("p50", START + s, value) for s, value in enumerate(level.tolist())]
    store.insert("metrics", metrics(service_name, points))
    said = Silence("e1", service_name, "expected", START, START, subroutine="p*", cost=cost, measure=measure)
    store.insert("silences", columns_of([silence_to_row(said)]))
    slow = replace(SLOW, metric_kind="service", metric="p50", before=100.0, after=after)
    found = made.run(made.at(60, slow))
    assert types(found) == reported
    if found and measure != "cpu":
        (silence,) = found[0]["data"]["silences"]
        assert (silence["cost"], silence["total"]) == (pytest.approx(20.0), pytest.approx(60.0))


def test_a_scan_knows_nothing_of_what_is_said_after_it(scans: Scans) -> None:
    answer(scans, until_resolved(scans), "expected", 150)
    assert types(scans.run(scans.at(140, AGAIN))) == ["detected"]


def test_a_later_verdict_of_anybody_ends_the_expectation(scans: Scans) -> None:
    event = until_resolved(scans)
    answer(scans, event, "expected", 100)
    answer(scans, event, "true", 110, author="ben")
    assert types(scans.run(scans.at(140, AGAIN))) == ["detected"]


@pytest.fixture
def twins(store: Store, service_name: str) -> tuple[Scans, dict[str, Any], dict[str, Any]]:
    """A service with two events, whose series return together at 100 s."""
    made = Scans(store, service_name)
    made.fill("cart.tax", shares((50, 0.1), (50, 0.2), (100, 0.1)))
    made.fill("cart.vat", shares((55, 0.1), (45, 0.2), (100, 0.1)))
    made.fill_totals(200)
    other = build_candidate("cart.vat", before=0.10, after=0.20, change_time=START + 55)
    (first,) = made.run(made.at(60, SLOW))
    (second,) = made.run(made.at(65, other))
    return made, first, second


def test_two_events_resolve_by_themselves(twins: tuple[Scans, dict[str, Any], dict[str, Any]]) -> None:
    scans, first, second = twins
    resolved = scans.run(*(scans.at(second) for second in range(90, 160, 5)))
    assert {event["data"]["regression"] for event in resolved} == {first["id"], second["id"]}


def test_a_duplicate_resolves_with_the_first(twins: tuple[Scans, dict[str, Any], dict[str, Any]]) -> None:
    scans, first, second = twins
    answer(scans, second, "duplicate", 70, subject=first["id"])
    (resolved,) = scans.run(*(scans.at(second) for second in range(90, 160, 5)))
    assert resolved["data"]["regression"] == first["id"]


def test_what_escalates_in_a_duplicate_updates_the_first(
    twins: tuple[Scans, dict[str, Any], dict[str, Any]],
) -> None:
    scans, first, second = twins
    answer(scans, second, "duplicate", 70, subject=first["id"])
    grown = build_candidate("cart.vat", before=0.10, after=0.60, change_time=START + 72)
    (updated,) = scans.run(scans.at(85, grown=[grown]))
    assert (updated["data"]["regression"], updated["data"]["grown"]["metric"]) == (first["id"], "cart.vat")
