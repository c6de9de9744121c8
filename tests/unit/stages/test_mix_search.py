"""A scan at a constant mix of senders: what a drain moves is dropped, what a rollout brings is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadgen.fleet.scenario import Scenario, load_scenario
from loadgen.fleet.simulate import simulate
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.flow import Flow
from pipeline.messages.scans import encode_progress
from pipeline.model import Progress, Scan
from pipeline.model.clock import from_iso
from pipeline.model.units import DAY_S, HOUR_S
from pipeline.settings.config import Settings
from pipeline.settings.workloads import load_workloads
from pipeline.stages.ablation import NOTHING, Without
from pipeline.storage.arrays import ArrayStore

(WORKLOAD,) = load_workloads(("frontfaas-small",))
GRAPH = {"subroutines": 60, "endpoints": 5}


def scenario(name: str, **given: object) -> Scenario:
    """Return a small fleet of a preset's hosts, over the twelve days that one scan takes."""
    preset = load_scenario(name)
    small = preset.graph.model_copy(update=GRAPH)
    return preset.model_copy(update={"graph": small, "duration_s": 12 * DAY_S, "inject": (), **given})


def scan_of(dataset: Dataset, end: float, without: Without = NOTHING, stage: str = "detect") -> Scan:
    """Return one scan of a data set, as the stages up to one leave it."""
    stages = ("detect", "filter", "dedup")
    flow = Flow(
        ArrayStore(dataset),
        (WORKLOAD,),
        settings=Settings(),
        clock=lambda: dataset.end,
        stages=stages[: stages.index(stage) + 1],
        without=without,
    )
    at = end + WORKLOAD.wait_s
    progress = Progress(dataset.service, "profiles", 0, at, end - WORKLOAD.rerun_interval_s)
    flow.send("windows", [encode_progress(progress)])
    topic = {"detect": "change-points", "filter": "filtered", "dedup": "unique"}[stage]
    (scan,) = flow.scans(topic)
    return scan


@pytest.fixture(scope="module")
def drained() -> Dataset:
    """A region is drained at 0.77 of the time, for a day."""
    hosts = load_scenario("drained").hosts
    assert hosts is not None
    spread = hosts.model_copy(update={"spread": 0.3}) if hasattr(hosts, "spread") else hosts
    return simulate(scenario("drained", hosts=spread), 1).dataset


def test_what_a_drain_moves_is_dropped_with_its_numbers(drained: Dataset) -> None:
    end = drained.start + 0.77 * 12 * DAY_S // HOUR_S * HOUR_S + 14 * HOUR_S
    end -= (end - drained.start) % WORKLOAD.rerun_interval_s
    scan = scan_of(drained, end)
    moved = [one for one in scan.dropped if one.decision.step == "mix_shift"]
    assert moved
    for one in moved:
        assert one.decision.statistic < one.decision.bound
        assert one.decision.subjects
    plain = scan_of(drained, end, frozenset({"mix_shift"}))
    assert len(plain.candidates) > len(scan.candidates)
    assert not [one for one in plain.dropped if one.decision.step == "mix_shift"]


def with_one_step(name: str, **given: object) -> tuple[Dataset, float]:
    """Return a fleet of a preset's rollouts with one step of its kind, and when the first host had it."""
    (group,) = load_scenario(name).inject
    one = group.model_copy(update={"count": 1, **given})
    dataset = simulate(scenario(name, inject=(one,)), 3).dataset
    (row,) = (row for row in dataset.truth if row["kind"] == "regression")
    return replace(dataset, truth=(row,)), float(row["start"])


@pytest.fixture(scope="module")
def staged() -> tuple[Dataset, float]:
    """One step that comes in stages, and when it began."""
    return with_one_step("rollout-staged", delta=(0.01, 0.012), between=(0.88, 0.9))


def test_a_rollout_is_dated_at_its_first_stage(staged: tuple[Dataset, float]) -> None:
    dataset, start = staged
    end = start + 9 * HOUR_S
    end -= end % WORKLOAD.rerun_interval_s
    slow = dataset.truth[0]["subroutines"][0]
    found, without = (
        {one.metric: one for one in scan_of(dataset, end, which).candidates}
        for which in (NOTHING, frozenset({"release_effect"}))
    )
    assert abs(found[slow].change_time - start) <= 2 * WORKLOAD.resolution_s
    assert [one.subjects for one in found[slow].passed if one.step == "release_effect"]
    late = without.get(slow)
    assert late is None or abs(late.change_time - start) > 2 * WORKLOAD.resolution_s


@pytest.fixture(scope="module")
def canary() -> tuple[Dataset, float]:
    """One step that hours on one host of twenty hardly show, and when that host had it."""
    return with_one_step("rollout-canary", delta=(0.003, 0.0033), between=(0.86, 0.88))


def test_what_rose_with_a_rollout_is_dated_by_its_first_host_once_it_is_known_to_last(
    canary: tuple[Dataset, float],
) -> None:
    dataset, start = canary
    whole = dataset.truth[0]["stages"][-1][0]
    end = whole + 9 * HOUR_S
    end -= end % WORKLOAD.rerun_interval_s
    slow = dataset.truth[0]["subroutines"][0]
    found = {
        stage: {one.metric: one for one in scan_of(dataset, end, stage=stage).candidates}[slow]
        for stage in ("filter", "dedup")
    }
    codes = {
        stage: [(each.code, each.subjects) for each in one.passed if each.step == "release_effect"]
        for stage, one in found.items()
    }
    assert abs(found["filter"].change_time - whole) <= 2 * WORKLOAD.resolution_s
    ((code, (release, since)),) = codes["filter"]
    assert (code, abs(from_iso(since) - start) <= WORKLOAD.resolution_s) == ("brought", True)
    assert abs(found["dedup"].change_time - start) <= WORKLOAD.resolution_s
    assert codes["dedup"] == [("side_by_side", (release,))]


@pytest.fixture(scope="module")
def returned() -> tuple[Dataset, float]:
    """A region that is slower for a while is drained for a day; and when it returned."""
    preset = load_scenario("drained")
    assert preset.hosts is not None
    west = next(drain for drain in preset.hosts.drains if drain.region == "west")
    group = next(group for group in preset.inject if group.only)
    slower = group.model_copy(update={"count": 1, "delta": (0.01, 0.01), "between": (0.8, 0.81)})
    hosts = preset.hosts.model_copy(update={"drains": (west,)})
    dataset = simulate(scenario("drained", hosts=hosts, inject=(slower,)), 1).dataset
    return dataset, dataset.start + west.at * 12 * DAY_S + west.length_s


def test_what_returns_as_it_was_is_no_regression(returned: tuple[Dataset, float]) -> None:
    dataset, back = returned
    (row,) = (row for row in dataset.truth if row["kind"] == "regression")
    assert row["start"] < back - 1.5 * DAY_S
    end = back + 7 * HOUR_S
    end -= end % WORKLOAD.rerun_interval_s
    scan = scan_of(dataset, end, stage="dedup")
    usual = {one.candidate.metric for one in scan.dropped if one.decision.step == "within_strata"}
    assert row["subroutines"][0] in usual
    assert row["subroutines"][0] not in {one.metric for one in scan.candidates}
    without = scan_of(dataset, end, frozenset({"within_strata"}), stage="dedup")
    groups = [{one.metric, *(member.metric for member in one.group)} for one in without.candidates]
    assert any(row["subroutines"][0] in group for group in groups)
