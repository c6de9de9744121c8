"""Regressions that are not joined to one reported before, though their stacks or their times are near."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.messages.scans import decode_scan
from pipeline.model import Candidate, Record
from pipeline.model.steps import sentence
from pipeline.stages.dedup import DedupStage
from pipeline.stages.rootcause import RootcauseStage
from pipeline.storage.interface import Store
from tests.contract.group_pipeline import CHANGE, OTHER, START, Pipeline, caller, reported
from tests.contract.rows import change, gcpu, metrics
from tests.contract.stages.stores import every_store
from tests.support.builders import build_candidate
from tests.support.fleets import LIVE


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
    ("scanned", "cause", "kinds"),
    [
        pytest.param(
            60, "lib.slow", ["detected", "detected"], id="its caller was reported when it had not begun"
        ),
        pytest.param(60, "lib.fast", ["detected", "updated"], id="without a change that modified it"),
        pytest.param(
            66, "lib.slow", ["detected", "updated"], id="its caller was reported while it had begun"
        ),
    ],
)
def test_a_step_under_a_regression_that_had_risen_before(
    store: Store, service_name: str, scanned: float, cause: str, kinds: list[str]
) -> None:
    pipeline = Nested(store, service_name)
    store.insert("changes", modified(service_name, cause))
    events = pipeline.run(pipeline.scan(scanned, view()), pipeline.scan(76, slow()))
    assert [kind for kind, _ in reported(events)] == kinds


def test_what_is_reported_when_first_seen_may_be_dated_early(store: Store, service_name: str) -> None:
    # Nothing had risen by half of it between its time and that of the step: it was the step's first sight.
    pipeline = Nested(store, service_name)
    store.insert("changes", modified(service_name, "lib.slow"))
    early = replace(view(), change_time=START + CHANGE - 2, before=0.15, after=0.30)
    events = pipeline.run(pipeline.scan(60, early), pipeline.scan(76, slow()))
    assert [kind for kind, _ in reported(events)] == ["detected", "updated"]


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
    assert [kind for kind, _ in reported(events)] == kinds


def test_what_grew_just_before_a_step_under_it_had_risen_when_first_reported(
    store: Store, service_name: str
) -> None:
    # What joined last is not half risen when the step begins, as growth is dated by chance.
    pipeline = Nested(store, service_name)
    store.insert("changes", modified(service_name, "lib.slow"))
    growth = replace(view(), change_time=START + Nested.since - 3, before=0.17, after=0.20)
    events = pipeline.run(pipeline.scan(60, view()), pipeline.scan(64, growth), pipeline.scan(76, slow()))
    assert [kind for kind, _ in reported(events)] == ["detected", "updated", "detected"]


class Little(Nested):
    """What ``lib.slow`` costs more is a small part of what ``shop.view`` does."""

    since = CHANGE + 2

    def levels(self, second: int) -> int:
        return 1 + (second >= self.since)


@pytest.mark.parametrize(
    ("causes", "kinds"),
    [
        pytest.param(["lib.slow"], ["detected", "updated"], id="one of them was modified"),
        pytest.param(["lib.slow", "shop.view"], ["detected", "updated"], id="both were"),
    ],
)
def test_what_rises_in_step_with_its_caller_is_called_more_often(
    store: Store, service_name: str, causes: list[str], kinds: list[str]
) -> None:
    pipeline = Little(store, service_name)
    for number, name in enumerate(causes):
        moment = START + (CHANGE, Little.since)[name == "lib.slow"] - 1
        store.insert("changes", change(service_name, f"D{number}", moment, subroutines=[name], files=[]))
    small = replace(slow(), after=0.07, change_time=START + Little.since)
    events = pipeline.run(pipeline.scan(66, view()), pipeline.scan(70, small))
    assert [kind for kind, _ in reported(events)] == kinds


class Called(Pipeline):
    """What ``shop.view`` calls costs more from ``CHANGE`` on: all of it in step, or one part of it."""

    before = {"main/shop.view/lib.slow": 40}
    drawing = (80, 160)

    def counts(self, second: int) -> dict[str, int]:
        return {**super().counts(second), "main/shop.view/shop.draw": self.drawing[second >= CHANGE]}


@pytest.mark.parametrize(
    ("drawing", "kinds"),
    [
        pytest.param((80, 160), ["detected", "updated"], id="as all that its known caller calls"),
        pytest.param((160, 150), ["detected", "updated"], id="by itself"),
    ],
)
def test_a_slow_rise_under_a_known_caller(
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
    assert [kind for kind, _ in reported(events)] == kinds


@every_store
def test_what_another_workload_saw_of_the_first_step_changes_nothing(store: Store, service_name: str) -> None:
    pipeline = Nested(store, service_name)
    store.insert("changes", modified(service_name, "lib.slow"))
    again = build_candidate("shop.view", before=0.17, after=0.40, change_time=START + Nested.since)
    events = pipeline.run(
        pipeline.scan(60, view()), pipeline.scan(66, view(), workload=OTHER), pipeline.scan(76, again)
    )
    assert reported(events) == [("detected", "shop.view"), ("detected", "shop.view")]


class Shared(Pipeline):
    """``lib.parse`` costs twice as much below one of its two callers, the smaller one."""

    before = {"main/cart.total/lib.parse": 40}

    def counts(self, second: int) -> dict[str, int]:
        return {**super().counts(second), "main/shop.list/lib.parse": 400}


def test_a_slow_caller_of_a_known_regression_that_others_call_too(store: Store, service_name: str) -> None:
    pipeline = Shared(store, service_name)
    known = build_candidate("lib.parse", before=0.33, after=0.36, change_time=START + CHANGE)
    rise = build_candidate("cart.total", before=0.03, after=0.06, change_time=START + CHANGE)
    events = pipeline.run(pipeline.scan(65, known), pipeline.scan(76, replace(rise, kind="long_term")))
    assert reported(events) == [("detected", "lib.parse"), ("updated", "lib.parse")]


class Again(Pipeline):
    """What had stepped at ``CHANGE`` rises once more, by as much and far later."""

    later = CHANGE + 45

    def levels(self, second: int) -> int:
        return super().levels(second) + (second >= self.later)


def test_a_slow_rise_is_not_held_against_a_step_before_the_stacks_it_is_judged_by(
    store: Store, service_name: str
) -> None:
    pipeline = Again(store, service_name)
    rise = build_candidate("cart.total", before=0.071, after=0.1, change_time=START + Again.later)
    events = pipeline.run(
        pipeline.scan(65, caller("lib.parse")), pipeline.scan(115, replace(rise, kind="long_term"))
    )
    assert reported(events) == [("detected", "lib.parse"), ("updated", "lib.parse")]


class Inner(Nested):
    """``lib.slow`` is called by ``shop.part``, and that one by ``shop.view``."""

    before = {"main/shop.view/shop.part/lib.slow": 40}


def test_what_steps_anew_within_a_new_group_is_not_what_was_reported(store: Store, service_name: str) -> None:
    pipeline = Inner(store, service_name)
    store.insert("changes", modified(service_name, "shop.part"))
    again = build_candidate("shop.view", before=0.17, after=0.34, change_time=START + Nested.since)
    part = replace(slow(), metric="shop.part")
    events = pipeline.run(pipeline.scan(60, view()), pipeline.scan(76, again, part))
    assert reported(events) == [("detected", "shop.view"), ("detected", "shop.part")]


class Released(Pipeline):
    """``lib.slow`` below two callers, and two others that share nothing with it."""

    before = {"main/shop.view/shop.part/lib.slow": 40, "main/shop.cart": 40, "main/shop.list": 40}


@pytest.mark.parametrize(
    ("cause", "kinds"),
    [
        pytest.param("lib.slow", ["detected", "updated"], id="the regression of a group"),
        pytest.param("shop.part", ["detected", "detected", "detected"], id="a caller on its way to it"),
    ],
)
def test_a_group_is_of_the_release_of_what_nothing_under_explains(
    store: Store, service_name: str, cause: str, kinds: list[str]
) -> None:
    pipeline = Released(store, service_name)
    for number, name in enumerate([cause, "shop.cart", "shop.list"]):
        row = change(service_name, f"D{number}", START + CHANGE - 1, subroutines=[name], files=[])
        store.insert("changes", row)
    events = pipeline.run(
        pipeline.scan(65, caller("lib.slow"), caller("shop.view")),
        pipeline.scan(70, caller("shop.cart"), caller("shop.list")),
    )
    assert [kind for kind, _ in reported(events)] == kinds


class Same(Pipeline):
    """Three subroutines, of which none calls another."""

    before = {"main/a": 40, "main/b": 40, "main/c": 40}


def test_what_one_change_modified_is_found_later_and_later(store: Store, service_name: str) -> None:
    pipeline = Same(store, service_name)
    patient = LIVE.model_copy(update={"change_lookback_s": 40.0})
    pipeline.dedup = DedupStage(store=store, workloads=[patient])
    row = change(service_name, "D1", START + CHANGE - 5, subroutines=["a", "b", "c"], files=[])
    store.insert("changes", row)
    late = [(70, "a", -4), (75, "b", 5), (80, "c", 14)]
    events = pipeline.run(*(pipeline.scan(at, caller(name, at=CHANGE + by)) for at, name, by in late))
    assert [kind for kind, _ in reported(events)] == ["detected", "updated", "updated"]


def test_a_root_cause_that_is_found_last_is_that_of_the_event(store: Store, service_name: str) -> None:
    pipeline = Pipeline(store, service_name)
    late = [(70, "cart.total", -8), (75, "cart.tax", 0), (76, "lib.parse", 8)]
    events = pipeline.run(*(pipeline.scan(at, caller(name, at=CHANGE + by)) for at, name, by in late))
    assert [kind for kind, _ in reported(events)] == ["detected", "updated", "updated"]


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a regression of gCPU"])
def test_metrics_join_those_that_joined(store: Store, service_name: str, beside: bool) -> None:
    # The second moves with the first, the third with the second, and less with the first.
    pipeline = Pipeline(store, service_name)
    service = LIVE.model_copy(update={"name": "service", "series": "service"})
    pipeline.dedup = DedupStage(store=store, workloads=[LIVE, service])
    pipeline.rootcause = RootcauseStage(store=store, workloads=[LIVE, service])
    one, other = np.random.default_rng(0).normal(0, 1, (2, 120))
    names = {"lat_a": 0.0, "lat_b": 0.33, "lat_c": 0.66}
    for name, angle in names.items():
        values = 100 + 10 * (one * np.cos(angle) + other * np.sin(angle))
        rows = [(name, START + second, float(value)) for second, value in enumerate(values)]
        store.insert("metrics", metrics(service_name, rows))
    scans = [pipeline.scan(64, caller("shop.list"))] if beside else []
    for number, name in enumerate(names):
        found = build_candidate(name, before=100.0, after=130.0, change_time=START + CHANGE)
        scan = pipeline.scan(65 + 5 * number, replace(found, metric_kind="service"), workload=service)
        scans.append(scan)
    # What begins in CPU and in latency at once is one event, by its first symptom.
    first = "shop.list" if beside else "lat_a"
    events = reported(pipeline.run(*scans))
    assert events == [("detected", first), *[("updated", first)] * (3 if beside else 2)]


@every_store
def test_the_ledger_names_the_regression_of_the_event_not_what_joined_it(
    store: Store, service_name: str
) -> None:
    pipeline = Pipeline(store, service_name)
    pipeline.run(
        pipeline.scan(65, caller("lib.parse")), pipeline.scan(66, caller("cart.total", at=CHANGE - 2))
    )
    scan = pipeline.scan(67, caller("cart.tax"))
    (message,) = pipeline.dedup.handle([Record("filtered", 0, 0, scan)])
    (dropped,) = decode_scan(message.value).dropped
    assert "lib.parse, reported before" in sentence(dropped.decision)
