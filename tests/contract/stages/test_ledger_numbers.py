"""Ledger of grouping and deduplication in a real backtest: numbers and bounds agree with the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from loadgen.fleet.scenario import load_scenario
from loadgen.fleet.simulate import simulate
from pipeline.backtest.run import run_backtest
from pipeline.messages.scans import decode_scan
from pipeline.model import Candidate, Decision, Record, Scan
from pipeline.model.steps import code_of, sentence
from pipeline.settings.workloads import Workload
from pipeline.stages.ablation import NOTHING
from pipeline.stages.dedup import DedupStage
from pipeline.storage.interface import Store
from tests.contract.group_pipeline import CHANGE, START, Pipeline, caller
from tests.contract.rows import metrics
from tests.contract.stages.stores import every_store
from tests.support.builders import build_candidate
from tests.support.fleets import LIVE

SCENARIO = """
name: crowded
duration: 3d
samples_per_minute: 6
graph: {subroutines: 60, endpoints: 4}
servers: {count: 400}
changes: {count: 20}
inject:
  - {kind: step, count: 4, delta: [0.005, 0.04], between: [0.6, 0.66]}
  - {kind: cascade, count: 2, delta: [0.01, 0.02], between: [0.6, 0.66]}
  - {kind: new_feature, delta: [0.02, 0.04], between: [0.6, 0.66]}
