"""One event per cause across scans, workloads and restarts: dedup and rootcause over every store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipeline.codec.events import decode_event
from pipeline.codec.scans import decode_scan
from pipeline.model import Candidate, Record, Scan
from pipeline.stages.dedup import DedupStage
from pipeline.stages.rootcause import RootcauseStage
from pipeline.storage.interface import Store
from pipeline.workloads import Workload, load_workloads
from tests.builders import build_candidate
from tests.contract.rows import gcpu, stacks, totals

START = 1_700_000_000.0
(LIVE,) = load_workloads(["live"])
OTHER = LIVE.model_copy(update={"name": "other"})
CHANGE = 50
"""The second from which on ``lib.parse`` costs more in all three callers."""

BEFORE = {"main/cart.total/lib.parse": 40, "main/cart.tax/lib.parse": 40, "main/shop.list/lib.parse": 40}
STEADY = {"main/shop.page": 800, "main/shop.sort": 80}


class Pipeline:
    """The last two stages over a service whose stacks are given second by second."""

    def __init__(self, store: Store, service: str) -> None:
        self.store, self.service = store, service
        self.restart()
        rows = []
        for second in range(120):
            counts = {**STEADY, **{name: n * (1 + (second >= CHANGE)) for name, n in BEFORE.items()}}
            rows += [(tuple(name.split("/")), START + second, n) for name, n in counts.items()]
        store.insert("stacks", stacks(service, rows, width=1))
        store.insert("totals", totals(service, [(START + s, 1000 + 120 * (s >= CHANGE)) for s in range(120)]))
        store.insert("gcpu", gcpu(service, [("main", START + s, 1000) for s in range(120)]))

    def restart(self) -> None:
        self.dedup = DedupStage(store=self.store, workloads=[LIVE, OTHER])
        self.rootcause = RootcauseStage(store=self.store, workloads=[LIVE, OTHER])

    def scan(self, second: float, *candidates: Candidate, workload: Workload = LIVE) -> Scan:
        end = START + second
        return Scan(
            service=self.service,
            workload=workload.name,
            start=end - 50,
            analysis_start=end - 20,
            analysis_end=end - 5,
            end=end,
            series=5,
            candidates=candidates,
        )

    def run(self, *scans: Scan) -> list[dict[str, Any]]:
        """Hand scans over one by one and return the events."""
        events = []
        for scan in scans:
            messages = self.dedup.handle([Record("filtered", 0, 0, scan)])
            unique = [Record("unique", 0, i, decode_scan(m.value)) for i, m in enumerate(messages)]
            events += [decode_event(message.value) for message in self.rootcause.handle(unique)]
        return events


@pytest.fixture
def pipeline(store: Store, service_name: str) -> Pipeline:
    return Pipeline(store, service_name)


def caller(name: str, *, at: float = CHANGE) -> Candidate:
    return build_candidate(name, before=0.04, after=0.0714, change_time=START + at)


def told(events: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"].rsplit(".", 1)[1], event["subject"]) for event in events]


def test_callers_of_one_regressed_subroutine_are_one_event(pipeline: Pipeline) -> None:
    (event,) = pipeline.run(pipeline.scan(65, caller("cart.total"), caller("cart.tax")))
    assert {event["subject"], *(member["metric"] for member in event["data"]["group"])} == {
        "cart.total",
        "cart.tax",
    }


def test_one_that_is_found_later_joins_and_is_told_as_an_update(pipeline: Pipeline) -> None:
    detected, updated = pipeline.run(
        pipeline.scan(65, caller("cart.total"), caller("cart.tax")),
        pipeline.scan(70, caller("shop.list")),
    )
    assert updated["type"] == "smidgen.regression.updated"
    assert updated["data"]["regression"] == detected["id"]
    assert [member["metric"] for member in updated["data"]["joined"]] == ["shop.list"]
    (row,) = pipeline.store.rows("ledger", pipeline.service, START, START + 1e3, metric="shop.list")
    assert row["step"] == "pairwise_dedup"
    assert "cart." in row["reason"]


def test_what_another_workload_sees_of_it_is_no_news(pipeline: Pipeline) -> None:
    (event,) = pipeline.run(
        pipeline.scan(65, caller("cart.total")),
        pipeline.scan(66, caller("cart.total"), workload=OTHER),
    )
    assert event["type"] == "smidgen.regression.detected"


def test_another_workload_finds_another_part_of_it(pipeline: Pipeline) -> None:
    detected, updated = pipeline.run(
        pipeline.scan(65, caller("cart.total")),
        pipeline.scan(66, caller("cart.tax"), workload=OTHER),
    )
    assert updated["data"]["regression"] == detected["id"]


def test_restarts_between_scans_and_replays_change_nothing(pipeline: Pipeline, service_name: str) -> None:
    scans = [
        pipeline.scan(65, caller("cart.total")),
        pipeline.scan(70, caller("shop.list")),
        pipeline.scan(75, caller("cart.tax")),
    ]
    first = pipeline.run(*scans)
    assert told(first) == [("detected", "cart.total"), ("updated", "cart.total"), ("updated", "cart.total")]
    again = []
    for scan in scans:
        pipeline.restart()
        again += pipeline.run(scan)
        pipeline.restart()
        again += pipeline.run(scan)
    assert again == [event for event in first for _ in range(2)]


def test_growth_of_what_joined_later_is_told_as_well(pipeline: Pipeline) -> None:
    first = pipeline.run(
        pipeline.scan(65, caller("cart.total")),
        pipeline.scan(70, caller("shop.list")),
    )
    scan = pipeline.scan(80)
    grown = build_candidate("shop.list", before=0.04, after=0.15, change_time=START + 70)
    message = pipeline.dedup.handle([Record("filtered", 0, 0, scan)])[0]
    unique = decode_scan(message.value)
    (event,) = [
        decode_event(m.value)
        for m in pipeline.rootcause.handle([Record("unique", 0, 0, replace(unique, grown=(grown,)))])
    ]
    assert event["data"]["regression"] == first[0]["id"]
    assert event["data"]["grown"]["metric"] == "shop.list"


def test_an_event_that_cannot_be_read_stops_nothing(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    (event,) = pipeline.run(pipeline.scan(65, caller("cart.total")))
    (row,) = pipeline.store.rows("regressions", pipeline.service, START - 1e3, START + 1e3)
    columns = {name: [value] for name, value in row.items() if name != "inserted"}
    pipeline.store.insert("regressions", {**columns, "event": ['{"data": {}}']})
    assert pipeline.run(pipeline.scan(70)) == []
    assert event["id"] in caplog.text
