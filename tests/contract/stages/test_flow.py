"""The five stages on profiles: events, scans and counts of a service whose mix of stacks changes.

Decisions are those of a real store, message by message, as test_backtest_equals_streaming shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pipeline.backtest.flow import Flow
from pipeline.messages.events import DETECTED, RESOLVED
from pipeline.messages.inputs import encode_change
from pipeline.messages.measurements import encode_metric_points, encode_profile
from pipeline.model import MetricPoints, Record, Scan
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import RowQuery, SeriesQuery, Store
from tests.contract.stages.stores import every_store
from tests.support.builders import build_change, build_profile
from tests.support.fleets import LIVE

START = 1_700_000_000.0
SETTINGS = Settings.model_validate({"window": 1, "stack_window": 1})

BASE = {
    "main;serve;pages.render": 0.25,
    "main;serve;pages.render;escape": 0.05,
    "main;serve;cart.price": 0.10,
    "main;serve;cart.price;cart.tax": 0.10,
    "main;serve;search.find": 0.20,
    "main;loop": 0.30,
}
SLOWER = {**BASE, "main;serve;cart.price;cart.tax": 0.19}
EXTRACTED = {**BASE, "main;serve;pages.render": 0.13, "main;serve;pages.render;pages.rows": 0.12}


class Service:
    """Draws the profiles of a service whose mix of stacks changes at given seconds."""

    def __init__(self, flow: Flow, name: str, seed: int = 1) -> None:
        self.flow = flow
        self.name = name
        self._rng = np.random.default_rng(seed)
        self._second = 0

    def run(self, seconds: int, mix: Mapping[str, float], *, samples: int = 1000, partition: int = 0) -> None:
        share = np.array(list(mix.values()))
        profiles = []
        for _ in range(seconds):
            counts = self._rng.multinomial(samples, share / share.sum())
            stacks = {stack: int(n) for stack, n in zip(mix, counts, strict=True)}
            profiles.append(build_profile(stacks, service=self.name, start=START + self._second))
            self._second += 1
        for first in range(0, seconds, 10):
            batch = [encode_profile(profile) for profile in profiles[first : first + 10]]
            self.flow.send("profiles", batch, partition=partition)

    def deploy(self, change: str, *subroutines: str) -> None:
        built = build_change(change, subroutines, time=START + self._second, service=self.name)
        self.flow.send("changes", [encode_change(built)])


@pytest.fixture
def flow(store: Store, service_name: str) -> Flow:
    return Flow(store, [LIVE], settings=SETTINGS, clock=lambda: START + 500, stream=service_name)


def steps(scans: list[Scan]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for scan in scans:
        for line in scan.dropped:
            found.setdefault(line.decision.step, []).append(line.candidate.metric)
    return found


def the_event(flow: Flow) -> dict[str, Any]:
    (event,) = flow.events()
    data = event["data"]
    assert isinstance(data, dict)
    return data


def test_a_slow_change_is_reported_once_with_its_subroutine_and_cause(flow: Flow, service_name: str) -> None:
    service = Service(flow, service_name)
    service.run(50, BASE)
    service.deploy("harmless", "search.find")
    service.run(10, BASE)
    service.deploy("slow", "cart.tax")
    service.run(45, SLOWER)
    data = the_event(flow)
    assert (data["metric"], data["metric_kind"], data["kind"]) == ("cart.tax", "subroutine", "short_term")
    assert data["before"] == pytest.approx(0.10, abs=0.02)
    assert data["after"] == pytest.approx(0.19 / 1.09, abs=0.03)
    assert "cart.price" in {member["metric"] for member in data["group"]}
    assert data["root_causes"][0]["change"]["id"] == "slow"
    assert data["root_causes"][0]["factors"]["attribution"] == pytest.approx(1.0)
    (row,) = flow.store.rows(RowQuery("regressions", service_name, START, START + 500))
    assert (row["id"], row["metric"]) == (flow.events()[0]["id"], "cart.tax")


def test_a_pure_refactoring_is_silent(flow: Flow, service_name: str) -> None:
    service = Service(flow, service_name)
    service.run(50, BASE)
    service.deploy("extract", "pages.render", "pages.rows")
    service.run(45, EXTRACTED)
    assert flow.events() == []
    assert "pages.rows" in steps(flow.scans("unique"))["cost_shift"]


def test_a_spike_is_silent(flow: Flow, service_name: str) -> None:
    service = Service(flow, service_name)
    service.run(50, BASE)
    service.run(3, {**BASE, "main;serve;search.find": 0.8})
    service.run(40, BASE)
    assert flow.events() == []


@pytest.mark.parametrize("seed", range(4))
def test_a_steady_service_is_silent(flow: Flow, service_name: str, seed: int) -> None:
    Service(flow, service_name, seed).run(150, BASE)
    assert flow.events() == []
    assert len(flow.scans("unique")) == len(flow.scans("change-points")) > 20


def test_a_regression_that_returns_after_a_rollback_is_reported_again(flow: Flow, service_name: str) -> None:
    service = Service(flow, service_name)
    service.run(50, BASE)
    service.run(20, SLOWER)
    service.run(20, BASE)
    service.run(40, SLOWER)
    reported = [(event["type"], event["data"]["metric"]) for event in flow.events()]
    assert reported == [(DETECTED, "cart.tax"), (RESOLVED, "cart.tax"), (DETECTED, "cart.tax")]


def test_the_funnel_adds_up(flow: Flow, service_name: str) -> None:
    service = Service(flow, service_name)
    service.run(50, BASE)
    service.run(40, SLOWER)
    for first, last in zip(flow.scans("change-points"), flow.scans("unique"), strict=True):
        assert (first.end, first.series) == (last.end, last.series)
        assert len(first.candidates) == len(last.candidates) + len(last.dropped)


def test_scans_lie_on_the_rerun_grid_and_none_is_left_out(flow: Flow, service_name: str) -> None:
    Service(flow, service_name).run(60, BASE)
    ends = [scan.end for scan in flow.scans("change-points")]
    assert ends == [START + 5 * k for k in range(1, len(ends) + 1)]
    assert ends[-1] >= START + 50


@pytest.mark.parametrize("stage", ["aggregate", "detect", "filter", "dedup", "rootcause"])
def test_a_restarted_stage_changes_nothing(flow: Flow, service_name: str, stage: str) -> None:
    service = Service(flow, service_name)
    service.run(50, BASE)
    service.deploy("slow", "cart.tax")
    for _ in range(15):
        service.run(3, SLOWER)
        flow.restart(stage)
    assert the_event(flow)["metric"] == "cart.tax"
    ends = [scan.end for scan in flow.scans("change-points")]
    assert ends == sorted(set(ends))


def test_the_same_input_gives_the_same_events(store: Store, service_name: str) -> None:
    ids = []
    for stream in ("one", "other"):
        flow = Flow(store, [LIVE], settings=SETTINGS, clock=lambda: START + 500, stream=stream + service_name)
        service = Service(flow, f"{service_name}-{stream}")
        service.run(50, BASE)
        service.run(30, SLOWER)
        ids.append([(e["data"]["metric"], e["data"]["change_time"]) for e in flow.events()])
    assert ids[0] == ids[1] != []


@every_store
def test_late_data_is_counted(flow: Flow, service_name: str, store: Store) -> None:
    service = Service(flow, service_name)
    service.run(10, BASE)
    late = build_profile({"main;late": 7}, service=service_name, start=START + 2)
    flow.send("profiles", [encode_profile(late)], partition=1)
    matrix = store.series(SeriesQuery("gcpu", service_name, START, START + 10, 1.0))
    assert matrix.samples[matrix.names.index("late")].tolist() == [0, 0, 7, 0, 0, 0, 0, 0, 0, 0]
    assert matrix.totals.tolist() == [1000, 1000, 1007, *[1000] * 7]


def test_a_scan_waits_for_the_slowest_partition(flow: Flow, service_name: str) -> None:
    ahead, behind = Service(flow, service_name, 1), Service(flow, service_name, 2)
    ahead.run(1, BASE, partition=0)
    behind.run(1, BASE, partition=1)
    ahead.run(30, BASE, partition=0)
    assert flow.scans("change-points") == []
    behind.run(12, BASE, partition=1)
    assert [scan.end for scan in flow.scans("change-points")] == [START + 5, START + 10]


def test_a_drop_of_a_service_level_metric_is_reported(store: Store, service_name: str) -> None:
    workload = Workload.model_validate(
        {
            "name": "throughput",
            "series": "service",
            "direction": "down",
            "resolution": "1s",
            "rerun_interval": "5s",
            "historical": "30s",
            "analysis": "15s",
            "extended": "5s",
            "threshold": {"relative": 0.05},
        }
    )
    flow = Flow(store, [workload], settings=SETTINGS, clock=lambda: START + 500, stream=service_name)
    rng = np.random.default_rng(3)
    for second in range(100):
        level = 100.0 if second < 60 else 80.0
        points = MetricPoints(
            service_name, "throughput", np.array([START + second + 0.5]), np.array([rng.normal(level, 2)])
        )
        setup = MetricPoints(
            service_name, "algorithm", points.timestamps, np.array([math.floor(second / 60)]), setup=True
        )
        flow.send("metrics", [encode_metric_points(points), encode_metric_points(setup)])
    data = the_event(flow)
    assert (data["metric"], data["metric_kind"]) == ("throughput", "service")
    assert data["relative"] == pytest.approx(-0.2, abs=0.04)


@every_store
def test_a_replayed_message_is_counted_once(flow: Flow, service_name: str, store: Store) -> None:
    stage = flow.stages["aggregate"]
    value = encode_profile(build_profile({"main;work": 5}, service=service_name, start=START))
    records = [Record("profiles", 0, offset, stage.inputs["profiles"](value)) for offset in range(3)]
    stage.handle(records[:2])
    flow.restart("aggregate")
    flow.stages["aggregate"].handle(records)
    assert store.series(SeriesQuery("gcpu", service_name, START, START + 1, 1.0)).totals.tolist() == [15]
