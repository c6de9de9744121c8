"""Updates of a regression after its report by the last stage: over every store, replayed, restarted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.messages.events import DETECTED, RESOLVED, UPDATED, decode_event
from pipeline.messages.ledger import entry_from_row
from pipeline.model import Candidate, FloatArray, Record, Scan
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.lifecycle import FOLLOW_S
from pipeline.stages.rootcause import RootcauseStage
from pipeline.storage.interface import RowQuery, Store
from tests.contract.rows import change, gcpu, metrics, totals
from tests.contract.stages.stores import every_store
from tests.support.builders import build_candidate, build_decision, build_dropped
from tests.support.fleets import LIVE

START = 1_700_000_000.0
LATENCY = LIVE.model_copy(update={"name": "latency", "series": "service"})
EVERY = (START - 1e6, START + 1e7)

SLOW = build_candidate("cart.tax", before=0.10, after=0.20, change_time=START + 50)


class Scans:
    """The last stage over a service whose series are given second by second."""

    def __init__(self, store: Store, service: str, workload: Workload = LIVE) -> None:
        self.store = store
        self.service = service
        self.workload = workload
        self.restart()

    def restart(self) -> None:
        self.stage = RootcauseStage(store=self.store, workloads=[LIVE, LATENCY])

    def fill(self, name: str, shares: FloatArray) -> None:
        """Store a series from START on, one window a second, a thousand samples each."""
        counts = np.random.default_rng(len(name)).binomial(1000, shares).tolist()
        rows = [(name, START + second, count) for second, count in enumerate(counts) if count]
        self.store.insert("gcpu", gcpu(self.service, rows))

    def fill_totals(self, seconds: int) -> None:
        self.store.insert("totals", totals(self.service, [(START + s, 1000) for s in range(seconds)]))

    def at(self, second: float, *candidates: Candidate, grown: Sequence[Candidate] = ()) -> Scan:
        """The scan that ends at a second."""
        end = START + second
        return Scan(
            service=self.service,
            workload=self.workload.name,
            start=end - 50,
            analysis_start=end - 20,
            analysis_end=end - 5,
            end=end,
            series=2,
            candidates=candidates,
            dropped=tuple(build_dropped(one, "same_regression", 0.1, 0.2, "known") for one in grown),
            grown=tuple(grown),
        )

    def run(self, *scans: Scan) -> list[dict[str, Any]]:
        """Hand scans over as one batch and return the events."""
        records = [Record("unique", 0, offset, scan) for offset, scan in enumerate(scans)]
        return [decode_event(message.value) for message in self.stage.handle(records)]


def shares(*spans: tuple[int, float]) -> FloatArray:
    return np.concatenate([np.full(seconds, share) for seconds, share in spans])


@pytest.fixture
def scans(store: Store, service_name: str) -> Scans:
    made = Scans(store, service_name)
    made.fill("cart.tax", shares((50, 0.1), (30, 0.2), (60, 0.1)))
    made.fill_totals(140)
    return made


def types(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"].rsplit(".", 1)[1] for event in events]


# Resolved


def test_what_was_rolled_back_is_resolved_once(scans: Scans) -> None:
    (detected,) = scans.run(scans.at(60, SLOW))
    found = [event for second in range(65, 140, 5) for event in scans.run(scans.at(second))]
    (event,) = found
    assert (event["type"], event["subject"]) == (RESOLVED, "cart.tax")
    data = event["data"]
    assert data["regression"] == detected["id"]
    assert (data["before"], data["after"]) == (0.10, 0.20)
    assert data["level"] == pytest.approx(0.10, abs=0.01)
    assert data["share_remaining"] == pytest.approx(0.0, abs=0.1)
    assert data["regression_time"] == detected["data"]["change_time"]
    assert data["change_time"][:19] == "2023-11-14T22:14:40"  # 80 seconds after the start
    assert data["detected_time"][:19] in {"2023-11-14T22:15:00", "2023-11-14T22:15:05"}
    (row,) = scans.store.rows(RowQuery("updates", scans.service, *EVERY))
    assert (row["id"], row["type"], row["regression"]) == (event["id"], "resolved", detected["id"])


def test_one_batch_of_many_scans_shows_the_same_as_one_by_one(store: Store, service_name: str) -> None:
    reported = []
    for name in ("one", "many"):
        made = Scans(store, f"{service_name}-{name}")
        made.fill("cart.tax", shares((50, 0.1), (30, 0.2), (60, 0.1)))
        made.fill_totals(140)
        every = [made.at(60, SLOW), *(made.at(second) for second in range(65, 140, 5))]
        events = made.run(*every) if name == "many" else [e for scan in every for e in made.run(scan)]
        reported.append(
            [
                (event["type"], event["time"], event["data"]["level" if i else "after"])
                for i, event in enumerate(events)
            ]
        )
    assert reported[0] == reported[1]
    assert len(reported[0]) == 2


@every_store
def test_a_replay_after_a_restart_repeats_the_same_events(scans: Scans) -> None:
    every = [scans.at(60, SLOW), *(scans.at(second) for second in range(65, 140, 5))]
    first = scans.run(*every)
    scans.restart()
    again = [event for scan in every for event in scans.run(scan)]
    assert again == first
    assert types(first) == ["detected", "resolved"]
    assert len(scans.store.rows(RowQuery("updates", scans.service, *EVERY))) == 1


def test_what_lasts_is_not_resolved(store: Store, service_name: str) -> None:
    made = Scans(store, service_name)
    made.fill("cart.tax", shares((50, 0.1), (90, 0.2)))
    made.fill_totals(140)
    assert types(made.run(made.at(60, SLOW), *(made.at(second) for second in range(65, 140, 5)))) == [
        "detected"
    ]


def test_silence_is_no_return_but_a_subroutine_without_samples_is(store: Store, service_name: str) -> None:
    for name, sampled, expected in (("silent", 80, []), ("gone", 140, ["resolved"])):
        made = Scans(store, f"{service_name}-{name}")
        made.fill("cart.tax", shares((50, 0.1), (30, 0.2)))
        made.fill_totals(sampled)
        every = [made.at(60, SLOW), *(made.at(second) for second in range(65, 140, 5))]
        assert types(made.run(*every)) == ["detected", *expected], name


def test_a_share_that_others_have_moved_has_not_returned(store: Store, service_name: str) -> None:
    """Something new takes half of the CPU, so that the share of everything else is halved."""
    made = Scans(store, service_name)
    made.fill("cart.tax", shares((50, 0.1), (30, 0.2), (60, 0.1)))
    made.fill_totals(140)
    every = [made.at(60, SLOW), *(made.at(second) for second in range(65, 140, 5))]
    peers = [
        (f"peer.{number:03}", START + second, 8 if second < 80 else 4)
        for number in range(120)
        for second in range(140)
    ]
    store.insert("gcpu", gcpu(service_name, peers))
    assert types(made.run(*every)) == ["detected"]


@every_store
def test_a_service_level_metric_resolves_and_its_gaps_say_nothing(store: Store, service_name: str) -> None:
    level = shares((50, 100.0), (30, 120.0), (60, 100.0))
    noise = np.random.default_rng(1).normal(0, 2, len(level))
    points = [("p50", START + s, v) for s, v in enumerate((level + noise).tolist())]
    slow = replace(SLOW, metric_kind="service", metric="p50", before=100.0, after=120.0)
    for name, known, expected in (("gap", 80, []), ("whole", 140, ["resolved"])):
        made = Scans(store, f"{service_name}-{name}", LATENCY)
        every = [made.at(60, slow), *(made.at(second) for second in range(65, 140, 5))]
        store.insert("metrics", metrics(made.service, points[:known]))
        assert types(made.run(*every)) == ["detected", *expected], name


def test_the_change_that_fixed_it_is_named(scans: Scans) -> None:
    for number, second, modified in (
        ("fix", 78, "cart.tax"),
        ("other", 79, "search"),
        ("old", 20, "cart.tax"),
    ):
        scans.store.insert("changes", change(scans.service, number, START + second, subroutines=[modified]))
    events = scans.run(scans.at(60, SLOW), *(scans.at(second) for second in range(65, 140, 5)))
    assert [one["id"] for one in events[1]["data"]["resolved_by"]] == ["fix"]


def test_other_workloads_and_services_are_none_of_its_business(scans: Scans) -> None:
    scans.run(scans.at(60, SLOW))
    other = Scans(scans.store, scans.service, LATENCY)
    assert other.run(*(other.at(second) for second in range(65, 140, 5))) == []


def test_after_a_month_a_regression_is_followed_no_more(scans: Scans) -> None:
    old = replace(SLOW, change_time=START + 130 - FOLLOW_S - 1)
    scans.run(scans.at(60, old))
    assert scans.run(scans.at(130)) == []


def test_an_unknown_workload_is_not_followed(scans: Scans) -> None:
    scans.run(scans.at(60, SLOW))
    scans.stage = RootcauseStage(store=scans.store, workloads=[])
    assert scans.run(scans.at(130)) == []


# Updated

ESCALATED = replace(SLOW, change_time=START + 70, before=0.20, after=0.30)


def test_what_grows_is_reported_once(scans: Scans) -> None:
    (detected,) = scans.run(scans.at(60, SLOW))
    (event,) = scans.run(scans.at(80, grown=[ESCALATED]))
    assert (event["type"], event["data"]["regression"]) == (UPDATED, detected["id"])
    data = event["data"]
    assert (data["before"], data["after"], data["level"]) == (0.10, 0.20, 0.30)
    assert data["share_remaining"] == pytest.approx(2.0)
    assert (data["grown"]["metric"], data["grown"]["before"], data["grown"]["after"]) == (
        "cart.tax",
        0.20,
        0.30,
    )
    # The next scan still sees it; another step further is news again.
    assert scans.run(scans.at(85, grown=[replace(ESCALATED, after=0.31)])) == []
    (further,) = scans.run(scans.at(90, grown=[replace(ESCALATED, after=0.41)]))
    assert further["data"]["grown"]["before"] == 0.30
    scans.restart()
    assert scans.run(scans.at(80, grown=[ESCALATED])) == [event]


def test_what_grows_by_too_little_is_not_reported(scans: Scans) -> None:
    scans.run(scans.at(60, SLOW))
    assert scans.run(scans.at(80, grown=[replace(ESCALATED, after=0.24)])) == []


def test_a_regression_of_which_several_series_grow_is_reported_once(scans: Scans) -> None:
    caller = replace(SLOW, metric="cart.price", before=0.3, after=0.4)
    scans.fill("cart.price", shares((50, 0.3), (30, 0.4), (60, 0.6)))
    scans.run(scans.at(60, replace(SLOW, group=(caller,))))
    larger = replace(caller, change_time=START + 70, before=0.4, after=0.6)
    (event,) = scans.run(scans.at(85, grown=[larger, ESCALATED]))
    assert (event["data"]["level"], event["data"]["grown"]["metric"]) == (0.30, "cart.tax")
    # Of a member that grew alone, the level of the regression's own metric is read from the store.
    alone = replace(larger, change_time=START + 85)
    (other,) = scans.run(scans.at(95, grown=[alone]))
    assert other["data"]["grown"]["metric"] == "cart.price"
    assert other["data"]["level"] == pytest.approx(0.10, abs=0.01)
    # Once the regression's own metric has returned, it is over.
    assert types(scans.run(scans.at(110, grown=[replace(alone, after=0.9)]))) == ["resolved"]


@pytest.mark.parametrize(
    "grown",
    [
        pytest.param(replace(ESCALATED, metric="search"), id="another series"),
        pytest.param(replace(ESCALATED, metric_kind="endpoint"), id="another kind of series"),
        pytest.param(replace(ESCALATED, before=0.30, after=0.05), id="the other way"),
    ],
)
def test_what_belongs_to_no_open_regression_is_not_reported(scans: Scans, grown: Candidate) -> None:
    scans.run(scans.at(60, SLOW))
    assert scans.run(scans.at(80, grown=[grown])) == []


def test_what_is_resolved_grows_no_more(scans: Scans) -> None:
    events = scans.run(scans.at(60, SLOW), *(scans.at(second) for second in range(65, 130, 5)))
    assert types(events) == ["detected", "resolved"]
    assert scans.run(scans.at(135, grown=[ESCALATED])) == []


def test_what_comes_back_is_a_new_regression_with_an_end_of_its_own(scans: Scans) -> None:
    scans.run(scans.at(60, SLOW), *(scans.at(second) for second in range(65, 130, 5)))
    (again,) = scans.run(scans.at(130, replace(SLOW, change_time=START + 120)))
    assert again["type"] == DETECTED
    (event,) = scans.run(scans.at(138, grown=[replace(ESCALATED, change_time=START + 130)]))
    assert event["data"]["regression"] == again["id"]


# The ledger


@every_store
def test_every_candidate_of_a_scan_lands_in_the_ledger(scans: Scans) -> None:
    trail = (build_decision("went_away", 0.9, 0.5), build_decision("threshold", 0.1, 0.03, "large"))
    reported = replace(SLOW, passed=trail)
    lost = build_dropped(
        build_candidate("search", change_time=START + 45), "threshold", 0.01, 0.03, "too small"
    )
    scan = replace(scans.at(60, reported), dropped=(lost,))
    for _ in range(2):
        (event,) = scans.run(scan, scans.at(65))
    rows = {row["metric"]: row for row in scans.store.rows(RowQuery("ledger", scans.service, *EVERY))}
    assert set(rows) == {"cart.tax", "search"}
    assert (rows["cart.tax"]["id"], rows["cart.tax"]["step"]) == (event["id"], "")
    assert entry_from_row(rows["cart.tax"]).candidate == reported
    found = entry_from_row(rows["search"])
    assert found.dropped == build_decision("threshold", 0.01, 0.03, "too small", passed=False)
    assert (found.scan.start, found.scan.analysis_start, found.scan.analysis_end, found.scan.end) == (
        START + 10,
        START + 40,
        START + 55,
        START + 60,
    )


def test_a_scan_without_candidates_leaves_no_trace(scans: Scans) -> None:
    assert scans.run(scans.at(60)) == []
    assert scans.store.rows(RowQuery("ledger", scans.service, *EVERY)) == []
