"""One event per cause across scans, workloads and restarts: dedup and rootcause over every store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.messages.events import decode_event
from pipeline.messages.scans import decode_scan
from pipeline.model import Candidate, Record, Scan
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import SimilarityRule, load_workloads
from pipeline.stages.dedup import DedupStage
from pipeline.stages.rootcause import RootcauseStage
from pipeline.storage.interface import RowQuery, Store
from tests.contract.group_pipeline import CHANGE, OTHER, START, Pipeline, caller, reported
from tests.contract.rows import change, gcpu, stacks, totals
from tests.contract.stages.stores import every_store
from tests.support.builders import build_candidate
from tests.support.fleets import LIVE


@pytest.fixture
def pipeline(store: Store, service_name: str) -> Pipeline:
    return Pipeline(store, service_name)


def test_callers_of_one_regressed_subroutine_are_one_event(pipeline: Pipeline) -> None:
    (event,) = pipeline.run(pipeline.scan(65, caller("cart.total"), caller("cart.tax")))
    assert {event["subject"], *(member["metric"] for member in event["data"]["group"])} == {
        "cart.total",
        "cart.tax",
    }


@every_store
def test_one_that_is_found_later_joins_and_is_reported_as_an_update(pipeline: Pipeline) -> None:
    detected, updated = pipeline.run(
        pipeline.scan(65, caller("cart.total"), caller("cart.tax")),
        pipeline.scan(70, caller("shop.list")),
    )
    assert updated["type"] == "smidgen.regression.updated"
    assert updated["data"]["regression"] == detected["id"]
    assert [member["metric"] for member in updated["data"]["joined"]] == ["shop.list"]
    (row,) = pipeline.store.rows(
        RowQuery("ledger", pipeline.service, START, START + 1e3, equal={"metric": "shop.list"})
    )
    assert row["step"] == "pairwise_dedup"
    assert "cart." in row["reason"]


def test_what_both_detectors_see_in_one_scan_is_one_event(pipeline: Pipeline) -> None:
    slow = replace(caller("lib.parse", at=CHANGE - 30), kind="long_term")
    (event,) = pipeline.run(pipeline.scan(65, slow, caller("lib.parse")))
    assert (event["type"], event["subject"]) == ("smidgen.regression.detected", "lib.parse")
    assert event["data"]["kind"] == "short_term"


def test_a_slow_caller_of_what_steps_in_the_same_scan_is_its_member(pipeline: Pipeline) -> None:
    slow = replace(caller("cart.total", at=CHANGE - 30), kind="long_term", after=0.12)
    (event,) = pipeline.run(pipeline.scan(65, slow, caller("lib.parse")))
    assert event["subject"] == "lib.parse"
    assert [member["metric"] for member in event["data"]["group"]] == ["cart.total"]


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


@every_store
def test_restarts_between_scans_and_replays_change_nothing(pipeline: Pipeline, service_name: str) -> None:
    scans = [
        pipeline.scan(65, caller("cart.total")),
        pipeline.scan(70, caller("shop.list")),
        pipeline.scan(75, caller("cart.tax")),
    ]
    first = pipeline.run(*scans)
    assert reported(first) == [
        ("detected", "cart.total"),
        ("updated", "cart.total"),
        ("updated", "cart.total"),
    ]
    again = []
    for scan in scans:
        pipeline.restart()
        again += pipeline.run(scan)
        pipeline.restart()
        again += pipeline.run(scan)
    assert again == [event for event in first for _ in range(2)]


def test_growth_of_what_joined_later_is_reported_as_well(pipeline: Pipeline) -> None:
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


@every_store
def test_an_event_that_cannot_be_read_stops_nothing(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    (event,) = pipeline.run(pipeline.scan(65, caller("cart.total")))
    (row,) = pipeline.store.rows(RowQuery("regressions", pipeline.service, START - 1e3, START + 1e3))
    columns = {name: [value] for name, value in row.items() if name != "inserted"}
    pipeline.store.insert("regressions", {**columns, "event": ['{"data": {}}']})
    assert pipeline.run(pipeline.scan(70)) == []
    assert event["id"] in caplog.text


class Growing(Pipeline):
    """``lib.parse`` costs twice as much from ``CHANGE`` on, and four times as much 30 seconds later."""

    def levels(self, second: int) -> int:
        return 1 + (second >= CHANGE) + 2 * (second >= CHANGE + 30)


def risen_again(name: str) -> Candidate:
    return build_candidate(name, before=0.0714, after=0.1176, change_time=START + CHANGE + 30)


def test_what_goes_on_rising_is_reported_as_growth(store: Store, service_name: str) -> None:
    pipeline = Growing(store, service_name)
    detected, updated = pipeline.run(
        pipeline.scan(65, caller("cart.total")), pipeline.scan(95, risen_again("cart.total"))
    )
    assert updated["type"] == "smidgen.regression.updated"
    assert updated["data"]["regression"] == detected["id"]
    assert updated["data"]["grown"]["metric"] == "cart.total"
    assert updated["data"]["level"] == pytest.approx(0.1176)


def test_what_goes_on_rising_takes_its_callers_along(store: Store, service_name: str) -> None:
    pipeline = Growing(store, service_name)
    parse = build_candidate("lib.parse", before=0.12, after=0.214, change_time=START + CHANGE)
    again = build_candidate("lib.parse", before=0.214, after=0.353, change_time=START + CHANGE + 30)
    detected, updated = pipeline.run(
        pipeline.scan(65, parse), pipeline.scan(95, risen_again("cart.total"), again)
    )
    assert updated["data"]["regression"] == detected["id"]
    assert updated["data"]["grown"]["metric"] == "lib.parse"


def test_what_a_change_makes_rise_anew_is_reported_by_itself(store: Store, service_name: str) -> None:
    pipeline = Growing(store, service_name)
    store.insert(
        "changes", change(service_name, "D2", START + CHANGE + 29, subroutines=["lib.parse"], files=[])
    )
    events = pipeline.run(
        pipeline.scan(65, caller("cart.total")), pipeline.scan(95, risen_again("cart.total"))
    )
    assert reported(events) == [("detected", "cart.total"), ("detected", "cart.total")]


class Descendant(Pipeline):
    """Of what ``shop.view`` rises by, two fifths come through ``lib.slow``."""

    before = {"main/shop.view/lib.slow": 40}

    def counts(self, second: int) -> dict[str, int]:
        drawing = 600 + 60 * (second >= CHANGE)
        return {**super().counts(second), "main/shop.view/shop.draw": drawing}


@pytest.mark.parametrize(
    ("p_value", "kinds"),
    [
        pytest.param(1e-5, ["detected", "updated"], id="the rest is no change point"),
        pytest.param(1e-30, ["detected", "detected"], id="the rest is one"),
    ],
)
def test_a_caller_that_hardly_rises_otherwise_is_no_news(
    store: Store, service_name: str, p_value: float, kinds: list[str]
) -> None:
    pipeline = Descendant(store, service_name)
    view = build_candidate("shop.view", before=0.1, after=0.2, change_time=START + CHANGE)
    events = pipeline.run(
        pipeline.scan(65, caller("lib.slow")), pipeline.scan(70, replace(view, p_value=p_value))
    )
    assert [kind for kind, _ in reported(events)] == kinds
    rows = store.rows(RowQuery("ledger", service_name, START, START + 1e3, equal={"metric": "shop.view"}))
    reasons = [row["reason"] for row in rows if row["step"] == "pairwise_dedup" and row["reason"]]
    expected = "hardly more than what rises below it: lib.slow, reported before"
    assert reasons == ([expected] if "updated" in kinds else [])


class Anew(Pipeline):
    """``lib.parse`` costs a little more from the first day on, and far more from the third day on."""

    workload = load_workloads(["frontfaas-small"])[0]
    width = 600.0

    def __init__(self, store: Store, service: str, *, share: float) -> None:
        self.store, self.service = store, service
        self.dedup = DedupStage(store=store, workloads=[self.workload])
        self.rootcause = RootcauseStage(store=store, workloads=[self.workload])
        times = [START + self.width * position for position in range(4 * 144)]
        costs = [round(1000 * (1 + 0.25 * (t >= self.first) + share * (t >= self.second))) for t in times]
        parse: tuple[str, ...] = ("main", "cart.total", "lib.parse")
        rows = [(parse, t, n) for t, n in zip(times, costs, strict=True)]
        rows += [(("main", "shop.page"), t, 20_000) for t in times]
        store.insert("stacks", stacks(service, rows, width=int(self.width)))
        store.insert("totals", totals(service, [(t, 20_000 + n) for t, n in zip(times, costs, strict=True)]))
        store.insert("gcpu", gcpu(service, [("main", t, 20_000) for t in times]))

    first, second = START + DAY_S, START + 3 * DAY_S

    def after(self, name: str, change_time: float, before: float, after: float) -> Scan:
        """Return the scan that finds a step eight hours later."""
        end = change_time + 8 * 3600
        return Scan(
            service=self.service,
            workload=self.workload.name,
            start=end - self.workload.span_s,
            analysis_start=end - self.workload.extended_s - self.workload.analysis_s,
            analysis_end=end - self.workload.extended_s,
            end=end,
            series=5,
            candidates=(build_candidate(name, before=before, after=after, change_time=change_time),),
        )


@pytest.mark.parametrize(
    ("share", "kinds"),
    [
        pytest.param(0.25, ["detected", "updated"], id="as much as it did: its caller, found late"),
        pytest.param(1.0, ["detected", "detected"], id="far more than it did: another cause"),
    ],
)
def test_what_steps_days_later_through_a_known_regression(
    store: Store, service_name: str, share: float, kinds: list[str]
) -> None:
    pipeline = Anew(store, service_name, share=share)
    events = pipeline.run(
        pipeline.after("lib.parse", pipeline.first, 0.048, 0.059),
        pipeline.after("cart.total", pipeline.second, 0.059, 0.059 + 0.048 * share),
    )
    assert [kind for kind, _ in reported(events)] == kinds


class Release(Pipeline):
    """Parts of one feature, ``f0`` to ``f3``, cost more from ``CHANGE`` on, each by a change of its own.

    The release has 36 other changes.
    """

    before = {**{f"main/f{number}": 40 for number in range(4)}, "main/part.first": 40, "main/part.second": 40}

    def __init__(self, store: Store, service: str) -> None:
        super().__init__(store, service)
        for number in range(40):
            row = change(service, f"D{number}", START + CHANGE, subroutines=[f"f{number}"], files=[])
            store.insert("changes", row)


def test_a_part_found_later_belongs_to_the_release_of_all_the_others(store: Store, service_name: str) -> None:
    pipeline = Release(store, service_name)
    detected, updated = pipeline.run(
        pipeline.scan(65, caller("f0"), caller("f1"), caller("f2")), pipeline.scan(70, caller("f3"))
    )
    assert len(detected["data"]["group"]) == 2
    assert updated["data"]["regression"] == detected["id"]
    assert [member["metric"] for member in updated["data"]["joined"]] == ["f3"]


def test_a_release_found_later_belongs_to_the_part_that_was_reported_first(
    store: Store, service_name: str
) -> None:
    pipeline = Release(store, service_name)
    detected, updated = pipeline.run(
        pipeline.scan(65, caller("f0")), pipeline.scan(70, caller("f1"), caller("f2"), caller("f3"))
    )
    assert updated["data"]["regression"] == detected["id"]


@pytest.mark.parametrize("own", [False, True], ids=["no other", "one of its own"])
def test_a_change_nearer_than_the_release_is_the_cause(store: Store, service_name: str, own: bool) -> None:
    # One of the release's changes modified it too, by chance.
    pipeline = Release(store, service_name)
    by_chance = change(service_name, "D50", START + CHANGE, subroutines=["part.first"], files=[])
    store.insert("changes", by_chance)
    if own:
        cause = change(service_name, "D51", START + CHANGE + 9, subroutines=["part.first"], files=[])
        store.insert("changes", cause)
    events = pipeline.run(
        pipeline.scan(65, caller("f0"), caller("f1"), caller("f2")),
        pipeline.scan(76, caller("part.first", at=CHANGE + 10)),
    )
    assert [kind for kind, _ in reported(events)] == ["detected", "detected" if own else "updated"]


@every_store
def test_two_parts_of_a_large_release_are_distinguished(store: Store, service_name: str) -> None:
    pipeline = Release(store, service_name)
    events = pipeline.run(pipeline.scan(65, caller("f0")), pipeline.scan(70, caller("f3")))
    assert reported(events) == [("detected", "f0"), ("detected", "f3")]


def test_what_a_rule_links_within_one_scan_is_one_event(store: Store, service_name: str) -> None:
    rules = (SimilarityRule(metric_id=0.02),)
    pipeline = Release(store, service_name)
    pipeline.dedup = DedupStage(store=store, workloads=[LIVE.model_copy(update={"merge_rules": rules})])
    (event,) = pipeline.run(pipeline.scan(65, caller("part.first"), caller("part.second")))
    assert [member["metric"] for member in event["data"]["group"]] == ["part.second"]
    (row,) = store.rows(RowQuery("ledger", service_name, START, START + 1e3, equal={"metric": "part.second"}))
    assert (row["step"], row["reason"]) == ("pairwise_dedup", "has a name like that of part.first")
