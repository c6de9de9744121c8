"""The metrics that scans look at: by metadata, then by name, and those that nobody knows how to judge."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.backtest.dataset import Dataset
from pipeline.backtest.run import Backtest, run_backtest
from pipeline.model import MetricPoints
from pipeline.model.units import DAY_S, HOUR_S
from pipeline.settings.workloads import load_workloads
from tests.support.fleets import BASE, LIVE, SLOWER, as_dataset, record

START = 1_767_571_200.0
CT = load_workloads(["ct-supply-short", "ct-supply-long", "ct-demand"])
SUPPLY, SLOW_SUPPLY, DEMAND = (workload.name for workload in CT)


def stepping(metric: str, factor: float = 1.2, **said: Any) -> MetricPoints:
    """Return ten days of a metric that steps after eight and a half."""
    times = START + np.arange(0.0, 10.5 * DAY_S, HOUR_S / 2)
    rng = np.random.default_rng(len(metric))
    levels = np.where(times < START + 8.4 * DAY_S, 1.0, factor)
    return MetricPoints("shop", metric, times, levels * rng.normal(100, 1, len(times)), **said)


def with_metrics(*metrics: MetricPoints) -> Dataset:
    """Return a service of nothing but metrics."""
    nothing = np.zeros((0, 504))
    return Dataset(
        service="shop",
        start=START,
        end=START + 10.5 * DAY_S,
        window_s=1800.0,
        stack_window_s=1800.0,
        kinds=(),
        names=(),
        samples=nothing,
        totals=np.zeros(504),
        stacks=(),
        stack_samples=nothing,
        metrics=metrics,
        changes=(),
    )


def found(*metrics: MetricPoints) -> Backtest:
    """Return what the CT presets find."""
    return run_backtest(with_metrics(*metrics), CT)


def reported(backtest: Backtest) -> set[tuple[str, str]]:
    """Return workload and metric of each event."""
    return {(event["data"]["workload"], event["data"]["metric"]) for event in backtest.events}


@pytest.mark.parametrize(
    ("metric", "workload"),
    [
        pytest.param(stepping("api_latency"), DEMAND, id="name: a rise is worse"),
        pytest.param(stepping("throughput", 0.8), SUPPLY, id="name: a drop is worse"),
        pytest.param(stepping("request_seconds"), DEMAND, id="name with a unit"),
        pytest.param(stepping("checkout", unit="ms"), DEMAND, id="unit"),
        pytest.param(stepping("checkout", 0.8, kind="hit_ratio"), SUPPLY, id="kind"),
        pytest.param(stepping("checkout", 0.8, direction="down"), SUPPLY, id="direction"),
        pytest.param(stepping("idle_workers", direction="up"), DEMAND, id="metadata before the name"),
        pytest.param(stepping("requests", 0.8, kind="throughput"), SUPPLY, id="kind before the name"),
    ],
)
def test_a_metric_that_gets_worse_is_reported_once(metric: MetricPoints, workload: str) -> None:
    assert reported(found(metric)) == {(workload, metric.metric)}


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(stepping("api_latency", 0.8), id="lower latency"),
        pytest.param(stepping("throughput"), id="higher throughput"),
        pytest.param(stepping("requests", kind="throughput"), id="more served"),
        pytest.param(stepping("api_latency", direction="none"), id="of no direction"),
        pytest.param(stepping("arrivals", kind="traffic"), id="traffic explains"),
        pytest.param(stepping("api_latency", setup=True), id="set-up metric"),
    ],
)
def test_what_gets_better_or_only_explains_is_silent(metric: MetricPoints) -> None:
    result = found(metric)
    assert not result.events
    assert not any(one.code == "direction_unknown" for scan in result.scans for one in scan.unjudged)


@pytest.mark.parametrize("factor", [0.8, 1.2])
@pytest.mark.parametrize("name", ["checkout", "free_memory"])
def test_a_metric_of_unknown_direction_is_judged_by_none_and_said_so_once(
    name: str, factor: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="pipeline.stages.scanner")
    result = found(stepping(name, factor), stepping("throughput", 1.0))
    assert not result.events
    said = [(scan.workload, scan.end, one) for scan in result.scans for one in scan.unjudged]
    unknown = [(workload, end) for workload, end, one in said if one.code == "direction_unknown"]
    assert {workload for workload, _ in unknown} == {SUPPLY}
    assert len(unknown) == len(set(unknown))
    assert sum(name in line for line in caplog.messages) == 1


def test_a_workload_run_by_itself_says_by_that_which_way_is_worse() -> None:
    (demand,) = load_workloads([DEMAND])
    result = run_backtest(with_metrics(stepping("checkout")), [demand])
    assert reported(result) == {(DEMAND, "checkout")}


@pytest.mark.parametrize("setup", [False, True], ids=["no metrics", "set-up metrics alone"])
def test_a_service_without_metrics_costs_nothing(setup: bool) -> None:
    dataset = as_dataset(record("shop", [(60, BASE), (40, SLOWER)], metrics=False))
    if setup:
        times = dataset.start + np.arange(100.0)
        dataset = replace(dataset, metrics=(MetricPoints("shop", "servers", times, np.ones(100), True),))
    quick = [  # the presets, with windows of seconds
        one.model_copy(
            update={
                **{"resolution_s": 1.0, "rerun_interval_s": 5.0, "historical_s": 30.0},
                **{"analysis_s": 15.0, "extended_s": 5.0},
            }
        )
        for one in CT
    ]
    alone, beside = (run_backtest(dataset, workloads) for workloads in ([LIVE], [LIVE, *quick]))
    assert alone.events
    assert beside == alone
