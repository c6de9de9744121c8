"""One event per cause across scans, workloads and restarts: dedup and rootcause over every store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipeline.codec.events import decode_event
from pipeline.codec.scans import decode_scan
from pipeline.detect.cycle import DAY_S
from pipeline.model import Candidate, Record, Scan
from pipeline.stages.dedup import DedupStage
from pipeline.stages.rootcause import RootcauseStage
from pipeline.storage.interface import Store
from pipeline.workloads import Rule, Workload, load_workloads
from tests.builders import build_candidate
from tests.contract.rows import change, gcpu, stacks, totals

START = 1_700_000_000.0
(LIVE,) = load_workloads(["live"])
OTHER = LIVE.model_copy(update={"name": "other"})
CHANGE = 50
"""The second from which on ``lib.parse`` costs more in all three callers."""

BEFORE = {"main/cart.total/lib.parse": 40, "main/cart.tax/lib.parse": 40, "main/shop.list/lib.parse": 40}
STEADY = {"main/shop.page": 800, "main/shop.sort": 80}


class Pipeline:
    """The last two stages over a service whose stacks are given second by second."""

    before = BEFORE

    def levels(self, second: int) -> int:
        """Return what ``before`` is multiplied by."""
        return 1 + (second >= CHANGE)

    def counts(self, second: int) -> dict[str, int]:
        """Return the samples of each stack."""
        return {**STEADY, **{name: n * self.levels(second) for name, n in self.before.items()}}

    def __init__(self, store: Store, service: str) -> None:
        self.store, self.service = store, service
        self.restart()
        seconds = [self.counts(second) for second in range(120)]
        rows = [
            (tuple(name.split("/")), START + second, n)
            for second, counts in enumerate(seconds)
            for name, n in counts.items()
        ]
        store.insert("stacks", stacks(service, rows, width=1))
        sums = [(START + second, sum(counts.values())) for second, counts in enumerate(seconds)]
        store.insert("totals", totals(service, sums))
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


class Growing(Pipeline):
    """``lib.parse`` costs twice as much from ``CHANGE`` on, and four times as much 30 seconds later."""

    def levels(self, second: int) -> int:
        return 1 + (second >= CHANGE) + 2 * (second >= CHANGE + 30)


def risen_again(name: str) -> Candidate:
    return build_candidate(name, before=0.0714, after=0.1176, change_time=START + CHANGE + 30)


def test_what_goes_on_rising_is_told_as_growth(store: Store, service_name: str) -> None:
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


def test_what_a_change_makes_rise_anew_is_told_by_itself(store: Store, service_name: str) -> None:
    pipeline = Growing(store, service_name)
    store.insert(
        "changes", change(service_name, "D2", START + CHANGE + 29, subroutines=["lib.parse"], files=[])
    )
    events = pipeline.run(
        pipeline.scan(65, caller("cart.total")), pipeline.scan(95, risen_again("cart.total"))
    )
    assert told(events) == [("detected", "cart.total"), ("detected", "cart.total")]


class Below(Pipeline):
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
    pipeline = Below(store, service_name)
    view = build_candidate("shop.view", before=0.1, after=0.2, change_time=START + CHANGE)
    events = pipeline.run(
        pipeline.scan(65, caller("lib.slow")), pipeline.scan(70, replace(view, p_value=p_value))
    )
    assert [kind for kind, _ in told(events)] == kinds
    rows = store.rows("ledger", service_name, START, START + 1e3, metric="shop.view")
    reasons = [row["reason"] for row in rows if row["step"] == "pairwise_dedup" and row["reason"]]
    expected = "hardly more than what rises below it: lib.slow, told before"
    assert reasons == ([expected] if "updated" in kinds else [])


class Anew(Pipeline):
    """``lib.parse`` costs a little more from the first day on, and far more from the third day on."""

    workload = load_workloads(["frontfaas-small"])[0]
    width = 600.0

    def __init__(self, store: Store, service: str, *, share: float) -> None:
        self.store, self.service = store, service
        self.dedup = DedupStage(store=store, workloads=[self.workload])
        self.rootcause = RootcauseStage(store=store, workloads=[self.workload])
        times = [START + self.width * place for place in range(4 * 144)]
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
    assert [kind for kind, _ in told(events)] == kinds


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


def test_a_release_found_later_belongs_to_the_part_that_was_told_first(
    store: Store, service_name: str
) -> None:
    pipeline = Release(store, service_name)
    detected, updated = pipeline.run(
        pipeline.scan(65, caller("f0")), pipeline.scan(70, caller("f1"), caller("f2"), caller("f3"))
    )
    assert updated["data"]["regression"] == detected["id"]


def test_two_parts_of_a_large_release_are_told_apart(store: Store, service_name: str) -> None:
    pipeline = Release(store, service_name)
    events = pipeline.run(pipeline.scan(65, caller("f0")), pipeline.scan(70, caller("f3")))
    assert told(events) == [("detected", "f0"), ("detected", "f3")]


def test_what_a_rule_links_within_one_scan_is_one_event(store: Store, service_name: str) -> None:
    rules = (Rule(metric_id=0.02),)
    pipeline = Release(store, service_name)
    pipeline.dedup = DedupStage(store=store, workloads=[LIVE.model_copy(update={"merge_rules": rules})])
    (event,) = pipeline.run(pipeline.scan(65, caller("part.first"), caller("part.second")))
    assert [member["metric"] for member in event["data"]["group"]] == ["part.second"]
    (row,) = store.rows("ledger", service_name, START, START + 1e3, metric="part.second")
    assert (row["step"], row["reason"]) == ("pairwise_dedup", "named like part.first")


class Nested(Pipeline):
    """``shop.view`` costs more from ``CHANGE`` on, and ``lib.slow`` below it from twelve seconds later on."""

    before = {"main/shop.view/lib.slow": 40}
    since = CHANGE + 12

    def __init__(self, store: Store, service: str) -> None:
        super().__init__(store, service)
        counts = [self.counts(second) for second in range(120)]
        views = [sum(n for stack, n in one.items() if "shop.view" in stack) for one in counts]
        store.insert("gcpu", gcpu(service, [("shop.view", START + s, n) for s, n in enumerate(views)]))

    def levels(self, second: int) -> int:
        return 1 + 5 * (second >= self.since)

    def counts(self, second: int) -> dict[str, int]:
        return {**super().counts(second), "main/shop.view/shop.draw": 80 + 60 * (second >= CHANGE)}


def view() -> Candidate:
    return build_candidate("shop.view", before=0.12, after=0.17, change_time=START + CHANGE)


def slow() -> Candidate:
    return build_candidate("lib.slow", before=0.04, after=0.19, change_time=START + Nested.since)


def modified(service: str, name: str) -> dict[str, Any]:
    return change(service, "D2", START + Nested.since - 1, subroutines=[name], files=[])


@pytest.mark.parametrize(
    ("scanned", "culprit", "kinds"),
    [
        pytest.param(
            60, "lib.slow", ["detected", "detected"], id="its caller was told when it had not begun"
        ),
        pytest.param(60, "lib.fast", ["detected", "updated"], id="without a change that modified it"),
        pytest.param(66, "lib.slow", ["detected", "updated"], id="its caller was told while it had begun"),
    ],
)
def test_a_step_below_a_regression_that_had_risen_before(
    store: Store, service_name: str, scanned: float, culprit: str, kinds: list[str]
) -> None:
    pipeline = Nested(store, service_name)
    store.insert("changes", modified(service_name, culprit))
    events = pipeline.run(pipeline.scan(scanned, view()), pipeline.scan(76, slow()))
    assert [kind for kind, _ in told(events)] == kinds


def test_what_is_told_when_first_seen_may_be_dated_early(store: Store, service_name: str) -> None:
    # Nothing had risen by half of it between its time and that of the step: it was the step's first sight.
    pipeline = Nested(store, service_name)
    store.insert("changes", modified(service_name, "lib.slow"))
    early = replace(view(), change_time=START + CHANGE - 2, before=0.15, after=0.30)
    events = pipeline.run(pipeline.scan(60, early), pipeline.scan(76, slow()))
    assert [kind for kind, _ in told(events)] == ["detected", "updated"]


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        pytest.param(0.40, ["detected", "detected"], id="by more than twice as much: another one"),
        pytest.param(0.22, ["detected", "updated"], id="by less: it grows"),
    ],
)
def test_a_series_that_steps_again(store: Store, service_name: str, after: float, kinds: list[str]) -> None:
    pipeline = Nested(store, service_name)
    store.insert("changes", modified(service_name, "lib.slow"))
    first = build_candidate("shop.view", before=0.12, after=0.17, change_time=START + CHANGE)
    again = build_candidate("shop.view", before=0.17, after=after, change_time=START + Nested.since)
    events = pipeline.run(pipeline.scan(60, first), pipeline.scan(76, again))
    assert [kind for kind, _ in told(events)] == kinds


class Behind(Pipeline):
    """``lib.new`` below ``cart.total`` costs far more from twelve seconds after ``CHANGE`` on."""

    since = CHANGE + 12

    def counts(self, second: int) -> dict[str, int]:
        return {**super().counts(second), "main/cart.total/lib.new": 10 + 190 * (second >= self.since)}


def test_a_new_cause_behind_a_member_of_a_group_is_another_regression(
    store: Store, service_name: str
) -> None:
    pipeline = Behind(store, service_name)
    new = build_candidate("lib.new", before=0.01, after=0.15, change_time=START + Behind.since)
    events = pipeline.run(
        pipeline.scan(61, caller("lib.parse")),
        pipeline.scan(62, caller("cart.total")),
        pipeline.scan(76, new),
    )
    assert told(events) == [("detected", "lib.parse"), ("updated", "lib.parse"), ("detected", "lib.new")]


class Called(Pipeline):
    """What ``shop.view`` calls costs more from ``CHANGE`` on: all of it alike, or one part of it."""

    before = {"main/shop.view/lib.slow": 40}
    drawing = (80, 160)

    def counts(self, second: int) -> dict[str, int]:
        return {**super().counts(second), "main/shop.view/shop.draw": self.drawing[second >= CHANGE]}


@pytest.mark.parametrize(
    ("drawing", "kinds"),
    [
        pytest.param((80, 160), ["detected"], id="as all that its known caller calls"),
        pytest.param((160, 150), ["detected", "updated"], id="by itself"),
    ],
)
def test_a_slow_rise_below_a_known_caller(
    store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
    drawing: tuple[int, int],
    kinds: list[str],
) -> None:
    monkeypatch.setattr(Called, "drawing", drawing)
    pipeline = Called(store, service_name)
    known = build_candidate("shop.view", before=0.1, after=0.2, change_time=START + CHANGE)
    rise = build_candidate("lib.slow", before=0.04, after=0.08, change_time=START + CHANGE)
    events = pipeline.run(pipeline.scan(65, known), pipeline.scan(76, replace(rise, kind="long_term")))
    assert [kind for kind, _ in told(events)] == kinds
