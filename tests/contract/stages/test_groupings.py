"""Ways of grouping that a workload may choose: each runs in the dedup stage, and its ledger adds up."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from pipeline.messages.scans import decode_scan
from pipeline.model import MetricKind, Record, Scan
from pipeline.stages.dedup import DedupStage
from pipeline.storage.interface import Store
from tests.contract.rows import gcpu, metrics, stacks, totals
from tests.contract.stages.stores import every_store
from tests.support.builders import build_candidate
from tests.support.fleets import LIVE

START = 1_700_000_000.0

STACKS = {
    ("main", "cart.total", "lib.parse"): (40, 80),
    ("main", "cart.tax", "lib.parse"): (40, 80),
    ("main", "shop.list", "lib.sort"): (40, 100),
    ("main", "shop.page"): (800, 800),
}


def fill(store: Store, service: str) -> None:
    rows = [
        (stack, START + second, counts[second >= 50])
        for second in range(70)
        for stack, counts in STACKS.items()
    ]
    store.insert("stacks", stacks(service, rows, width=1))
    store.insert("totals", totals(service, [(START + s, 920 + 140 * (s >= 50)) for s in range(70)]))
    shares = {
        name: [40 + 40 * (s >= 50) for s in range(70)] for name in ("cart.total", "cart.tax", "shop.list")
    }
    store.insert("gcpu", gcpu(service, [(n, START + s, v[s]) for n, v in shares.items() for s in range(70)]))
    points = [(n, START + s, 10.0 + 5 * (s >= 50) + (s % 7) / 9) for n in ("p50", "p99") for s in range(70)]
    store.insert("metrics", metrics(service, points))


def scan(service: str, workload: str, *names: str, kind: MetricKind = "subroutine") -> Scan:
    before, after = (10.0, 15.0) if kind == "service" else (0.04, 0.08)
    found = tuple(
        replace(build_candidate(name, before=before, after=after, change_time=START + 50), metric_kind=kind)
        for name in names
    )
    return Scan(
        service=service,
        workload=workload,
        start=START + 15,
        analysis_start=START + 45,
        analysis_end=START + 60,
        end=START + 65,
        series=9,
        candidates=found,
    )


@pytest.mark.parametrize("grouping", ["cause", "som", "kdd2018"])
def test_candidates_are_grouped_as_asked_for(
    store: Store, service_name: str, grouping: Literal["cause", "som", "kdd2018"]
) -> None:
    fill(store, service_name)
    workload = LIVE.model_copy(update={"grouping": grouping})
    names = {"cart.total", "cart.tax", "shop.list", "lib.sort"}
    stage = DedupStage(store=store, workloads=[workload])
    (message,) = stage.handle([Record("filtered", 0, 0, scan(service_name, "live", *sorted(names)))])
    judged = decode_scan(message.value)
    grouped = [{c.metric, *(member.metric for member in c.group)} for c in judged.candidates]
    assert set().union(*grouped) | {d.candidate.metric for d in judged.dropped} == names
    assert len(judged.candidates) + len(judged.dropped) == len(names)
    if grouping == "cause":
        assert sorted(grouped, key=sorted) == [{"cart.tax", "cart.total"}, {"lib.sort", "shop.list"}]


@every_store
def test_metrics_that_move_together_are_one(store: Store, service_name: str) -> None:
    fill(store, service_name)
    workload = LIVE.model_copy(update={"name": "latency", "series": "service"})
    stage = DedupStage(store=store, workloads=[workload])
    (message,) = stage.handle(
        [Record("filtered", 0, 0, scan(service_name, "latency", "p50", "p99", kind="service"))]
    )
    judged = decode_scan(message.value)
    (candidate,) = judged.candidates
    assert {candidate.metric, *(member.metric for member in candidate.group)} == {"p50", "p99"}
    (line,) = judged.dropped
    assert (line.decision.step, line.decision.code) == ("som_dedup", "correlation")