"""

WORKLOAD = {
    **{"name": "brief", "resolution": "10m", "rerun_interval": "2h"},
    **{"historical": "1d", "analysis": "4h", "extended": "2h", "threshold": {"absolute": 0.001}},
}

GROUPINGS = ("explained", "cause", "som", "kdd2018")


@cache
def backtest(grouping: str, scenario: Path) -> tuple[Scan, ...]:
    workload = Workload.model_validate({**WORKLOAD, "grouping": grouping})
    return run_backtest(simulate(load_scenario(str(scenario)), 1).dataset, [workload]).scans


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "crowded.yaml"
    path.write_text(SCENARIO)
    return path


def passed(scans: Sequence[Scan], step: str) -> list[Decision]:
    """Return what a step says of each candidate that came to it and was not dropped by it."""
    candidates = [c for scan in scans for c in (*scan.candidates, *(line.candidate for line in scan.dropped))]
    return [one for candidate in candidates for one in candidate.passed if one.step == step]


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_what_joined_a_group_reaches_the_bound(scenario: Path, grouping: str) -> None:
    lines = [
        line
        for scan in backtest(grouping, scenario)
        for line in scan.dropped
        if "dedup" in line.decision.step
    ]
    assert {line.decision.step for line in lines} == {"som_dedup", "pairwise_dedup"}
    for line in lines:
        assert line.decision.statistic >= line.decision.bound, line
        assert code_of(line.decision).measures, line


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_what_was_reported_stays_under_the_bound(scenario: Path, grouping: str) -> None:
    scans = backtest(grouping, scenario)
    reported = passed(scans, "pairwise_dedup")
    assert len(reported) == sum(len(scan.candidates) for scan in scans) > 3
    assert all(one.statistic < one.bound for one in reported)
    assert len({(one.statistic, one.code, one.subjects) for one in reported}) > 2, "each its own"
    for one in reported:
        assert bool(code_of(one).measures) is (one.statistic > 0), one


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_what_stands_for_a_group_says_how_large_it_is(scenario: Path, grouping: str) -> None:
    scans = backtest(grouping, scenario)
    sizes = passed(scans, "som_dedup")
    assert all((one.bound, one.code == "") == (1.0, one.statistic > 1) for one in sizes)
    members = sum(line.decision.step == "som_dedup" for scan in scans for line in scan.dropped)
    assert sum(one.statistic - 1 for one in sizes) == members


# Scans by hand


def deduplicated(pipeline: Pipeline, scan: Scan) -> Scan:
    (message,) = pipeline.dedup.handle([Record("filtered", 0, 0, scan)])
    return decode_scan(message.value)


class Descendant(Pipeline):
    """``cart.total`` rises through ``lib.slow`` alone, ``shop.view`` partly."""

    before = {"main/shop.view/lib.slow": 40, "main/cart.total/lib.slow": 40}

    def counts(self, second: int) -> dict[str, int]:
        return {**super().counts(second), "main/shop.view/shop.draw": 600 + 100 * (second >= CHANGE)}


def rising(name: str, delta: float) -> Candidate:
    return replace(
        build_candidate(name, before=0.04, after=0.04 + delta, change_time=START + CHANGE), kind="long_term"
    )


@pytest.mark.parametrize("without", [NOTHING, frozenset({"pairwise_dedup"})], ids=["all", "left out"])
def test_what_is_alone_was_compared_with_nothing(
    store: Store, service_name: str, without: frozenset[str]
) -> None:
    pipeline = Pipeline(store, service_name)
    pipeline.dedup = DedupStage(store=store, workloads=[LIVE], without=without)
    (candidate,) = deduplicated(pipeline, pipeline.scan(65, caller("cart.tax"))).candidates
    line = Decision("pairwise_dedup", True, 0.0, 0.7, "nothing")
    assert [one for one in candidate.passed if one.step == "pairwise_dedup"] == [line] * (not without)


@pytest.mark.parametrize(
    ("name", "delta", "statistic", "bound", "reason"),
    [
        pytest.param(
            *("cart.total", 0.03, 1.0, 0.7),
            "rises through the same subroutine or change as lib.slow, reported before",
            id="dropped",
        ),
        pytest.param(
            *("shop.view", 0.1, 0.535, 0.52),
            "hardly more than what rises below it: lib.slow, reported before",
            id="the rest is no change point",
        ),
        pytest.param(
            *("shop.sort", 0.03, 0.0, 0.7), "unlike everything that it was compared with", id="other stacks"
        ),
    ],
)
def test_a_slow_rise_has_what_it_was_compared_with(
    store: Store, service_name: str, name: str, delta: float, statistic: float, bound: float, reason: str
) -> None:
    pipeline = Descendant(store, service_name)
    deduplicated(pipeline, pipeline.scan(65, caller("lib.slow")))
    scan = deduplicated(pipeline, pipeline.scan(70, rising(name, delta)))
    found = [line.decision for line in scan.dropped]
    (decision,) = [*found, *passed([replace(scan, dropped=())], "pairwise_dedup")]
    assert sentence(decision) == reason
    assert (decision.statistic, decision.bound) == pytest.approx((statistic, bound), abs=0.01)
    assert (decision.statistic >= decision.bound) is bool(found)


@every_store
def test_metrics_that_move_together_have_the_rules_own_numbers(store: Store, service_name: str) -> None:
    points = [
        (n, START + s, 10.0 + 5 * (s >= CHANGE) + (s % 7) / 9) for n in ("p50", "p99") for s in range(70)
    ]
    points += [("rps", START + s, 10.0 + 3 * (s >= CHANGE) + s % 5) for s in range(70)]
    store.insert("metrics", metrics(service_name, points))
    pipeline = Pipeline(store, service_name)
    service = LIVE.model_copy(update={"series": "service"})
    # They begin at one moment, too, which would be enough.
    pipeline.dedup = DedupStage(store=store, workloads=[service], without=frozenset({"onset"}))
    found = [
        replace(
            build_candidate(name, before=10.0, after=after, change_time=START + CHANGE), metric_kind="service"
        )
        for name, after in (("p50", 15.0), ("p99", 15.0), ("rps", 13.0))
    ]
    scan = deduplicated(pipeline, pipeline.scan(65, *found))
    (line,) = scan.dropped
    assert (line.decision.bound, line.decision.code) == (0.9, "correlation")
    assert line.decision.statistic == pytest.approx(1.0)
    for one in passed([replace(scan, dropped=())], "pairwise_dedup"):
        assert (one.bound, one.code) == (0.9, "correlation")
        assert 0 < one.statistic < 0.9
