"""One cause in CPU and in a service-level metric is one event, whichever workload sees it first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.backtest.run import run_backtest
from pipeline.model import MetricPoints
from pipeline.settings.workloads import Workload
from tests.support.fleets import BASE, LIVE, SLOWER, START, THROUGHPUT, as_dataset, record

SERVICE = as_dataset(record("shop", [(90, BASE), (80, SLOWER)], metrics=False))
FIRST = THROUGHPUT.model_copy(update={"name": "a-metric"})
"""Of scans that end together, those of the workload that is named first come first."""


def throughput(*drops: float) -> MetricPoints:
    """Return a throughput that drops by a fifth at some seconds."""
    seconds = np.arange(170) + 0.5
    levels = 100 * 0.8 ** sum(seconds > drop for drop in drops)
    noise = np.random.default_rng(4).normal(0.0, 1.5, len(seconds))
    return MetricPoints("shop", "throughput", np.add(START, seconds), np.asarray(levels + noise))


def events(*drops: float, metric: Workload = THROUGHPUT, without: str = "") -> list[dict[str, Any]]:
    """Return the events of a service that gets slower at second 90, and whose throughput drops."""
    dataset = replace(SERVICE, metrics=(throughput(*drops),))
    found = run_backtest(dataset, [LIVE, metric], without=frozenset(filter(None, [without])))
    return [{**event["data"], "type": event["type"].rpartition(".")[2]} for event in found.events]


def brief(found: list[dict[str, Any]]) -> list[tuple[str, str, list[str]]]:
    """Return type, metric and what joined of each event."""
    return [
        (one["type"], one["metric"], [member["metric"] for member in one.get("joined", ())]) for one in found
    ]


def test_a_metric_joins_the_regression_that_began_with_it() -> None:
    assert brief(events(90)) == [("detected", "cart.tax", []), ("updated", "cart.tax", ["throughput"])]


def test_a_regression_joins_the_metric_and_brings_its_cause() -> None:
    found = events(90, metric=FIRST)
    assert brief(found) == [("detected", "throughput", []), ("updated", "throughput", ["cart.tax"])]
    (suspect,) = found[1]["root_causes"]
    assert (suspect["change"]["id"], suspect["factors"]["attribution"]) == ("c1", pytest.approx(1, abs=0.1))


@pytest.mark.parametrize(("drops", "without"), [((96,), ""), ((90,), "onset")], ids=["six later", "ablated"])
def test_what_begins_at_another_time_is_another_event(drops: tuple[float, ...], without: str) -> None:
    found = events(*drops, without=without)
    assert sorted(brief(found)) == [("detected", "cart.tax", []), ("detected", "throughput", [])]


def test_a_metric_that_drops_again_is_no_growth_of_what_it_joins_anew() -> None:
    found = events(50, 90)
    assert [one[:2] for one in brief(found) if one[0] == "detected"] == [
        ("detected", "throughput"),
        ("detected", "cart.tax"),
    ]
    assert ("updated", "cart.tax", ["throughput"]) in brief(found)
    assert not any(one.get("grown") for one in found)
